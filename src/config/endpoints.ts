import { type ModelWire, modelWireNames, wirePlaces } from '../catalog/wire-names.ts'

/** By wire, the paths of an upstream's requests, and of those for a stream: from the host's root, with the query. */
export type Endpoints = Readonly<Record<ModelWire, readonly [path: string, streamPath: string]>>

/** A path for all requests of a wire, or one for each form of the answer. */
type OwnPath = string | { whole: string; stream: string }

export type EndpointSettings = {
  /** Without a slash at the end. */
  baseUrl: string
  /** Paths by wire that replace the base's path and the wire's. */
  paths?: Partial<Record<ModelWire, OwnPath>>
  query?: Readonly<Record<string, string>>
}

/** Returns the path and query for each wire (ruling P8). */
export function endpointsOf({ baseUrl, paths = {}, query = {} }: EndpointSettings): Endpoints {
  const base = pathOf(baseUrl)
  const fixed = new URLSearchParams(query).toString()
  const withQuery = (path: string) => path + (fixed && `${path.includes('?') ? '&' : '?'}${fixed}`)
  const entries = modelWireNames.map((wire) => {
    const { path, streamPath = path, keepsVersion } = wirePlaces[wire]
    const said = paths[wire]
    const own = typeof said === 'object' ? [said.whole, said.stream] : [said, said]
    const usual = [path, streamPath].map((one) => joinPath(base, one, keepsVersion))
    return [wire, own.map((one, index) => withQuery(one ?? usual[index]!))] as const
  })
  return Object.fromEntries(entries) as unknown as Endpoints
}

/** @param base the path of a base URL, without a slash at the end */
function joinPath(base: string, path: string, keepsVersion: boolean): string {
  const isWhole = base === '' || (keepsVersion && !base.endsWith(versionOf(path)))
  return base + (isWhole ? path : path.slice(versionOf(path).length))
}

/** The path of a base URL without slashes at the end. */
export function pathOf(baseUrl: string): string {
  return new URL(baseUrl).pathname.replace(/\/+$/, '')
}

/** The version that a wire's path begins with, such as `/v1`. */
function versionOf(path: string): string {
  return path.slice(0, path.indexOf('/', 1))
}

/** Whether requests of this wire use the base's path as it is, and no version is in it, such as `/v1` or `/v1beta`. */
export function isTakenAsItStands(wire: ModelWire, path: string): boolean {
  const { keepsVersion } = wirePlaces[wire]
  return !keepsVersion && path !== '' && !/\/v\d/.test(path)
}

/** Returns the end of a path that belongs to a wire, with or without its version; undefined if there is none. */
export function wireEndOf(path: string): string | undefined {
  const ends = Object.values(wirePlaces).flatMap(({ path: own }) => [own, own.slice(versionOf(own).length)])
  return ends.find((end) => path.endsWith(end))
}

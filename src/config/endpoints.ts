import { type ModelWire, modelWireNames, wirePlaces } from '../catalog/wire-names.ts'

/** For each wire, the paths of requests to an upstream. A path begins at the host's root and includes the query. */
export type Endpoints = Readonly<Record<ModelWire, readonly [path: string, streamPath: string]>>

/** One path for all requests of a wire, or one path for JSON answers and one for streams. */
type OwnPath = string | { whole: string; stream: string }

export type EndpointSettings = {
  /** The URL without a final slash. */
  baseUrl: string
  /** Configured paths of some wires. Such a path replaces the path of the base URL and the usual path of the wire. */
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

/** Appends a wire's path to a base path without repeating a version such as `/v1`. @param base has no final slash */
function joinPath(base: string, path: string, keepsVersion: boolean): string {
  const isWhole = base === '' || (keepsVersion && !base.endsWith(versionOf(path)))
  return base + (isWhole ? path : path.slice(versionOf(path).length))
}

/** Returns the path of a base URL without final slashes. */
export function pathOf(baseUrl: string): string {
  return new URL(baseUrl).pathname.replace(/\/+$/, '')
}

/** Returns the version at the beginning of a wire's path, such as `/v1`. */
function versionOf(path: string): string {
  return path.slice(0, path.indexOf('/', 1))
}

/** Whether requests go to a path without a version such as `/v1`: the base path has none, and the wire adds none. */
export function isTakenAsItStands(wire: ModelWire, path: string): boolean {
  const { keepsVersion } = wirePlaces[wire]
  return !keepsVersion && path !== '' && !/\/v\d/.test(path)
}

/**
 * Returns the end of a path that is the path of a wire, with or without its version (such as `/v1`). Undefined if the
 * path has no such end.
 */
export function wireEndOf(path: string): string | undefined {
  const ends = Object.values(wirePlaces).flatMap(({ path: own }) => [own, own.slice(versionOf(own).length)])
  return ends.find((end) => path.endsWith(end))
}

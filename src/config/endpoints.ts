import { type ModelWire, modelWireNames, wirePlaces } from '../catalog/wire-names.ts'

/** The place of the upstream's name for the model in a path of `paths`. */
export const modelPlace = '{model}'

/** The path of requests by wire, from the host's root, with the query. */
export type Endpoints = Readonly<Record<ModelWire, string>>

export type EndpointSettings = {
  /** Without a slash at the end. */
  baseUrl: string
  /** Paths by wire that replace the base's path and the wire's. */
  paths?: Partial<Endpoints>
  query?: Readonly<Record<string, string>>
}

/** Returns the path and query for each wire (ruling P8). */
export function endpointsOf({ baseUrl, paths = {}, query = {} }: EndpointSettings): Endpoints {
  const base = pathOf(baseUrl)
  const fixed = new URLSearchParams(query).toString()
  const behind = fixed && `?${fixed}`
  const entries = modelWireNames.map((wire) => [wire, (paths[wire] ?? endpointOf(wire, base)) + behind] as const)
  return Object.fromEntries(entries) as Endpoints
}

/** @param base the path of a base URL, without a slash at the end */
function endpointOf(wire: ModelWire, base: string): string {
  const { path, keepsVersion } = wirePlaces[wire]
  const isWhole = base === '' || (keepsVersion && !isVersioned(base))
  return base + (isWhole ? path : path.slice(version.length))
}

/** The path of a base URL without slashes at the end. */
export function pathOf(baseUrl: string): string {
  return new URL(baseUrl).pathname.replace(/\/+$/, '')
}

/** The beginning of every wire's path. */
const version = '/v1'

/** Whether the path of a base ends in the version with which the wires' paths begin. */
function isVersioned(path: string): boolean {
  return path.endsWith(version)
}

/** Whether requests of this wire use the base's path as it is, although they did not before 0.2.0. */
export function isTakenAsItStands(wire: ModelWire, path: string): boolean {
  return !wirePlaces[wire].keepsVersion && path !== '' && !isVersioned(path)
}

/** Returns the end of a path that belongs to a wire, with or without its version; undefined if there is none. */
export function wireEndOf(path: string): string | undefined {
  const ends = Object.values(wirePlaces).flatMap((place) => [place.path, place.path.slice(version.length)])
  return ends.find((end) => path.endsWith(end))
}

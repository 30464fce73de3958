import { type WireName, wireNames, wirePlaces } from '../catalog/model.ts'

/** What stands in a path of `paths` for what the upstream calls the model. */
export const modelPlace = '{model}'

/** By wire: where an upstream's requests go, from the host's root, with the query. */
export type Endpoints = Readonly<Record<WireName, string>>

export type EndpointSettings = {
  /** Without a slash at its end. */
  baseUrl: string
  /** By wire, instead of the base's path and the wire's. */
  paths?: Partial<Endpoints>
  query?: Readonly<Record<string, string>>
}

/** Where the requests of each wire go (ruling P8). */
export function endpointsOf({ baseUrl, paths = {}, query = {} }: EndpointSettings): Endpoints {
  const base = pathOf(baseUrl)
  const fixed = new URLSearchParams(query).toString()
  const behind = fixed && `?${fixed}`
  const entries = wireNames.map((wire) => [wire, (paths[wire] ?? endpointOf(wire, base)) + behind] as const)
  return Object.fromEntries(entries) as Endpoints
}

/** @param base the path of a base URL, without a slash at its end */
function endpointOf(wire: WireName, base: string): string {
  const { path, keepsVersion } = wirePlaces[wire]
  const isWhole = base === '' || (keepsVersion && !isVersioned(base))
  return base + (isWhole ? path : path.slice(version.length))
}

/** The path of a base URL without slashes at its end. */
export function pathOf(baseUrl: string): string {
  return new URL(baseUrl).pathname.replace(/\/+$/, '')
}

/** What every wire's path begins with. */
const version = '/v1'

/** Whether a base's path ends in the version that the wires' paths begin with. */
function isVersioned(path: string): boolean {
  return path.endsWith(version)
}

/** Whether this path is taken as it stands where requests of this wire go, and was not before 0.2.0. */
export function isTakenAsItStands(wire: WireName, path: string): boolean {
  return !wirePlaces[wire].keepsVersion && path !== '' && !isVersioned(path)
}

/** The end of a path that is a wire's own, with its version or without; undefined where it is none. */
export function wireEndOf(path: string): string | undefined {
  const ends = Object.values(wirePlaces).flatMap((place) => [place.path, place.path.slice(version.length)])
  return ends.find((end) => path.endsWith(end))
}

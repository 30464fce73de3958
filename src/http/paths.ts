import { BlockList, isIP, isIPv6 } from 'node:net'
import { ownCopy } from '../bytes/memory.ts'
import type { ClientWire } from '../catalog/wire-names.ts'
import type { ClientHalf, SharedWire } from '../wires/wire.ts'
import { clientWires } from '../wires/wires.ts'

/** A served path. Paths match exactly, and the query is ignored everywhere (spec 4, ruling R3). */
export type ServedPath = { walk: 'infer' | 'count_tokens'; wire: ClientWire } | { walk: 'list_models' }

const routes = new Map<string, { path: string; methods: readonly string[]; route: ServedPath }>()
const wireByPath = new Map<string, ClientHalf>()
for (const wire of clientWires) {
  const { path, counter } = wire.client
  addRoute(path, 'infer', wire)
  if (counter) addRoute(counter.path, 'count_tokens', wire)
}
const posted = [...routes.keys()]
routes.set('/v1/models', { path: '/v1/models', methods: ['GET', 'HEAD'], route: { walk: 'list_models' } })

function addRoute(path: string, walk: 'infer' | 'count_tokens', wire: SharedWire): void {
  routes.set(path, { path, methods: ['POST'], route: { walk, wire: wire.name } })
  wireByPath.set(path, wire.client)
}

/** A list of the served paths, for the error about any other path. */
export const servedText = `POST ${posted.slice(0, -1).join(', ')} or ${posted.at(-1)}, or GET /v1/models`

/** Finds the route of a method and path. A known path with a wrong method counts as unknown (ruling R3). */
export function findRoute(method: string, path: string): ServedPath | undefined {
  const entry = routes.get(path)
  return entry?.methods.includes(method) ? entry.route : undefined
}

/**
 * Explains how to correct a client's base URL, if that is the only fault of a path. Some clients append `/v1` to the
 * base URL, and others do not.
 * @returns undefined for any other path
 */
export function baseUrlCure(path: string): string | undefined {
  const isServed = (one: string) => routes.has(one)
  if (path.startsWith('/v1/v1/') && isServed(path.slice(3))) return 'remove /v1 from the end of the base URL'
  if (isServed(`/v1${path}`)) return 'add /v1 at the end of the base URL'
  const short = path.replace(/\/+/g, '/').replace(/(?<=.)\/$/, '')
  if (short !== path && isServed(short)) return 'remove the extra slash from the URL'
  const whole = [...routes.keys()].find((one) => path.startsWith(`${one}/`))
  const rest = path.slice(whole?.length)
  // The base URL is the address of an endpoint, to which a client appends its path with `/v1` or without it.
  if (whole && isServed(rest)) return `remove ${whole} from the end of the base URL`
  if (whole && isServed(`/v1${rest}`)) return `remove ${whole.slice('/v1'.length)} from the end of the base URL`
  const at = path.indexOf('/v1/', 1)
  if (at > 0 && isServed(path.slice(at))) return 'remove the part before /v1 from the base URL'
  return undefined
}

/** Matches the part before the path in a target that is a whole URL (absolute form). */
const beforePath = /^[A-Za-z]+:\/\/[^/?#]*/

/**
 * Returns the path of a request target without its query. A target in absolute form may have no path, which means `/`.
 * For a served path it returns our own string. A string cut out of a head would keep the whole head in memory, and slow
 * down JSON.stringify.
 */
export function pathOf(target: string | undefined): string {
  let path = target ?? '/'
  if (path[0] !== '/') path = path.replace(beforePath, '')
  const query = path.indexOf('?')
  if (query >= 0) path = path.slice(0, query)
  return path === '' ? '/' : (routes.get(path)?.path ?? path)
}

/** Finds the wire that has its endpoint at a path, whatever the method and body; undefined for other paths. */
export function wireAt(path: string): ClientHalf | undefined {
  return wireByPath.get(path)
}

/**
 * Makes a function that finds the client's address: the peer's address, unless the peer is a configured proxy. A proxy
 * names the client in `x-forwarded-for`. Its last address that is not a configured proxy counts. If all are configured
 * proxies, its last address counts (ruling R4). So a client cannot choose its own address.
 */
export function createPeerReader(
  trustedProxies: readonly string[],
): (peer: string, forwarded: string | undefined) => string {
  const trusted = new BlockList()
  for (const range of trustedProxies) {
    const [address = '', bits] = range.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    if (bits === undefined) trusted.addAddress(address, family)
    else trusted.addSubnet(address, Number(bits), family)
  }
  return (peer, forwarded) => {
    const address = plain(peer)
    if (forwarded === undefined || trustedProxies.length === 0 || !isTrusted(address)) return address
    let last: string | undefined
    for (const hop of forwarded.split(',').reverse()) {
      const candidate = plain(withoutPort(hop.trim()))
      // The addresses to the left of an unreadable address cannot be trusted.
      if (isIP(candidate) === 0) break
      // The address is copied, because a slice of the header would keep the whole head in memory.
      if (!isTrusted(candidate)) return ownCopy(candidate)
      last ??= candidate
    }
    return last === undefined ? address : ownCopy(last)
  }

  function isTrusted(address: string): boolean {
    return isIP(address) !== 0 && trusted.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
  }
}

/**
 * Removes the port that some proxies add to an address: `192.0.2.1:4711`, `[2001:db8::1]:4711`. Azure's Application
 * Gateway does so (azure.microsoft.com/blog/rewrite-http-headers-with-azure-application-gateway, 2019-04-16).
 */
function withoutPort(hop: string): string {
  const [, v6, v4] = /^(?:\[(.*)\]|([\d.]+))(?::\d+)?$/.exec(hop) ?? []
  return v6 ?? v4 ?? hop
}

/** Returns the IPv4 form of an IPv4 address that came over an IPv6 socket. */
export function plain(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}

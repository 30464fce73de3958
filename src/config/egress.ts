import { BlockList, isIP } from 'node:net'
import { isDecodable, isLoopback, type Secret } from './values.ts'

/** A proxy between the gateway and an upstream. */
export type EgressProxy = {
  /** The URL, with credentials if the proxy needs them. */
  url: Secret
  /** The name of the configuration key, or of the environment variable, that sets the proxy. */
  source: string
}

/** How a server is reached. */
export type EgressRoute = {
  /** The proxy for connections to the server; undefined if connections use no proxy. */
  proxy: EgressProxy | undefined
  /** Certificates in PEM that are trusted instead of the system's. */
  ca: string | undefined
}

/** A proxy as the operator wrote it, and the key or the variable that names it. */
type ProxySetting = { value: string; source: string }

/** The value of `proxy` for a direct connection, even if the environment sets a proxy. */
export const noProxy = 'none'

/**
 * Returns the proxy that the environment sets for an upstream: `HTTPS_PROXY` or `HTTP_PROXY`, by the upstream's scheme.
 * `NO_PROXY` exempts hosts, and this machine is always exempt. Lower-case names have priority, as in other programs.
 */
export function environmentProxy(baseUrl: string, env: NodeJS.ProcessEnv): ProxySetting | undefined {
  const { protocol, hostname, port } = new URL(baseUrl)
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  if (isLoopback({ host, port: 0 }) || host.endsWith('.localhost')) return undefined
  const found = findVariable(`${protocol.slice(0, -1)}_proxy`, env)
  if (!found) return undefined
  const spared = findVariable('no_proxy', env)?.value ?? ''
  const effectivePort = port || (protocol === 'https:' ? '443' : '80')
  return spared.split(/[\s,]+/).some((entry) => isSpared(entry.toLowerCase(), host, effectivePort)) ? undefined : found
}

function findVariable(name: string, env: NodeJS.ProcessEnv): ProxySetting | undefined {
  for (const source of [name, name.toUpperCase()]) {
    const value = env[source]
    if (value) return { value, source }
  }
  return undefined
}

/**
 * Whether an entry of `NO_PROXY` covers a host and port. The entry is `*`, a host (which includes its subdomains), an
 * address or a range. A port can follow it.
 */
function isSpared(entry: string, host: string, port: string): boolean {
  if (entry === '') return false
  if (entry === '*') return true
  const [, bracketed, plain, only] = /^(?:\[([^\]]*)\]|([^:]*|.*:.*:.*?))(?::(\d+))?$/.exec(entry) ?? []
  const name = (bracketed ?? plain ?? '').replace(/^\*?\./, '').replace(/\.$/, '')
  if (name === '' || (only !== undefined && only !== port)) return false
  const family = isIP(host)
  if (family !== 0) return isWithin(name, host, family === 6 ? 'ipv6' : 'ipv4')
  return host === name || host.endsWith(`.${name}`)
}

function isWithin(range: string, host: string, family: 'ipv4' | 'ipv6'): boolean {
  const whole = family === 'ipv6' ? 128 : 32
  const [, address = '', bits = `${whole}`] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(range) ?? []
  if (isIP(address) !== (family === 'ipv6' ? 6 : 4) || Number(bits) > whole) return false
  const list = new BlockList()
  list.addSubnet(address, Number(bits), family)
  return list.check(host, family)
}

/** Returns what to change in an invalid address of a proxy, as the end of a sentence. */
export function proxyMistake(value: string): string | undefined {
  const url = URL.parse(parseProxy(value))
  const isProxy = url !== null && /^https?:$/.test(url.protocol) && url.hostname !== ''
  if (isProxy && /^\/?$/.test(url.pathname) && !/[?#]/.test(value) && isDecodable(`${url.username}:${url.password}`))
    return undefined
  return 'must be http://host:port or https://host:port, with user:password@ before the host where the proxy wants them'
}

/** Adds the scheme `http` to a proxy without a scheme. Environment variables often lack the scheme. */
export function parseProxy(value: string): string {
  return value.includes('://') ? value : `http://${value}`
}

type EgressServers = {
  upstreams: ReadonlyMap<string, EgressRoute>
  webhooks: readonly (EgressRoute & { shown: string })[]
}

/** Lists the servers that are reached through a proxy, with the proxy as people may see it and what names it. */
export function listProxied({ upstreams, webhooks }: EgressServers) {
  const servers = [
    ...Array.from(upstreams, ([upstream, route]) => ({ name: { upstream }, route })),
    ...webhooks.map((route) => ({ name: { webhook: route.shown }, route })),
  ]
  return servers.flatMap(({ name, route: { proxy } }) =>
    proxy ? [{ name, proxy: showProxy(proxy), source: proxy.source }] : [],
  )
}

/** Formats a proxy for people, without credentials. */
function showProxy({ url }: EgressProxy): string {
  return new URL(url.reveal()).origin
}

/**
 * Whether an error response is the proxy's own, and not the upstream's (N-F4). A proxy adds itself to the header `via`
 * of responses that it forwards (RFC 9110 §7.6.3), whose `server` is the upstream's. In its own responses both headers
 * name the proxy. Other responses of a proxy have no `via`, and are HTML, while models send JSON.
 * @param header returns a header by its lower-case name
 */
export function isProxysAnswer(status: number, header: (name: string) => unknown): boolean {
  if (status < 400) return false
  const textOf = (name: string) => `${header(name) ?? ''}`.toLowerCase()
  // These headers mark a response of the proxy itself (RFC 9110, RFC 9209).
  if (status === 407 || textOf('proxy-authenticate') !== '' || /;\s*error=/.test(textOf('proxy-status'))) return true
  const via = textOf('via')
  const [program = ''] = textOf('server').split(/[\s/]/, 1)
  if (program !== '' && via.includes(`(${program}`)) return true
  return via === '' && textOf('content-type').startsWith('text/html') && (status < 404 || status >= 500)
}

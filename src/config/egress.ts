import { BlockList, isIP } from 'node:net'
import type { EgressProxy } from './config.ts'
import { isLoopback } from './values.ts'

/** A proxy as it was written, and the key or the variable that says it. */
export type ProxySetting = { value: string; source: string }

/** What `proxy` says where an upstream shall be asked directly, whatever the environment says. */
export const noProxy = 'none'

/**
 * Which proxy the environment has for an upstream: `HTTPS_PROXY` or `HTTP_PROXY` by its scheme, unless `NO_PROXY` names its
 * host. As with other programs the name in small letters counts first. Never for this machine itself.
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

/** By an entry of `NO_PROXY`: `*`, a host and all below it (`corp.example`, `.corp.example`), an address, a range; with a port or without. */
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
  const [address = '', bits] = range.split('/')
  const whole = family === 'ipv6' ? 128 : 32
  const prefix = bits === undefined ? whole : Number(bits)
  if (isIP(address) !== (family === 'ipv6' ? 6 : 4) || !(prefix >= 0 && prefix <= whole)) return false
  const list = new BlockList()
  list.addSubnet(address, prefix, family)
  return list.check(host, family)
}

/** What is wrong with the address of a proxy, as the end of a sentence. */
export function proxyMistake(value: string): string | undefined {
  const url = URL.parse(parseProxy(value))
  const isProxy = url !== null && /^https?:$/.test(url.protocol) && url.hostname !== ''
  if (isProxy && /^\/?$/.test(url.pathname) && !/[?#]/.test(value) && isDecodable(url)) return undefined
  return 'must be http://host:port or https://host:port, with user:password@ before the host where the proxy wants them'
}

/** Without a scheme it is http, as the variables are often written. */
export function parseProxy(value: string): string {
  return value.includes('://') ? value : `http://${value}`
}

/** As people read it: without credentials. */
export function showProxy({ url }: EgressProxy): string {
  return new URL(url.reveal()).origin
}

/** Characters of a password that mean something in a URL are written with `%`. */
function isDecodable({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username + password)
    return true
  } catch {
    return false
  }
}

/**
 * Whether a refusal was written by the proxy that was asked in absolute form, and not by the server behind it: nothing else
 * tells its "no such host" or "wrong credentials" from the server's own (N-F4). A proxy names itself in `via` of all that it
 * brings (RFC 9110 §7.6.3), its own answers are pages, and models refuse in JSON.
 * @param header by its name in small letters
 */
export function isProxysAnswer(status: number, header: (name: string) => unknown): boolean {
  if (status < 400) return false
  const textOf = (name: string) => `${header(name) ?? ''}`.toLowerCase()
  // By RFC 9110 and RFC 9209 it says so.
  if (status === 407 || textOf('proxy-authenticate') !== '' || /;\s*error=/.test(textOf('proxy-status'))) return true
  const via = textOf('via')
  const [program = ''] = textOf('server').split(/[\s/]/, 1)
  if (program !== '' && via.includes(`(${program}`)) return true
  return via === '' && textOf('content-type').startsWith('text/html') && (status < 404 || status >= 500)
}

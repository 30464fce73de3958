import type { Dispatcher } from 'undici'
import { environmentProxy, isProxysAnswer, parseProxy, proxyMistake } from '../config/egress.ts'

/** A command's request to a server, with those options of `fetch` that are needed. */
export type HttpQuestion = {
  method?: string
  headers: Record<string, string>
  body?: string
  redirect?: 'manual'
  signal: AbortSignal
}

/** By their addresses, with credentials: a command that asks often keeps its connections. */
const proxies = new Map<string, Promise<Dispatcher>>()

/**
 * Asks a server as `fetch` does; through a proxy where the environment has one for it, by the rules for upstreams (N-F4).
 * @throws what `fetch` throws, for `explainFailure`
 */
export async function ask(url: string, question: HttpQuestion): Promise<Response> {
  const proxy = environmentProxy(url, process.env)
  if (!proxy) return fetch(url, question)
  const mistake = proxyMistake(proxy.value)
  if (mistake) throw new Error(`the proxy of ${proxy.source} ${mistake}`)
  const { fetch: fetchThrough } = await import('undici')
  const opened = proxies.get(proxy.value) ?? openProxy(proxy.value)
  proxies.set(proxy.value, opened)
  const told: unknown = await fetchThrough(url, { ...question, dispatcher: await opened })
  const response = told as Response
  const { status, headers } = response
  if (url.startsWith('http:') && isProxysAnswer(status, (name) => headers.get(name))) {
    await response.body?.cancel()
    throw new Error(describeRefusal(proxy.source, status))
  }
  return response
}

async function openProxy(value: string): Promise<Dispatcher> {
  const { ProxyAgent } = await import('undici')
  // Plain HTTP in absolute form: many proxies make no tunnel to another port than that of TLS.
  return new ProxyAgent({ uri: parseProxy(value), proxyTunnel: false })
}

/**
 * Explains to a person why there is no answer. The text contains no key and no password.
 * @param late the text for a timeout
 */
export function explainFailure(error: unknown, url: string, late: string): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return late
  const cause = rootOf(error)
  if (cause === error) return error.message
  const { code = '' } = cause as NodeJS.ErrnoException
  const proxy = environmentProxy(url, process.env)
  const status = proxy && /^Proxy (?:response|.*Required) \((\d{3})\)/.exec(cause.message)?.[1]
  if (proxy && status) return describeRefusal(proxy.source, Number(status))
  const known = reasons.find(([pattern]) => pattern.test(code))
  const why = known ? `${known[1]} (${code})` : cause.message || code || error.message
  const isUnreached = known !== undefined && unreached.includes(known)
  return proxy && isUnreached ? `the proxy of ${proxy.source} cannot be reached: ${why}` : why
}

/** A proxy that makes no tunnel may refuse credentials with 401 instead of 407. */
function describeRefusal(source: string, status: number): string {
  return [401, 407].includes(status)
    ? `the proxy of ${source} wants other credentials`
    : `the proxy of ${source} refuses, or does not reach it (status ${status})`
}

/** Returns the innermost cause. `fetch` itself says little, and may wrap the reason more than once. */
function rootOf(error: Error): Error {
  return error.cause instanceof Error ? rootOf(error.cause) : error
}

type Reason = readonly [code: RegExp, meaning: string]

/** Reasons why a connection cannot be made. With a proxy, they are about the proxy only. */
const unreached: readonly Reason[] = [
  [/^ECONNREFUSED$/, 'nothing listens there'],
  [/^(ENOTFOUND|EAI_AGAIN)$/, 'there is no such host'],
  [/^(EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'no way leads there'],
]

/** The meaning of error codes of the system, of TLS and of the HTTP client, for a person. */
const reasons: readonly Reason[] = [
  ...unreached,
  [
    /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|RECORD_LAYER/,
    'it speaks plain HTTP there: write http:// for https://',
  ],
  [/^CERT_HAS_EXPIRED$/, 'its certificate has expired'],
  [/ALTNAME_INVALID/, 'its certificate is for another host'],
  [
    /CERT|UNABLE_TO_VERIFY|^ERR_SSL|^ERR_TLS/,
    'its certificate is not trusted: name its authority in NODE_EXTRA_CA_CERTS',
  ],
  [/^(HPE_|UND_ERR_SOCKET|ECONNRESET)/, 'it closed the connection or speaks no HTTP there: does it want https://?'],
]

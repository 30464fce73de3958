import { asObject, parseObject } from '../bytes/json.ts'
import { environmentProxy, parseProxy, proxyMistake } from '../config/egress.ts'
import { type DialRoute, ProxyRefusal } from '../upstream/dial.ts'
import { type FetchRequest, type FetchResponse, fetchHttp } from '../upstream/http-fetch.ts'
import type { ResponseHeaders } from '../upstream/target.ts'

/**
 * Sends a request to a server. The environment may set a proxy, by the same rules as for upstreams (N-F4).
 * @throws any error of `fetchHttp`, which `explainFailure` puts into words
 */
export async function ask(url: string, question: FetchRequest): Promise<FetchResponse> {
  return fetchHttp(url, { ...question, ...routeTo(url) })
}

/** Returns the route to a server, with the proxy that the environment sets. @throws Error if its address is wrong */
export function routeTo(url: string): DialRoute {
  const proxy = environmentProxy(url, process.env)
  const mistake = proxy && proxyMistake(proxy.value)
  if (mistake) throw new Error(`the proxy of ${proxy.source} ${mistake}`)
  return proxy ? { proxy: new URL(parseProxy(proxy.value)) } : {}
}

/**
 * Explains to a person why there is no response. The text contains neither keys nor passwords.
 * @param late the text for a request that timed out
 */
export function explainFailure(error: unknown, url: string, late: string): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return late
  const proxy = environmentProxy(url, process.env)
  if (proxy && error instanceof ProxyRefusal) return describeRefusal(proxy.source, error)
  const { code = '' } = error as NodeJS.ErrnoException
  const known = reasons.find(([pattern]) => pattern.test(code))
  const why = known ? `${known[1]} (${code})` : error.message || code
  const isUnreached = known !== undefined && unreached.includes(known)
  return proxy && isUnreached ? `the proxy of ${proxy.source} cannot be reached: ${why}` : why
}

/** Describes a refusal by a proxy. For an `http:` URL, some proxies refuse credentials with 401 instead of 407. */
function describeRefusal(source: string, { status }: ProxyRefusal): string {
  if (status === undefined) return `the proxy of ${source} speaks no HTTP`
  return [401, 407].includes(status)
    ? `the proxy of ${source} wants other credentials`
    : `the proxy of ${source} refuses, or does not reach it (status ${status})`
}

type Reason = readonly [code: RegExp, meaning: string]

/** Failures to look up or to reach a host. If a proxy is used, the host is that of the proxy. */
const unreached: readonly Reason[] = [
  [/^ECONNREFUSED$/, 'nothing listens there'],
  [/^(ENOTFOUND|EAI_AGAIN)$/, 'there is no such host'],
  [/^(EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)$/, 'no way leads there'],
]

/** Explains error codes of the operating system, of TLS and of the HTTP client in words for people. */
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
  [/^(EBADMSG|ECONNRESET)$/, 'it closed the connection or speaks no HTTP there: does it want https://?'],
]

/** Reads the ids of a list of models. Any other text gives an empty list. */
export function readModelIds(text: string): string[] {
  const data = parseObject(text)?.['data']
  const ids = Array.isArray(data) ? data.map((row) => asObject(row)?.['id']) : []
  return ids.filter((id) => typeof id === 'string')
}

/** A complete response. Times are in ms from the request's start. `firstByteMs` is when the body's first byte came. */
export type DoctorReply = {
  status: number
  headers: ResponseHeaders
  text: string
  firstByteMs: number
  totalMs: number
}

/** A request. `body` is a text, so that a malformed body can be sent. Without a body the method is GET. */
type Sending = { url: string; headers: Record<string, string>; body?: string; timeoutMs: number }

/** The largest response, in bytes. Responses to probes are short, so a longer response may be endless. */
const answerBytesMax = 8 * 1024 * 1024

/**
 * Sends a request and reads the whole response. It follows no redirects, because the key is only for this origin.
 * @throws Error with a message for people if the response is not complete in time
 */
export async function send({ url, headers, body, timeoutMs }: Sending): Promise<DoctorReply> {
  const started = performance.now()
  const sinceStart = () => Math.round(performance.now() - started)
  let [text, bytes, firstByteMs] = ['', 0, 0]
  try {
    const response = await ask(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body }),
      signal: AbortSignal.timeout(timeoutMs),
    })
    const decoder = new TextDecoder()
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      if (bytes === 0) firstByteMs = sinceStart()
      bytes += chunk.length
      if (bytes > answerBytesMax) throw new Error(`the answer is longer than ${answerBytesMax} bytes`)
      text += decoder.decode(chunk, { stream: true })
    }
    const { status, headers: answered } = response
    return { status, headers: answered, text: text + decoder.decode(), firstByteMs, totalMs: sinceStart() }
  } catch (error) {
    // A part of the response was read, so the server speaks HTTP, but it broke the connection.
    if (bytes > 0 && (error as NodeJS.ErrnoException).code === 'ECONNRESET')
      throw new Error(`it broke the connection after ${bytes} bytes of the answer (ECONNRESET)`)
    throw new Error(
      explainFailure(error, url, `no whole answer within ${timeoutMs / 1_000} s: allow more with --timeout`),
    )
  }
}

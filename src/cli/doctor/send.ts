/** What came back, whole. Times are ms from the start of the request; `firstByteMs` is of the body. */
export type Seen = { status: number; headers: Headers; text: string; firstByteMs: number; totalMs: number }

/** `body` as text, so that a broken one can be sent; without one the method is GET. */
export type Sending = { url: string; headers: Record<string, string>; body?: string; timeoutMs: number }

/** The answers to the probes are short: whoever sends more than this goes on for ever. */
const answerBytesMax = 8 * 1024 * 1024

/**
 * Asks once and reads to the end. Redirects are not followed: the key is for the origin that was named.
 * @throws Error in words for the person at the terminal when there is no whole answer in time.
 */
export async function send({ url, headers, body, timeoutMs }: Sending): Promise<Seen> {
  const started = performance.now()
  const sinceStart = () => Math.round(performance.now() - started)
  try {
    const response = await fetch(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body }),
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    })
    const decoder = new TextDecoder()
    let [text, bytes, firstByteMs] = ['', 0, 0]
    for await (const chunk of response.body ?? []) {
      if (bytes === 0) firstByteMs = sinceStart()
      bytes += chunk.length
      if (bytes > answerBytesMax) throw new Error(`the answer is longer than ${answerBytesMax} bytes`)
      text += decoder.decode(chunk, { stream: true })
    }
    const { status, headers: answered } = response
    return { status, headers: answered, text: text + decoder.decode(), firstByteMs, totalMs: sinceStart() }
  } catch (error) {
    throw new Error(explain(error as Error, timeoutMs))
  }
}

/** `fetch` says little itself, and has the reason as the cause. */
function explain({ name, message, cause }: Error, timeoutMs: number): string {
  if (name === 'TimeoutError') return `no whole answer within ${timeoutMs / 1_000} s: allow more with --timeout`
  if (!(cause instanceof Error)) return message
  const { code = '' } = cause as NodeJS.ErrnoException
  const known = reasons.find(([pattern]) => pattern.test(code))
  return known ? `${known[1]} (${code})` : `${message}: ${cause.message || code}`
}

/** What the codes of the system, of TLS and of the client mean to a person. */
const reasons: readonly [code: RegExp, meaning: string][] = [
  [/^ECONNREFUSED$/, 'nothing listens there'],
  [/^(ENOTFOUND|EAI_AGAIN)$/, 'there is no such host'],
  [/^(EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'no way leads there'],
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

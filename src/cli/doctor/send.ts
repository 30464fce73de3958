import type { ResponseHeaders } from '../../upstream/upstreams.ts'
import { ask, explainFailure } from '../ask.ts'

/** A whole answer. Times are in ms from the start of the request; `firstByteMs` is that of the body. */
export type DoctorReply = {
  status: number
  headers: ResponseHeaders
  text: string
  firstByteMs: number
  totalMs: number
}

/** `body` is text, so that a malformed one can be sent; without a body the method is GET. */
type Sending = { url: string; headers: Record<string, string>; body?: string; timeoutMs: number }

/** The largest answer, in bytes. Answers to probes are short, so a longer one may never end. */
const answerBytesMax = 8 * 1024 * 1024

/**
 * Sends a request and reads the whole answer. Redirects are not followed, because the key is meant for the named origin only.
 * @throws Error in words for the person, if there is no whole answer in time
 */
export async function send({ url, headers, body, timeoutMs }: Sending): Promise<DoctorReply> {
  const started = performance.now()
  const sinceStart = () => Math.round(performance.now() - started)
  try {
    const response = await ask(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body }),
      signal: AbortSignal.timeout(timeoutMs),
    })
    const decoder = new TextDecoder()
    let [text, bytes, firstByteMs] = ['', 0, 0]
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      if (bytes === 0) firstByteMs = sinceStart()
      bytes += chunk.length
      if (bytes > answerBytesMax) throw new Error(`the answer is longer than ${answerBytesMax} bytes`)
      text += decoder.decode(chunk, { stream: true })
    }
    const { status, headers: answered } = response
    return { status, headers: answered, text: text + decoder.decode(), firstByteMs, totalMs: sinceStart() }
  } catch (error) {
    throw new Error(
      explainFailure(error, url, `no whole answer within ${timeoutMs / 1_000} s: allow more with --timeout`),
    )
  }
}

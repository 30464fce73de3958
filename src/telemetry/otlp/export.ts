import type { OtlpTarget } from '../../config/config.ts'
import { fetchHttp } from '../../upstream/http-fetch.ts'

/**
 * The most attempts to send a message, and the wait after the first attempt, in ms. A collector may name another wait.
 */
const triesMax = 4
const firstWaitMs = 500

type Shipment = {
  target: OtlpTarget
  body: string
  /** Resolves after this time, or at once when the process ends. */
  wait(ms: number): Promise<void>
  isHurried(): boolean
  /** Fires when the message no longer needs to be sent. */
  aborted: AbortSignal
}

/**
 * Sends a message to its collector. @returns undefined if the collector accepted the message; otherwise the reason, in
 * our words, why the message was dropped
 */
export async function ship({ target, body, wait, isHurried, aborted }: Shipment): Promise<string | undefined> {
  for (let tries = 1; ; tries++) {
    const sent = await send(target, body, aborted)
    if (sent === 'taken') return undefined
    if ('refused' in sent) return sent.refused
    if (tries === triesMax || isHurried()) return 'unreachable'
    await wait(sent.retryMs ?? firstWaitMs * 2 ** (tries - 1))
  }
}

/** The result of one attempt: accepted; to be retried, perhaps after `retryMs`; or refused, so that no retry helps. */
type ExportResult = 'taken' | { retryMs: number | undefined } | { refused: string }

/** Statuses after which a message is retried (OTLP/HTTP). */
const passing = new Set([429, 502, 503, 504])

/** Sends one message to a collector. Never throws. Ends after the target's timeout, or when the attempt is aborted. */
async function send(
  { url, headers, timeoutMs }: OtlpTarget,
  body: string,
  aborted: AbortSignal,
): Promise<ExportResult> {
  const own = Array.from(headers, ([name, value]): [string, string] => [name, value.reveal()])
  try {
    const response = await fetchHttp(url, {
      method: 'POST',
      headers: Object.fromEntries([['user-agent', 'triwire'], ...own, ['content-type', 'application/json']]),
      body,
      signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), aborted]),
    })
    // The body of the response is not read.
    response.body.destroy()
    if (response.ok) return 'taken'
    if (!passing.has(response.status)) return { refused: `status ${response.status}` }
    const seconds = Number(response.headers.get('retry-after'))
    return { retryMs: seconds > 0 && seconds <= 60 ? seconds * 1_000 : undefined }
  } catch {
    return { retryMs: undefined }
  }
}

import type { OtlpTarget } from '../../config/config.ts'
import { fetchHttp } from '../../upstream/http-fetch.ts'

/** The most tries for a message, and the first wait between them, in ms, if the collector does not name one. */
const triesMax = 4
const firstWaitMs = 500

type Shipment = {
  target: OtlpTarget
  body: string
  /** Resolves after a time, or at once when the process ends. */
  wait(ms: number): Promise<void>
  isHurried(): boolean
  /** Fires when the message is not wanted any more. */
  aborted: AbortSignal
}

/** Sends a message to its collector. @returns the reason, in our words, if it was given up; undefined if it was accepted */
export async function ship({ target, body, wait, isHurried, aborted }: Shipment): Promise<string | undefined> {
  for (let tries = 1; ; tries++) {
    const sent = await send(target, body, aborted)
    if (sent === 'taken') return undefined
    if ('refused' in sent) return sent.refused
    if (tries === triesMax || isHurried()) return 'unreachable'
    await wait(sent.retryMs ?? firstWaitMs * 2 ** (tries - 1))
  }
}

/** The result of one try: accepted; to be sent again, perhaps after a given time; or refused for good. */
type ExportResult = 'taken' | { retryMs: number | undefined } | { refused: string }

/** Statuses after which a message is sent again (OTLP/HTTP). */
const passing = new Set([429, 502, 503, 504])

/** Sends one message to a collector. Never throws. Ends after the target's timeout, or when it is aborted. */
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
    // Nothing in its body is looked at.
    response.body.destroy()
    if (response.ok) return 'taken'
    if (!passing.has(response.status)) return { refused: `status ${response.status}` }
    const seconds = Number(response.headers.get('retry-after'))
    return { retryMs: seconds > 0 && seconds <= 60 ? seconds * 1_000 : undefined }
  } catch {
    return { retryMs: undefined }
  }
}

import type { OtlpTarget } from '../../config/config.ts'

/** How often one message is tried, and how long is waited in between where the collector does not say. */
const triesMax = 4
const firstWaitMs = 500

export type Shipment = {
  target: OtlpTarget
  body: string
  /** Resolves after so long, or when nobody wants to wait any more. */
  wait(ms: number): Promise<void>
  isHurried(): boolean
  /** Nothing is wanted of it any more. */
  aborted: AbortSignal
}

/** Brings a message to its collector, or gives it up. @returns why it was given up, in our words; undefined where it was taken */
export async function ship({ target, body, wait, isHurried, aborted }: Shipment): Promise<string | undefined> {
  for (let tries = 1; ; tries++) {
    const sent = await send(target, body, aborted)
    if (sent === 'taken') return undefined
    if ('refused' in sent) return sent.refused
    if (tries === triesMax || isHurried()) return 'unreachable'
    await wait(sent.retryMs ?? firstWaitMs * 2 ** (tries - 1))
  }
}

/** What became of one message: taken; to be sent once more, after so long; or refused for good. */
type ExportResult = 'taken' | { retryMs: number | undefined } | { refused: string }

/** Statuses that pass (OTLP/HTTP). */
const passing = new Set([429, 502, 503, 504])
/** So much of an answer is read, for the connection's sake: nothing in it is looked at. */
const answerBytesMax = 65_536

/** Sends one message to a collector. Never throws, and takes no longer than the target's time, or until it is aborted. */
async function send(
  { url, headers, timeoutMs }: OtlpTarget,
  body: string,
  aborted: AbortSignal,
): Promise<ExportResult> {
  const own = Array.from(headers, ([name, value]): [string, string] => [name, value.reveal()])
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: Object.fromEntries([['user-agent', 'triwire'], ...own, ['content-type', 'application/json']]),
      body,
      redirect: 'manual',
      signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), aborted]),
    })
    await readAway(response)
    if (response.ok) return 'taken'
    if (!passing.has(response.status)) return { refused: `status ${response.status}` }
    const seconds = Number(response.headers.get('retry-after'))
    return { retryMs: seconds > 0 && seconds <= 60 ? seconds * 1_000 : undefined }
  } catch {
    return { retryMs: undefined }
  }
}

async function readAway(response: Response): Promise<void> {
  const length = Number(response.headers.get('content-length') ?? Number.NaN)
  if (length <= answerBytesMax) await response.arrayBuffer()
  else await response.body?.cancel()
}

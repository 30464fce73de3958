import type { OtlpTarget } from '../../config/config.ts'
import { send } from './sender.ts'

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

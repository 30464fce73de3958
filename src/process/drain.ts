import { setTimeout as sleep } from 'node:timers/promises'
import type { Gateway } from '../gateway/gateway.ts'
import type { Edge } from '../http/server.ts'
import type { Log } from '../log/log.ts'

/** How long answers that were cut at the deadline may take to be billed and sent, in ms (faults F-P3). */
const cutMs = 4_000

/** The time between two checks whether the drain is over, in ms. */
const lookMs = 20

type Draining = {
  edge: Edge
  /** The number of operators' playground requests whose answers are not complete. */
  playing: () => number
  gateway: Gateway
  /** A monotonic clock, in ms. Tests pass their own. */
  clockMs: () => number
  log: Log
  /** Whether another signal has asked the server to end at once. */
  isHurried: () => boolean
  /** Called when no more connections are accepted. */
  onClosing: () => void
}

/**
 * Lets running requests end before the server stops. Connections are accepted during the delay, and none after it.
 * Streams that still run at the deadline are cut (reliability §7).
 */
export async function drainEdge(
  { edge, playing, gateway, clockMs, log, isHurried, onClosing }: Draining,
  { delayMs, deadlineMs }: { delayMs: number; deadlineMs: number },
): Promise<void> {
  const live = () => edge.running + playing()
  log.event('info', 'drain', { live: live(), delay_ms: delayMs })
  // A load balancer needs a moment to notice that this server will stop.
  await waitUntil(isHurried, delayMs)
  onClosing()
  edge.server.close()
  edge.closeIdle()
  let reported = clockMs()
  await waitUntil(() => {
    if (clockMs() - reported >= 5_000) {
      reported = clockMs()
      log.event('info', 'drain', { live: live() })
    }
    return isHurried() || live() === 0
  }, deadlineMs)
  if (live() > 0) log.event('info', 'drain_cut', { live: live() })
  // The last bytes of cut answers are being sent. After `cutMs`, clients that do not read them are disconnected.
  // Requests that pass their checks only now are cut as well.
  await waitUntil(() => {
    for (const delivery of [...gateway.deliveries]) delivery.shutDown()
    return gateway.deliveries.size === 0 && live() === 0
  }, cutMs)
  edge.closeAll()

  async function waitUntil(isSo: () => boolean, forMs: number): Promise<void> {
    for (const end = clockMs() + forMs; !isSo() && clockMs() < end; ) await sleep(lookMs)
  }
}

/**
 * Ends the parts of a server in order. If a part fails to end, the others are ended too, because the store still has to
 * take debits. @returns what the parts have thrown
 */
export async function endAll(ends: readonly (() => Promise<unknown> | undefined)[]): Promise<unknown[]> {
  const errors: unknown[] = []
  for (const end of ends) {
    try {
      await end()
    } catch (error) {
      errors.push(error)
    }
  }
  return errors
}

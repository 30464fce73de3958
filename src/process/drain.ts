import { setTimeout as sleep } from 'node:timers/promises'
import type { Gateway } from '../gateway/gateway.ts'
import type { Edge } from '../http/server.ts'
import type { Log } from '../log/log.ts'

/** How long what was cut at the drain's deadline may take to be settled and written out (faults F-P3). */
const cutMs = 4_000

/** How often a drain looks whether it is over. */
const lookMs = 20

type Draining = {
  edge: Edge
  /** Requests of operators that have no whole answer yet. */
  playing: () => number
  gateway: Gateway
  /** Monotonic; a test's is turned by hand. */
  clockMs: () => number
  log: Log
  /** True once nobody wants to wait any more. */
  isHurried: () => boolean
  /** From now on no connection is taken. */
  onClosing: () => void
}

/** Ends what runs: new connections for the delay, then none; streams until the deadline, then they are cut (reliability §7). */
export async function drainEdge(
  { edge, playing, gateway, clockMs, log, isHurried, onClosing }: Draining,
  { delayMs, deadlineMs }: { delayMs: number; deadlineMs: number },
): Promise<void> {
  const live = () => edge.running + playing()
  log.event('info', 'drain', { live: live(), delay_ms: delayMs })
  // A load balancer needs a moment to learn that we are leaving.
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
  // Their ends are on the way; a client that does not read gets no more than this. What comes through its checks meanwhile
  // is cut as well.
  await waitUntil(() => {
    for (const delivery of [...gateway.deliveries]) delivery.shutDown()
    return gateway.deliveries.size === 0 && live() === 0
  }, cutMs)
  edge.closeAll()

  async function waitUntil(isSo: () => boolean, forMs: number): Promise<void> {
    for (const end = clockMs() + forMs; !isSo() && clockMs() < end; ) await sleep(lookMs)
  }
}

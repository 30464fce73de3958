import type { Log } from '../log/log.ts'
import { families } from '../telemetry/families.ts'
import { Counter } from '../telemetry/instruments.ts'
import type { ConnectionWatch } from '../upstream/upstreams.ts'

const everyMs = 60_000

/**
 * Counts each event of bytes that nobody asked for (ruling Y14), and logs one a minute of each upstream. A broken one may send them
 * with each answer. `before` is how many events there were since the last line. @param clockMs monotonic
 */
export function createUnaskedLog(log: Log['event'], clockMs: () => number) {
  const counter = new Counter(families.unasked)
  const lines = new Map<string, { loggedMs: number; before: number }>()
  const note: ConnectionWatch['onUnasked'] = (upstream, place) => {
    counter.add(1, upstream)
    const last = lines.get(upstream)
    const nowMs = clockMs()
    if (last !== undefined && nowMs - last.loggedMs < everyMs) last.before++
    else {
      log('error', 'upstream_unasked', { upstream, place, ...(last?.before && { before: last.before }) })
      lines.set(upstream, { loggedMs: nowMs, before: 0 })
    }
  }
  return { note, families: [counter] }
}

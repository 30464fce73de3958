import type { ServerStore } from '../accounts/server-store.ts'
import { createTraffic } from '../accounts/usage/traffic.ts'

/** The time between two writes of the counts, in ms. A killed process loses its counts since the last write. */
const everyMs = 10_000

export type TrafficWriter = ReturnType<typeof createTrafficWriter>

/** Counts requests and how long they take, and writes the counts to the store regularly. */
export function createTrafficWriter(
  store: Pick<ServerStore, 'noteTraffic' | 'sharedTraffic'>,
  nowMs: () => number,
  clockMs: () => number,
) {
  const traffic = createTraffic(nowMs)
  let writtenMs = clockMs()
  let writing: Promise<boolean> = Promise.resolve(true)
  let isBehind = false
  store.sharedTraffic?.onWanted(() => void write())
  return { note: traffic.note, tick, write }

  function tick(): void {
    if (clockMs() - writtenMs >= everyMs) void write()
  }

  /** Writes the counts so far. @returns whether all counts are now in the store */
  function write(): Promise<boolean> {
    writtenMs = clockMs()
    const cells = traffic.take()
    // If a write fails, the store keeps the counts until the next call. So that call is made even without new counts.
    if (cells.length > 0 || isBehind)
      writing = store
        .noteTraffic(cells)
        .catch(() => false)
        .then((isWritten) => {
          isBehind = !isWritten
          return isWritten
        })
    return writing
  }
}

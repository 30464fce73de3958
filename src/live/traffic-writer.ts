import type { ServerStore } from '../accounts/server-store.ts'
import { createTraffic } from '../accounts/usage/traffic.ts'

/** The time between two writes of the counts, in ms. A killed process loses the counts since its last write. */
const everyMs = 10_000

export type TrafficWriter = ReturnType<typeof createTrafficWriter>

/** Counts requests, and writes the counts regularly. */
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

  /** Writes the counts so far. @returns whether they can be read from the store now */
  function write(): Promise<boolean> {
    writtenMs = clockMs()
    const cells = traffic.take()
    // A call that finds nothing waits for the write under way. Cells that a write could not store are kept by the store.
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

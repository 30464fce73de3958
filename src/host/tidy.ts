import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { readRss } from './rss.ts'

const everyMs = 1_000

/** A process that works less than this share of its time is idle. */
const busyMax = 0.1

/**
 * When a collection is worth its cost, 150 ms for a hundred megabytes. The process must have been idle at so many looks in a row,
 * and hold so many bytes more than its least. A collection discards compiled code with the last instance of a class that the code
 * knows. The requests after it then wait for 60 to 100 ms (docs/decisions/0061-code-stays-warm.md), so a short pause must give
 * back much.
 */
const worthwhile = [
  { looks: 2, bytes: 256 * 1024 * 1024 },
  { looks: 60, bytes: 128 * 1024 * 1024 },
]

/** The figures that are looked at, and the collection; a test passes its own. */
export type TidySources = {
  /** Resident memory, in bytes. */
  readRss: () => number
  /** The share of the time since the last look that the loop worked, 0 to 1. */
  readBusy: () => number
  /** Collects all there is, and gives the pages back. */
  collect: () => void
  /** Calls again and again; what is returned stops it. */
  every: (ms: number, tick: () => void) => () => void
}

/**
 * Gives back the memory that a burst of requests has left behind. The engine collects only when something is allocated. The
 * last garbage of a burst therefore stays until the next request, and so do the pages of what was collected
 * (docs/decisions/0052-stopped-readers.md).
 * @returns what stops it.
 */
export function tidyWhenIdle({ readRss, readBusy, collect, every }: TidySources = ofThisProcess()): () => void {
  /** For each pause, the least memory that there was since it, or a longer one, was last used. What a collection left then may be garbage a minute later. */
  const floors = worthwhile.map(() => Number.POSITIVE_INFINITY)
  let looks = 0
  return every(everyMs, () => {
    const rss = readRss()
    for (const [i, floor] of floors.entries()) floors[i] = Math.min(floor, rss)
    looks = readBusy() > busyMax ? 0 : looks + 1
    const used = worthwhile.findLastIndex((least, i) => looks >= least.looks && rss - floors[i]! >= least.bytes)
    if (used < 0) return
    collect()
    floors.fill(readRss(), 0, used + 1)
    looks = 0
  })
}

function ofThisProcess(): TidySources {
  let before = performance.eventLoopUtilization()
  return {
    readRss,
    readBusy() {
      const now = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(now, before)
      before = now
      return utilization
    },
    collect,
    every(ms, tick) {
      const timer = setInterval(tick, ms)
      timer.unref()
      return () => clearInterval(timer)
    },
  }
}

/** Node keeps the engine's function for it behind a flag, which one context is made with, and not before it is wanted. */
function collect(): void {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as NodeJS.GCFunction
  setFlagsFromString('--no-expose-gc')
  gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { every } from './timers.ts'

/** The largest delay that the flags accept, in ms: 25 days. V8's memory reducer then practically never starts. */
const never = 2 ** 31 - 1

/** Flags that V8 reads when it needs them. All supported versions of Node know them, except those with `sinceV8`. */
const flags: { name: string; value: number; sinceV8?: number }[] = [
  /**
   * The growth of the heap that triggers a full collection, in percent of the heap after the last such collection. By
   * default V8 allows 20 %, which causes a collection every 25,000 small requests. While V8's threads mark the heap,
   * requests on the same core take five times as long (docs/decisions/0060-room-for-the-heap.md).
   */
  { name: 'heap-growing-percent', value: 200 },
  /**
   * These two flags turn off V8's own memory reducer. The reducer would collect in any pause of eight seconds, and so
   * discard compiled code. It would also run 100 s after the last collection, even under load, and stop requests for 40
   * to 55 ms (docs/decisions/0061-code-stays-warm.md). Instead, `tidyWhenIdle` decides when a collection is worthwhile.
   * The second flag came with Node 26; earlier versions have a constant in its place.
   */
  { name: 'gc-memory-reducer-start-delay-ms', value: never },
  { name: 'memory-reducer-delay-ms', value: never, sinceV8: 14 },
]

/** Makes V8 collect the whole heap less often. This changes the whole process, from the next collection on. */
export function calmCollector(): void {
  const v8 = Number.parseInt(process.versions.v8, 10)
  for (const { name, value, sinceV8 = 0 } of flags) if (v8 >= sinceV8) setFlagsFromString(`--${name}=${value}`)
}

/** The time between two checks whether the process is idle, in ms. */
const everyMs = 1_000

/** A process counts as idle if its event loop works less than this share of the time. */
const busyMax = 0.1

/**
 * The conditions of a collection, which takes 150 ms for a hundred megabytes. Both conditions of one row must be met:
 *
 * - `looks`: the process was idle in this many checks in a row. There is one check each second.
 * - `bytes`: the process uses at least this much more memory than its recent minimum.
 *
 * A collection can also discard compiled code. The next requests are then 60 to 100 ms slower
 * (docs/decisions/0061-code-stays-warm.md). So after only a few idle checks, a collection must free more memory.
 */
const worthwhile = [
  { looks: 2, bytes: 256 * 1024 * 1024 },
  { looks: 60, bytes: 128 * 1024 * 1024 },
]

/** The functions that read the figures, collect garbage and set a timer. A test passes its own functions. */
type TidySources = {
  /** Resident memory, in bytes. */
  readRss: () => number
  /** The share of the time since the last call during which the event loop worked, 0 to 1. */
  readBusy: () => number
  /** Collects all garbage and returns the memory pages to the system. */
  collect: () => void
  every: typeof every
}

/**
 * Frees the memory that a burst of requests has left. V8 collects garbage only when something is allocated. Without
 * this function, the garbage would stay until the next requests (docs/decisions/0052-stopped-readers.md).
 * @returns a function that ends the checks
 */
export function tidyWhenIdle({ readRss, readBusy, collect, every }: TidySources = ofThisProcess()): () => void {
  /**
   * For each row of `worthwhile`: the least memory in use since the last collection that counts for the row. A
   * collection counts for the row that caused it, and for the rows before.
   */
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
    every,
  }
}

/**
 * Collects all garbage. V8 offers a function for this only under a flag. So the flag is set, and the function is taken
 * from a new context.
 */
function collect(): void {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as NodeJS.GCFunction
  setFlagsFromString('--no-expose-gc')
  gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}

let last = 0

/**
 * Resident memory, in bytes. Linux reports it in a file. If the process has no descriptor left to read the file (faults
 * F-P11), the value of the last call is returned.
 */
export function readRss(): number {
  try {
    last = process.memoryUsage.rss()
  } catch {
    // The process has no descriptor left, so the value of the last call is returned.
  }
  return last
}

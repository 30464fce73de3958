import { getHeapStatistics } from 'node:v8'

/** A loop that answers this late, for this long, is overloaded (reliability §7). */
const lagMaxMs = 200
const lagForMs = 5_000
const heapShareMax = 0.85
const everyMs = 500

/** Watches the process itself: while it cannot keep up, new requests are turned away so that live streams are not. */
export type LoadWatch = { readonly isShedding: boolean; stop(): void }

/** What is watched; a test has its own. */
export type LoadSources = {
  /** Heap in use, as a share of its limit. */
  readHeapShare: () => number
  /** Calls again and again; what is returned stops it. */
  every: (ms: number, tick: () => void) => () => void
}

/** @param clockMs monotonic. */
export function createLoadWatch(clockMs: () => number, sources: LoadSources = ofThisProcess): LoadWatch {
  let lateSinceMs: number | undefined
  let isLate = false
  let isFull = false
  let expectedMs = clockMs() + everyMs
  const stop = sources.every(everyMs, () => {
    const nowMs = clockMs()
    const lagMs = nowMs - expectedMs
    expectedMs = nowMs + everyMs
    if (lagMs < lagMaxMs) lateSinceMs = undefined
    else lateSinceMs ??= nowMs
    isLate = lateSinceMs !== undefined && nowMs - lateSinceMs >= lagForMs
    isFull = sources.readHeapShare() > heapShareMax
  })
  return {
    get isShedding() {
      return isLate || isFull
    },
    stop,
  }
}

const ofThisProcess: LoadSources = {
  readHeapShare() {
    const { used_heap_size, heap_size_limit } = getHeapStatistics()
    return used_heap_size / heap_size_limit
  },
  every(ms, tick) {
    const timer = setInterval(tick, ms)
    return () => clearInterval(timer)
  },
}

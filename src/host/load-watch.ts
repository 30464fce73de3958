import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import { readRss } from './rss.ts'

/** A loop that answers this late, for this long, is overloaded (reliability §7). */
const lagMaxMs = 200
const lagForMs = 5_000
/** This late once is felt by those who pay: what does not makes way (ruling R18). */
const strainMs = 50
const heapShareMax = 0.85
/** Of the memory that the process may have: what lies beside the heap, bodies and buffers, counts too (B10). */
const memoryShareMax = 0.85
const everyMs = 500

/**
 * The most memory that request bodies may hold in one process, in bytes (ruling R18): a quarter of the heap's limit. Bodies are
 * outside of the heap, and a body becomes twice as large when it is translated.
 */
export function bodiesBytesMax(): number {
  return getHeapStatistics().heap_size_limit / 4
}

/** Watches the process itself: while it cannot keep up, new requests are turned away so that live streams are not. */
export type LoadWatch = { readonly isShedding: boolean; readonly isStrained: boolean; stop(): void }

/** The figures that are watched; a test passes its own. */
export type LoadSources = {
  /** Heap in use, as a share of its limit. */
  readHeapShare: () => number
  /** Resident memory, as a share of what this process may have. */
  readMemoryShare: () => number
  /** Calls again and again; what is returned stops it. */
  every: (ms: number, tick: () => void) => () => void
}

/** @param clockMs monotonic. */
export function createLoadWatch(clockMs: () => number, sources: LoadSources = ofThisProcess): LoadWatch {
  let lateSinceMs: number | undefined
  let isLate = false
  let isStrained = false
  let isFull = false
  let expectedMs = clockMs() + everyMs
  const stop = sources.every(everyMs, () => {
    const nowMs = clockMs()
    const lagMs = nowMs - expectedMs
    expectedMs = nowMs + everyMs
    if (lagMs < lagMaxMs) lateSinceMs = undefined
    else lateSinceMs ??= nowMs
    isLate = lateSinceMs !== undefined && nowMs - lateSinceMs >= lagForMs
    isStrained = lagMs >= strainMs
    isFull = sources.readHeapShare() > heapShareMax || sources.readMemoryShare() > memoryShareMax
  })
  return {
    get isShedding() {
      return isLate || isFull
    },
    get isStrained() {
      return isStrained
    },
    stop,
  }
}

const ofThisProcess: LoadSources = {
  readHeapShare() {
    const { used_heap_size, heap_size_limit } = getHeapStatistics()
    return used_heap_size / heap_size_limit
  },
  readMemoryShare: () => readRss() / memoryMax,
  every(ms, tick) {
    const timer = setInterval(tick, ms)
    return () => clearInterval(timer)
  },
}

/** A container's limit where there is one, else what the machine has, in bytes. */
const memoryMax = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem())

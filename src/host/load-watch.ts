import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import { readRss } from './collector.ts'
import { every } from './timers.ts'

/** The process is overloaded if the event loop is late by `lagMaxMs` for at least `lagForMs` (reliability §7). */
const lagMaxMs = 200
const lagForMs = 5_000
/** If the event loop is this late in one check, in ms, free requests wait for paid requests (ruling R18). */
const strainMs = 50
const heapShareMax = 0.85
/** Above this share of its memory limit, the process refuses new requests. Memory outside the heap counts too (B10). */
const memoryShareMax = 0.85
const everyMs = 500

/**
 * The most memory that request bodies may take in one process, in bytes: a quarter of the heap's limit (ruling R18).
 * Bodies are outside the heap, and translating a body takes twice its size.
 */
export function bodiesBytesMax(): number {
  return getHeapStatistics().heap_size_limit / 4
}

/** Watches whether the process is overloaded. If so, new requests are refused, so that running streams continue. */
export type LoadWatch = { readonly isShedding: boolean; readonly isStrained: boolean; stop(): void }

/** The functions that read the figures and set a timer. A test passes its own functions. */
type LoadSources = {
  /** Heap in use, as a share of its limit. */
  readHeapShare: () => number
  /** Resident memory, as a share of what this process may use. */
  readMemoryShare: () => number
  every: typeof every
}

/** Creates the watch for overload. @param clockMs returns monotonic milliseconds */
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
  every,
}

/** The memory limit of the container if there is one, otherwise the memory of the machine, in bytes. */
const memoryMax = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem())

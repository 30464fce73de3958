import { getHeapStatistics } from 'node:v8'

/** A loop that answers this late, for this long, is overloaded (reliability §7). */
const lagMaxMs = 200
const lagForMs = 5_000
const heapShareMax = 0.85

/** Watches the process itself: while it cannot keep up, new requests are turned away so that live streams are not. */
export type LoadWatch = { readonly isShedding: boolean; stop(): void }

/** @param clockMs monotonic. */
export function createLoadWatch(clockMs: () => number): LoadWatch {
  let lateSinceMs: number | undefined
  let isLate = false
  let isFull = false
  let expectedMs = clockMs()
  const everyMs = 500
  const timer = setInterval(() => {
    const nowMs = clockMs()
    const lagMs = nowMs - expectedMs
    expectedMs = nowMs + everyMs
    if (lagMs < lagMaxMs) lateSinceMs = undefined
    else lateSinceMs ??= nowMs
    isLate = lateSinceMs !== undefined && nowMs - lateSinceMs >= lagForMs
    const { used_heap_size, heap_size_limit } = getHeapStatistics()
    isFull = used_heap_size > heapShareMax * heap_size_limit
  }, everyMs)
  expectedMs = clockMs() + everyMs
  return {
    get isShedding() {
      return isLate || isFull
    },
    stop() {
      clearInterval(timer)
    },
  }
}

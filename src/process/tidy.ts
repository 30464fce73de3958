import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { readRss } from './rss.ts'

const everyMs = 1_000

/** A process that works less than this share of its time is idle; after so many looks of that in a row it is tidied up. */
const busyMax = 0.1
const looksMin = 2

/** So much more than last time is worth a collection, in bytes: one of a hundred megabytes takes some 150 ms. */
const growthMin = 128 * 1024 * 1024

/** What is looked at; a test has its own. */
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
 * Gives back what a burst has left behind. The engine collects when something is to be allocated: what the last of it made
 * garbage stays for as long as nobody asks anything, and the pages of what was collected with it
 * (docs/decisions/0052-stopped-readers.md).
 * @returns what stops it.
 */
export function tidyWhenIdle({ readRss, readBusy, collect, every }: TidySources = ofThisProcess()): () => void {
  /** The least that there was since the last time. */
  let floor = Number.POSITIVE_INFINITY
  let looks = 0
  return every(everyMs, () => {
    const rss = readRss()
    floor = Math.min(floor, rss)
    looks = readBusy() > busyMax ? 0 : looks + 1
    if (looks < looksMin || rss - floor < growthMin) return
    collect()
    floor = readRss()
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

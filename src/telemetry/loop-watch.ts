import { monitorEventLoopDelay } from 'node:perf_hooks'

/** How often the loop is looked at: what it is late by between two looks is seen at the next. */
const resolutionMs = 20
/** Of two histograms one is emptied in turn, so that the other has the last 30 to 60 s whoever asks how often. */
const turnMs = 30_000

/** How late the event loop was, in seconds. */
export type LoopLag = { mean: number; max: number; p50: number; p90: number; p99: number }

export type LoopWatch = { read(): LoopLag; stop(): void }

export function watchLoop(): LoopWatch {
  let [older, younger] = [open(), open()]
  const timer = setInterval(() => {
    older.reset()
    ;[older, younger] = [younger, older]
  }, turnMs)
  timer.unref()
  return {
    read: () => ({
      mean: lagOf(older.mean),
      max: lagOf(older.max),
      p50: lagOf(older.percentile(50)),
      p90: lagOf(older.percentile(90)),
      p99: lagOf(older.percentile(99)),
    }),
    stop() {
      clearInterval(timer)
      older.disable()
      younger.disable()
    },
  }
}

function open() {
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs })
  histogram.enable()
  return histogram
}

/** What is measured is the time from one look to the next, in ns; an empty histogram says nothing. */
function lagOf(nanos: number): number {
  return Number.isFinite(nanos) ? Math.max(0, nanos / 1e9 - resolutionMs / 1_000) : 0
}

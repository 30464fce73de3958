import { monitorEventLoopDelay } from 'node:perf_hooks'

/** The time between two measurements of the event loop, in ms. */
const resolutionMs = 20
/** One of two histograms is emptied in turn, so that the other one always covers the last 30 to 60 s. */
const turnMs = 30_000

/** The delay of the event loop, in seconds. */
type LoopLag = { mean: number; max: number; p50: number; p90: number; p99: number }

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

/** Node measures the time between two looks, in ns, so the interval itself is subtracted. An empty histogram has no number. */
function lagOf(nanos: number): number {
  return Number.isFinite(nanos) ? Math.max(0, nanos / 1e9 - resolutionMs / 1_000) : 0
}

import { readdirSync, readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Gateway } from '../gateway/gateway.ts'
import type { RecordListener } from '../gateway/record.ts'
import { createRequestFigures } from './count-requests.ts'
import { writeExposition } from './exposition.ts'
import { families, processFamilies } from './families.ts'
import { type Family, Reading } from './instruments.ts'
import { serviceFigures } from './service-figures.ts'

/** The metrics of a process, for scrapers. */
type Metrics = {
  /** Must be called for every request. */
  note: RecordListener
  /** All families, in the order in which they are written. */
  readonly families: readonly Family[]
  /** Returns the text of a scrape. */
  write(): string
  /** Adds the metrics of this gateway; called once. @param more families of other parts */
  watch(gateway: Gateway, more?: readonly Family[]): void
  /** The delay of the event loop in the last minute or so, as the 99th percentile, in ms. */
  readLagMs(): number
  stop(): void
}

/**
 * @param version of triwire
 * @param replica the name of this server among those of its store; undefined if it is alone
 */
export function createMetrics(version: string, replica?: string): Metrics {
  const figures = createRequestFigures()
  const loop = watchLoop()
  const build = new Reading(families.build, (set) => set(1, version, process.version.slice(1)))
  const all: Family[] = [build, ...figures.families, ...processFigures(loop)]
  return {
    note: figures.note,
    families: all,
    write: () => writeExposition(all, replica),
    watch: (gateway, more = []) => void all.splice(1 + figures.families.length, 0, ...serviceFigures(gateway), ...more),
    readLagMs: () => loop.read().p99 * 1_000,
    stop: loop.stop,
  }
}

/** Metrics of the whole process, with all its threads. */
function processFigures(loop: LoopWatch): Family[] {
  const startedSeconds = Math.round(Date.now() / 1_000 - process.uptime())
  const read: Record<keyof typeof processFamilies, () => number | undefined> = {
    cpuUser: () => process.cpuUsage().user / 1e6,
    cpuSystem: () => process.cpuUsage().system / 1e6,
    cpu() {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    },
    started: () => startedSeconds,
    resident: () => tryTo(() => process.memoryUsage.rss()),
    // The folder itself is open while it is read.
    openFds: () => tryTo(() => readdirSync('/proc/self/fd').length - 1),
    maxFds: () => tryTo(readMaxFds),
    lagMean: () => loop.read().mean,
    lagMax: () => loop.read().max,
    lagP50: () => loop.read().p50,
    lagP90: () => loop.read().p90,
    lagP99: () => loop.read().p99,
    heapTotal: () => tryTo(() => process.memoryUsage().heapTotal),
    heapUsed: () => tryTo(() => process.memoryUsage().heapUsed),
    external: () => tryTo(() => process.memoryUsage().external),
  }
  return Object.entries(read).map(([name, look]) => {
    return new Reading(processFamilies[name as keyof typeof processFamilies], (set) => {
      const value = look()
      if (value !== undefined) set(value)
    })
  })
}

function readMaxFds(): number | undefined {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return soft === undefined ? undefined : Number(soft)
}

/** Returns undefined if the system does not have the figure, or no file descriptor is left to read it (faults F-P11). */
function tryTo(look: () => number | undefined): number | undefined {
  try {
    return look()
  } catch {
    return undefined
  }
}

/** The time between two measurements of the event loop, in ms. */
const resolutionMs = 20
/** One of two histograms is emptied in turn, so that the other one always covers the last 30 to 60 s. */
const turnMs = 30_000

/** The delay of the event loop, in seconds. */
type LoopLag = { mean: number; max: number; p50: number; p90: number; p99: number }

type LoopWatch = { read(): LoopLag; stop(): void }

/** Watches the event loop. */
function watchLoop(): LoopWatch {
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

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
  /** Receives the record of a request. Must be called for every request. */
  note: RecordListener
  /** All families, in the order in which they are written. */
  readonly families: readonly Family[]
  /** Returns all metrics as the text of a scrape. */
  write(): string
  /** Adds the metrics of this gateway. Called once. @param more families of other modules */
  watch(gateway: Gateway, more?: readonly Family[]): void
  /** Returns the 99th percentile of the event loop's delay over about the last minute, in ms. */
  readLagMs(): number
  stop(): void
}

/**
 * @param version of triwire
 * @param replica the name of this server among the servers of its store; undefined if it is the only one
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

/** Makes the metrics of the whole process, including all its threads. */
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
    // The folder is itself open while it is read, so it is subtracted.
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

/** Returns undefined if the system lacks the figure, or if no file descriptor is free to read it (faults F-P11). */
function tryTo(look: () => number | undefined): number | undefined {
  try {
    return look()
  } catch {
    return undefined
  }
}

/** The time between two measurements of the event loop, in ms. */
const resolutionMs = 20
/**
 * The time after which one of two histograms is emptied, in ms. They take turns, so one always covers the last 30 to 60
 * s.
 */
const turnMs = 30_000

/** The delay of the event loop, in seconds. */
type LoopLag = { mean: number; max: number; p50: number; p90: number; p99: number }

type LoopWatch = { read(): LoopLag; stop(): void }

/** Measures the delay of the event loop. */
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

/**
 * Converts a measurement in ns to a delay in seconds. Node measures the time between two timer calls, so the interval
 * is subtracted. An empty histogram has no percentile (NaN) and counts as 0.
 */
function lagOf(nanos: number): number {
  return Number.isFinite(nanos) ? Math.max(0, nanos / 1e9 - resolutionMs / 1_000) : 0
}

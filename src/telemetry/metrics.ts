import type { Gateway } from '../gateway/gateway.ts'
import type { RecordListener } from '../gateway/record.ts'
import { createRequestFigures } from './count-requests.ts'
import { writeExposition } from './exposition.ts'
import { families } from './families.ts'
import { type Family, Reading } from './instruments.ts'
import { watchLoop } from './loop-watch.ts'
import { processFigures } from './process-figures.ts'
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

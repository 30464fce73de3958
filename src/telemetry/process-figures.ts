import { readdirSync, readFileSync } from 'node:fs'
import { processFamilies as facts } from './families.ts'
import { type Family, Reading } from './instruments.ts'
import type { LoopWatch } from './loop-watch.ts'

/** Metrics of the whole process, with all its threads. */
export function processFigures(loop: Pick<LoopWatch, 'read'>): Family[] {
  const startedSeconds = Math.round(Date.now() / 1_000 - process.uptime())
  const read: Record<keyof typeof facts, () => number | undefined> = {
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
    return new Reading(facts[name as keyof typeof facts], (set) => {
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

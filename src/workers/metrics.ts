import { createMetricsHandler } from '../admin/metrics.ts'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/problem.ts'
import { isLoopback } from '../config/values.ts'
import { expositionType } from '../telemetry/exposition.ts'
import { mergeExpositions, type WorkerExposition } from '../telemetry/merge-expositions.ts'

/** A worker writes from memory. */
const patienceMs = 4_000

/** A worker's number, and its admin listener. */
export type ScrapedWorker = { number: number; origin: string }

/** Answers a scraper for all workers, who have its token from the same file. */
export type WorkerMetrics = {
  answer: ReturnType<typeof createMetricsHandler>
  /** After a reload: the token may be another. What is wrong with the file the workers tell. */
  adopt(reread: () => Config): void
}

export function openWorkerMetrics(
  config: Config,
  workers: () => readonly ScrapedWorker[],
  reportBug: (bug: Error) => void,
): WorkerMetrics {
  let { token } = config.metrics
  /** The one before: a worker may still wait with its reload for what the new file names. */
  let earlier = token
  return {
    answer: createMetricsHandler({
      isLoopback: isLoopback(config.adminListen),
      token: () => token?.reveal(),
      contentType: expositionType,
      write: () => scrapeWorkers(workers(), [token?.reveal(), earlier?.reveal()]),
      reportBug,
    }),
    adopt(reread) {
      try {
        const { token: next } = reread().metrics
        if (next?.reveal() !== token?.reveal()) earlier = token
        token = next
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error
      }
    },
  }
}

type Token = string | undefined

/** The metrics of all workers, each series with its worker's number (ruling X9). @param tokens what they may ask for, one after the other */
export async function scrapeWorkers(workers: readonly ScrapedWorker[], tokens: readonly Token[]): Promise<string> {
  const parts = await Promise.all(workers.map((worker) => scrape(worker, tokens)))
  return mergeExpositions(parts.filter((part) => part !== undefined))
}

async function scrape(
  { number, origin }: ScrapedWorker,
  tokens: readonly Token[],
): Promise<WorkerExposition | undefined> {
  const signal = AbortSignal.timeout(patienceMs)
  try {
    for (const token of new Set(tokens)) {
      const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
      const response = await fetch(`${origin}/metrics`, { headers, signal })
      const text = await response.text()
      if (response.ok) return { worker: number, text }
    }
    return undefined
  } catch {
    // The worker is about to end, or to begin.
    return undefined
  }
}

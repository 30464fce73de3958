import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/problem.ts'
import { isLoopback } from '../config/values.ts'
import { createMetricsHandler } from '../http/admin-metrics.ts'
import { expositionType } from '../telemetry/exposition.ts'
import { mergeExpositions, type Part } from '../telemetry/merge-expositions.ts'

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
  return {
    answer: createMetricsHandler({
      isLoopback: isLoopback(config.adminListen),
      token: () => token?.reveal(),
      contentType: expositionType,
      write: () => scrapeWorkers(workers(), token?.reveal()),
      reportBug,
    }),
    adopt(reread) {
      try {
        token = reread().metrics.token
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error
      }
    },
  }
}

/** What all workers count, each series with its worker's number (ruling X9). @param token what they ask for */
export async function scrapeWorkers(workers: readonly ScrapedWorker[], token: string | undefined): Promise<string> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const parts = await Promise.all(workers.map((worker) => scrape(worker, headers)))
  return mergeExpositions(parts.filter((part) => part !== undefined))
}

async function scrape({ number, origin }: ScrapedWorker, headers: Record<string, string>): Promise<Part | undefined> {
  try {
    const response = await fetch(`${origin}/metrics`, { headers, signal: AbortSignal.timeout(patienceMs) })
    return response.ok ? { worker: number, text: await response.text() } : undefined
  } catch {
    // It is about to end, or to begin.
    return undefined
  }
}

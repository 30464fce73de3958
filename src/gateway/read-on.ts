import type { Model } from '../catalog/model.ts'
import type { UsageReport } from '../inference/usage.ts'
import { type Exchange, mayCallTools } from './exchange.ts'

/** How long the end of an answer waits for its figures at a stop sequence of ours, in ms (ruling C12). */
export const stopReadMs = 3_000

/** Why an upstream is read on though its answer is over for the client, and until when (rulings C4, C12). */
export type Reading = {
  sinceMs: number
  untilMs: number
  /** How the request is told to have ended. `ok`: the client is there and waits for its end, at a stop sequence. */
  outcome: 'ok' | 'client_abort' | 'client_stall'
  /** What the model had reported when the client had seen its last; undefined where it had seen nothing of an answer. */
  told: UsageReport | undefined
}

/**
 * Whether figures that decide the bill come only at the end of the stream (ruling C12): reasoning that is not shown, a
 * cached share that is cheaper, calls of hosted tools that have a price (C11). A model that has told its input has told
 * what of it was cached.
 */
export function tellsLate(report: UsageReport, exchange: Exchange, { prices }: Model): boolean {
  if (exchange.mayHideReasoning || (prices.calls && mayCallTools(exchange))) return true
  const isInputTold = report.inputTokens !== undefined || report.cacheReadTokens !== undefined
  return !isInputTold && [prices, ...(prices.steps ?? [])].some((rates) => rates.cacheReadNanos < rates.inputNanos)
}

/** A report that is not final, as evidence: what it says of the input, and of the output what was told for the client. */
export function withoutLaterOutput(report: UsageReport, told: UsageReport): UsageReport {
  const evidence = { ...report }
  for (const name of ['outputTokens', 'reasoningTokens', 'isOutputPartial'] as const) {
    delete evidence[name]
    if (told[name] !== undefined) Object.assign(evidence, { [name]: told[name] })
  }
  return evidence
}

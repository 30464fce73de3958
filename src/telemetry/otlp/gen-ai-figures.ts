import type { CallRecord } from '../../gateway/record.ts'
import { Counter, type Family, Histogram } from '../instruments.ts'
import { genAiMetrics as facts } from './conventions.ts'
import { failureOf } from './spans.ts'

/** The metrics of OpenTelemetry's conventions for generative AI. One operation is a request with all its attempts. */
type GenAiFigures = { note(record: CallRecord): void; families: readonly Family[] }

/** Creates the metrics. @param isCompat whether to add `tokenUsage`, which the conventions had before 2026 */
export function createGenAiFigures(isCompat: boolean): GenAiFigures {
  const duration = new Histogram(facts.duration)
  const firstChunk = new Histogram(facts.firstChunk)
  const inputDistribution = new Histogram(facts.inputDistribution)
  const outputDistribution = new Histogram(facts.outputDistribution)
  const input = new Counter(facts.input)
  const cacheRead = new Counter(facts.cacheRead)
  const cacheWrite = new Counter(facts.cacheWrite)
  const output = new Counter(facts.output)
  const reasoning = new Counter(facts.reasoning)
  const tokenUsage = isCompat ? new Histogram(facts.tokenUsage) : undefined
  const all = [duration, firstChunk, inputDistribution, outputDistribution, input, cacheRead, cacheWrite, output]
  return { note, families: [...all, reasoning, ...(tokenUsage ? [tokenUsage] : [])] }

  function note(record: CallRecord): void {
    const { tries, model = '', upstream = '', endMs } = record
    if (tries === undefined || endMs === undefined) return
    const beforeMs = tries[0]!.startedMs - (record.beganMs ?? 0)
    const failure = failureOf(record) ?? ''
    duration.observe((endMs - beforeMs) / 1_000, model, upstream, failure)
    if (record.stream && record.status === 200 && record.firstByteMs !== undefined)
      firstChunk.observe((record.firstByteMs - beforeMs) / 1_000, model, upstream, failure)
    const { usage } = record
    const inputTokens = usage ? usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens : 0
    // An operation without usage adds 0 tokens to the sums and no value to the distributions.
    input.add(inputTokens, model, upstream)
    output.add(usage?.outputTokens ?? 0, model, upstream)
    if (usage === undefined) return
    cacheRead.add(usage.cacheReadTokens, model, upstream)
    cacheWrite.add(usage.cacheWriteTokens, model, upstream)
    reasoning.add(usage.reasoningTokens, model, upstream)
    inputDistribution.observe(inputTokens, model, upstream)
    outputDistribution.observe(usage.outputTokens, model, upstream)
    tokenUsage?.observe(inputTokens, model, upstream, 'input')
    tokenUsage?.observe(usage.outputTokens, model, upstream, 'output')
  }
}

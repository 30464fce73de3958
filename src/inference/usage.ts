/** Token counts of one answer. The four counters are disjoint: no token is counted twice (ruling N2). */
export type Usage = {
  /** Read fresh: neither from cache nor into cache. */
  inputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
  /** The part of `cacheWriteTokens` written for an hour; it may have a price of its own (ruling C1). */
  cacheWrite1hTokens: number
  /** Reasoning included. */
  outputTokens: number
  /** A part of `outputTokens`. */
  reasoningTokens: number
  /** True when at least one counter is our estimate and not the model's word. */
  estimated: boolean
}

/** What a model has reported so far, in the same disjoint counters. `undefined` means it never said. */
export type UsageReport = {
  inputTokens?: number
  cacheReadTokens?: number
  cacheWriteTokens?: number
  cacheWrite1hTokens?: number
  outputTokens?: number
  reasoningTokens?: number
  /** The output is a count from under way, not the one of the whole answer. */
  isOutputPartial?: boolean
  /** What was wrong with the figures (ruling C6): names for the log, never a reason to refuse. */
  flags?: string[]
}

/** Where the figures of a bill come from, weakest counter first (ruling C3). */
export type UsageSource = 'final' | 'partial' | 'estimated' | 'waived'

/** The counters of a usage, by name. */
export const counters = [
  'inputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'cacheWrite1hTokens',
  'outputTokens',
  'reasoningTokens',
] as const

/**
 * A later report over an earlier one: per counter the last value wins, it may be smaller (a start may carry an
 * estimate); a report of nothing but zeros after a real one is ignored (I9). An output that was said before figures that
 * cannot be believed is one from under way (ruling C6).
 */
export function mergeUsage(earlier: UsageReport, later: UsageReport): UsageReport {
  const isSilent = counters.every((counter) => !later[counter])
  const wasReal = counters.some((counter) => (earlier[counter] ?? 0) > 0)
  const isIgnored = isSilent && wasReal
  if (isIgnored && !later.flags) return earlier
  const merged: UsageReport = { ...earlier }
  if (!isIgnored) for (const counter of counters) if (later[counter] !== undefined) merged[counter] = later[counter]
  const isPartial = later.outputTokens === undefined ? earlier.isOutputPartial || later.flags : later.isOutputPartial
  if (isPartial) merged.isOutputPartial = true
  else delete merged.isOutputPartial
  const flags = [...new Set([...(earlier.flags ?? []), ...(later.flags ?? [])])]
  if (flags.length) merged.flags = flags
  return merged
}

/** The largest count that is believed (ruling C6). */
export const tokenCountMax = 2 ** 31

/** A count as a model may report it: a non-negative whole number of believable size, else undefined. */
export function readCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= tokenCountMax
    ? value
    : undefined
}

export type UsageEvidence = {
  report: UsageReport
  /** True when the answer ended by the model's own word, so that its report is final. */
  isComplete: boolean
  /** Our estimates, asked for only when the model is silent or not believed. */
  estimateInput: () => number
  /** Of all that was produced so far, reasoning and hidden text included. */
  estimateOutput: () => number
  /** Of reasoning that nothing was told of, by its time; asked for where the report is not final (ruling C12). */
  estimateHidden?: () => number
  /** The output cap that was sent to the model, in tokens. */
  outputTokensCap: number
}

/**
 * What is billed (rulings C3, C6): per counter the final figure, else the last partial one, for output of a cut answer
 * never below the estimate of what was produced, else the estimate. An output above twice the cap is not believed. What
 * is estimated of hidden reasoning does not lift the output above the cap (ruling C12).
 */
export function weighUsage(evidence: UsageEvidence): { usage: Usage; source: UsageSource; flags: string[] } {
  const { report, isComplete, outputTokensCap } = evidence
  const flags = [...(report.flags ?? [])]
  let source: UsageSource = isComplete ? 'final' : 'partial'
  let estimated = false

  let inputTokens = report.inputTokens
  if (inputTokens === undefined) {
    // Cached tokens without a total: what is not cached is the rest of our estimate.
    const cached = (report.cacheReadTokens ?? 0) + (report.cacheWriteTokens ?? 0)
    inputTokens = Math.max(0, evidence.estimateInput() - cached)
    flags.push('input_estimated')
    estimated = true
  }
  let outputTokens = report.outputTokens
  if (outputTokens !== undefined && outputTokens > 2 * outputTokensCap) {
    flags.push('output_absurd')
    outputTokens = undefined
  }
  let reasoningTokens = report.reasoningTokens ?? 0
  if (outputTokens === undefined || !isComplete || report.isOutputPartial) {
    const shown = evidence.estimateOutput()
    const hidden = isComplete ? 0 : Math.min(evidence.estimateHidden?.() ?? 0, Math.max(0, outputTokensCap - shown))
    if (outputTokens === undefined || shown + hidden > outputTokens) {
      outputTokens = shown + hidden
      flags.push('output_estimated')
      estimated = true
      if (hidden > 0) flags.push('reasoning_estimated')
      reasoningTokens = Math.max(reasoningTokens, hidden)
    }
  }
  if (estimated) source = 'estimated'
  const cacheWriteTokens = report.cacheWriteTokens ?? 0
  return {
    usage: {
      inputTokens,
      cacheReadTokens: report.cacheReadTokens ?? 0,
      cacheWriteTokens,
      cacheWrite1hTokens: Math.min(report.cacheWrite1hTokens ?? 0, cacheWriteTokens),
      outputTokens,
      reasoningTokens: Math.min(reasoningTokens, outputTokens),
      estimated,
    },
    source,
    flags,
  }
}

import { holdsMedia } from './estimate-media.ts'

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

/** Of what came to nothing. */
export const noUsage: Usage = {
  inputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  cacheWrite1hTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  estimated: false,
}

/** Calls of the provider's own tools in one answer, by their kind: `web_search`. */
export type Calls = Readonly<Record<string, number>>

/**
 * The counters that a model has reported so far, in the same disjoint form. `undefined` means it never reported one.
 */
export type UsageReport = {
  inputTokens?: number
  cacheReadTokens?: number
  cacheWriteTokens?: number
  cacheWrite1hTokens?: number
  outputTokens?: number
  reasoningTokens?: number
  /** The output is a count from under way, not the one of the whole answer. */
  isOutputPartial?: boolean
  /** Calls of hosted tools as it counts them, and as they were seen to come by (ruling C11). */
  calls?: Calls
  callsSeen?: Calls
  /** The faults of the figures (ruling C6): names for the log, never a reason to refuse. */
  flags?: string[]
  /** The models that the answer names as its own (ruling Y13). */
  models?: readonly string[]
  /** The tier, speed and geography that it names, each as last said, by its member (ruling Y17). */
  service?: Readonly<Record<string, string>>
  /** The provider's own bill for it, as a decimal text. Never shown to clients (ruling P10). */
  costReported?: string
}

/** An answer names one model; of one that names more, so many are kept, and so much of each. */
const modelsMax = 8
const modelCharactersMax = 256

/** A report that knows of the model and the service that an answer, or a part of it, names as its own. */
export function noteAnswer(report: UsageReport, answer: Record<string, unknown>): UsageReport {
  const { models = [] } = report
  const name = answer['model']
  const served = noteService(report, answer)
  if (typeof name !== 'string' || name === '' || models.includes(name) || models.length >= modelsMax) return served
  return { ...served, models: [...models, name.slice(0, modelCharactersMax)] }
}

/** Members of an answer, or of its usage, that name another price than that of its tokens. */
export const serviceMembers = ['service_tier', 'speed', 'inference_geo'] as const
const serviceCharactersMax = 64

/** A report that knows of the service that an object names: an answer, a part of one, or its usage (ruling Y17). */
export function noteService(report: UsageReport, object: Record<string, unknown>): UsageReport {
  let noted = report
  for (const member of serviceMembers) {
    const word = object[member]
    if (typeof word === 'string' && word !== noted.service?.[member])
      noted = { ...noted, service: { ...noted.service, [member]: word.slice(0, serviceCharactersMax) } }
  }
  return noted
}

/** No provider charges more for an answer, in the currency of its bill. */
const costMax = 1_000_000

/**
 * A report that knows of the provider's own bill, if the usage has one. Pages as stored in November 2026:
 * - xAI counts 10⁻¹⁰ USD in `cost_in_usd_ticks` (docs.x.ai/developers/cost-tracking).
 * - OpenRouter has its credits in `cost` (openrouter.ai/docs, Usage Accounting).
 * - Perplexity has a map there with `total_cost`.
 */
export function noteCost(
  report: UsageReport,
  { cost_in_usd_ticks: ticks, cost }: Record<string, unknown>,
): UsageReport {
  if (ticks === undefined && cost === undefined) return report
  const said = typeof cost === 'object' && cost !== null ? (cost as Record<string, unknown>)['total_cost'] : cost
  const amount = typeof ticks === 'number' ? ticks / 10 ** 10 : said
  if (typeof amount !== 'number' || !(amount >= 0 && amount <= costMax)) return report
  return { ...report, costReported: amount.toFixed(12).replace(/\.?0+$/, '') }
}

/** The source of the figures of a bill, weakest counter first (ruling C3). */
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
 * A later report over an earlier one: per counter the last value wins. It may be smaller, since a start may carry an
 * estimate. A report of zeros alone after a real one is ignored (I9). An output that was reported before figures that
 * cannot be believed is one from under way (ruling C6).
 */
export function mergeUsage(earlier: UsageReport, later: UsageReport): UsageReport {
  const isSilent = counters.every((counter) => !later[counter])
  const wasReal = counters.some((counter) => (earlier[counter] ?? 0) > 0)
  const isIgnored = isSilent && wasReal
  if (isIgnored && !later.flags && !later.calls && !later.service) return earlier
  const merged: UsageReport = { ...earlier }
  if (later.calls) merged.calls = { ...earlier.calls, ...later.calls }
  if (later.costReported !== undefined) merged.costReported = later.costReported
  if (later.service) merged.service = { ...earlier.service, ...later.service }
  if (!isIgnored) for (const counter of counters) if (later[counter] !== undefined) merged[counter] = later[counter]
  const saysOutput = !isIgnored && later.outputTokens !== undefined
  const isPartial = saysOutput ? later.isOutputPartial : earlier.isOutputPartial || later.flags
  if (isPartial) merged.isOutputPartial = true
  else if (merged.isOutputPartial !== undefined) delete merged.isOutputPartial
  if (later.flags) merged.flags = [...new Set([...(earlier.flags ?? []), ...later.flags])]
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
  /**
   * Of all that was produced so far, reasoning and hidden text included.
   * @param enough where it cannot be more than that, it need not be counted: any number up to it will do
   */
  estimateOutput: (enough?: number) => number
  /** The tokens of reasoning without any report, by its time; asked for if the report is not final (ruling C12). */
  estimateHidden?: () => number
  /** The output cap that was sent to the model, in tokens; of all choices together. */
  outputTokensCap: number
  /** The figures that the request's reach lets be believed (ruling C14). */
  bounds: UsageBounds
}

export type UsageBounds = {
  /** More input than this was not in the request; infinite where nobody can say what was. */
  inputTokensMax: number
  /** Whether the cap bounds the output: not where the provider's own tools or a compaction write too. */
  isOutputCapped: boolean
}

/**
 * The bounds of a request that reaches for nothing beyond its body, as it is sent to the model (ruling C14). How many tokens an image
 * or a document in it is only the model knows.
 */
export function boundsOf(body: Buffer, inputTokensEstimate: number): UsageBounds {
  const inputTokensMax = holdsMedia(body)
    ? Number.POSITIVE_INFINITY
    : Math.max(body.length, 4 * inputTokensEstimate, 4_000)
  return { inputTokensMax, isOutputCapped: true }
}

/** Answers of up to this many shown tokens may be reported as anything: estimates of short texts say little (C14). */
const shortAnswerTokens = 200

/**
 * The usage that is billed (rulings C3, C6). Per counter it is the final figure, else the last partial one, else the
 * estimate. The output of a cut answer is never below the estimate of what was produced. Two large figures are not
 * believed: an output above twice the cap, and an input larger than the request can be. Nor is a final output below a
 * quarter of what was shown (ruling C14). The estimate of hidden reasoning does not lift the output above the cap
 * (ruling C12).
 */
export function weighUsage(evidence: UsageEvidence): { usage: Usage; source: UsageSource; flags: string[] } {
  const { isComplete, outputTokensCap, bounds } = evidence
  const flags = [...(evidence.report.flags ?? [])]
  const report = believable(evidence, flags)
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
  if (outputTokens !== undefined && bounds.isOutputCapped && outputTokens > 2 * outputTokensCap) {
    flags.push('output_absurd')
    outputTokens = undefined
  }
  let reasoningTokens = report.reasoningTokens ?? 0
  if (outputTokens === undefined || !isComplete || report.isOutputPartial || isTooLow(outputTokens, evidence)) {
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

/** The report without an input that is larger than the request can be, and without zeros that count nothing (C14). */
function believable({ report, isComplete, estimateOutput, bounds }: UsageEvidence, flags: string[]): UsageReport {
  const { inputTokens, cacheReadTokens = 0, cacheWriteTokens = 0, outputTokens } = report
  const inputAll = (inputTokens ?? 0) + cacheReadTokens + cacheWriteTokens
  if (inputAll > bounds.inputTokensMax) {
    flags.push('input_absurd')
    return { outputTokens, reasoningTokens: report.reasoningTokens, isOutputPartial: report.isOutputPartial }
  }
  const isZero = inputTokens === 0 && inputAll === 0 && outputTokens === 0
  if (isZero && (!isComplete || estimateOutput(shortAnswerTokens) > shortAnswerTokens)) {
    flags.push('usage_zero')
    return {}
  }
  return report
}

/** Below a quarter of what was shown, the count of the output did not cover all of it. */
function isTooLow(outputTokens: number, { estimateOutput }: UsageEvidence): boolean {
  const believedUpTo = Math.max(shortAnswerTokens, 4 * outputTokens)
  return estimateOutput(believedUpTo) > believedUpTo
}

/** More calls of one kind than any answer makes; a report of more is not believed (ruling C6). */
const callsMax = 1_000

/**
 * The calls that are billed (ruling C11): those of a final report. Without one, or if it cannot be believed, those that
 * were seen. Of an answer that was cut the larger count, since its report may be from before the last call.
 * @returns only calls that are priced, and no count of 0
 */
export function weighCalls(
  { calls = {}, callsSeen = {} }: UsageReport,
  isComplete: boolean,
  isPriced: (kind: string) => boolean,
): { calls: Calls | undefined; flags: string[] } {
  const billed: Record<string, number> = {}
  const flags: string[] = []
  for (const kind of new Set([...Object.keys(calls), ...Object.keys(callsSeen)])) {
    if (!isPriced(kind)) continue
    const seen = Math.min(callsSeen[kind] ?? 0, callsMax)
    let count = calls[kind]
    if (count !== undefined && count > callsMax) {
      flags.push('calls_absurd')
      count = undefined
    }
    const due = count === undefined ? seen : isComplete ? count : Math.max(count, seen)
    if (due > 0) billed[kind] = due
  }
  return { calls: Object.keys(billed).length > 0 ? billed : undefined, flags: [...new Set(flags)] }
}

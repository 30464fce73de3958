import { asObject } from '../bytes/json.ts'
import { holdsMedia } from './estimate-media.ts'

/** Token counts of one answer. The four counters are disjoint: no token is counted twice (ruling N2). */
export type Usage = {
  /** Input tokens that were neither read from a cache nor written to one. */
  inputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
  /** The part of `cacheWriteTokens` that is cached for an hour. It may have a price of its own (ruling C1). */
  cacheWrite1hTokens: number
  /** Output tokens, including reasoning. */
  outputTokens: number
  /** Reasoning tokens, a part of `outputTokens`. */
  reasoningTokens: number
  /** True if at least one counter is our estimate, not reported by the model. */
  estimated: boolean
}

/** The usage of an answer that produced nothing. */
export const noUsage: Usage = {
  inputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  cacheWrite1hTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  estimated: false,
}

/** The number of calls of the provider's own tools in one answer, by kind, for example `web_search`. */
export type Calls = Readonly<Record<string, number>>

/**
 * The counters that a model has reported so far, disjoint as in `Usage`. `undefined` means that the model has not
 * reported the counter.
 */
export type UsageReport = {
  inputTokens?: number
  cacheReadTokens?: number
  cacheWriteTokens?: number
  cacheWrite1hTokens?: number
  outputTokens?: number
  reasoningTokens?: number
  /** True if the output count was reported before the answer was complete. */
  isOutputPartial?: boolean
  /** Calls of hosted tools: the provider's count, and the calls seen in the answer (ruling C11). */
  calls?: Calls
  callsSeen?: Calls
  /** Implausible figures, by fixed names for the log (ruling C6). They never cause a refusal. */
  flags?: string[]
  /** The model names that the answer reports (ruling Y13). */
  models?: readonly string[]
  /** The tier, speed and geography that the answer reports, by the name of the field; the last value counts (Y17). */
  service?: Readonly<Record<string, string>>
  /** The provider's own charge for the answer, as a decimal text. Never shown to clients (ruling P10). */
  costReported?: string
}

/** The most model names kept per answer, and the most characters kept of each name. Answers usually report one name. */
const modelsMax = 8
const modelCharactersMax = 256

/** Adds the model and the service that `answer` names to the report. `answer` is a whole answer or a part of one. */
export function noteAnswer(report: UsageReport, answer: Record<string, unknown>): UsageReport {
  const { models = [] } = report
  const name = answer['model']
  const served = noteService(report, answer)
  if (typeof name !== 'string' || name === '' || models.includes(name) || models.length >= modelsMax) return served
  return { ...served, models: [...models, name.slice(0, modelCharactersMax)] }
}

/** Members of an answer, or of its usage, that can change the price per token. */
export const serviceMembers = ['service_tier', 'speed', 'inference_geo'] as const
const serviceCharactersMax = 64

/**
 * Adds to the report the service (tier, speed, geography) that an object names. The object is an answer, a part of an
 * answer, or its usage (ruling Y17).
 */
export function noteService(report: UsageReport, object: Record<string, unknown>): UsageReport {
  let noted = report
  for (const member of serviceMembers) {
    const word = object[member]
    if (typeof word === 'string' && word !== noted.service?.[member])
      noted = { ...noted, service: { ...noted.service, [member]: word.slice(0, serviceCharactersMax) } }
  }
  return noted
}

/** The highest charge for one answer that is believed, in the currency of the provider's bill. */
const costMax = 1_000_000

/**
 * Adds the provider's own charge to the report, if the usage has one. Sources, as stored in November 2026:
 * - xAI: `cost_in_usd_ticks` in 10⁻¹⁰ USD (docs.x.ai/developers/cost-tracking).
 * - OpenRouter: `cost` in its credits (openrouter.ai/docs, Usage Accounting).
 * - Perplexity: `cost` is a map with `total_cost`.
 * - DeepInfra: `estimated_cost` in USD.
 */
export function noteCost(
  report: UsageReport,
  { cost_in_usd_ticks: ticks, estimated_cost, cost = estimated_cost }: Record<string, unknown>,
): UsageReport {
  if (ticks === undefined && cost === undefined) return report
  const said = typeof cost === 'object' && cost !== null ? (cost as Record<string, unknown>)['total_cost'] : cost
  const amount = typeof ticks === 'number' ? ticks / 10 ** 10 : said
  if (typeof amount !== 'number' || !(amount >= 0 && amount <= costMax)) return report
  return { ...report, costReported: amount.toFixed(12).replace(/\.?0+$/, '') }
}

/** The source of a bill's figures. If counters have different sources, the weakest source counts (ruling C3). */
export type UsageSource = 'final' | 'partial' | 'estimated' | 'waived'

/** The names of a usage's counters. */
export const counters = [
  'inputTokens',
  'cacheReadTokens',
  'cacheWriteTokens',
  'cacheWrite1hTokens',
  'outputTokens',
  'reasoningTokens',
] as const

/**
 * Merges a later report into an earlier report. The later value of each counter wins, even if it is smaller, since the
 * earlier value may be an estimate. If all later counters are zero, they do not replace earlier counters (I9). If the
 * later report has flags for implausible figures and no output, the earlier output counts as incomplete (ruling C6).
 */
export function mergeUsage(earlier: UsageReport, later: UsageReport): UsageReport {
  const isSilent = counters.every((counter) => !later[counter])
  const wasReal = counters.some((counter) => (earlier[counter] ?? 0) > 0)
  const isIgnored = isSilent && wasReal
  if (isIgnored && !later.flags && !later.calls && !later.service && later.costReported === undefined) return earlier
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

/** The largest believed token count. A larger count is treated as an error of the model (ruling C6). */
export const tokenCountMax = 2 ** 31

/** A count as a model may report it: a non-negative whole number of believable size, else undefined. */
export function readCount(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= tokenCountMax
    ? value
    : undefined
}

export type UsageEvidence = {
  report: UsageReport
  /** True if the model reported the end of the answer. Then its report is final. */
  isComplete: boolean
  /** Estimates the input tokens. Called only if the model reported no believable count of them. */
  estimateInput: () => number
  /**
   * Estimates all output produced so far, including reasoning and hidden text.
   * @param enough a number of tokens. If the output is too short to have more tokens, it need not be counted. The
   *   result is then any number up to `enough`
   */
  estimateOutput: (enough?: number) => number
  /** Estimates unreported reasoning tokens from the reasoning time. Called if the report is not final (ruling C12). */
  estimateHidden?: () => number
  /** The output cap sent to the model, in tokens, for all choices together. */
  outputTokensCap: number
  /** Limits for believable figures, which follow from the request (ruling C14). */
  bounds: UsageBounds
}

export type UsageBounds = {
  /** The most input tokens that the request can contain; infinite if unknown. */
  inputTokensMax: number
  /** Whether the cap limits all output. A compaction and the provider's own tools write output that has no cap. */
  isOutputCapped: boolean
}

/**
 * Returns the bounds of believable usage, for a request whose only input is the body sent to the model (ruling C14). If
 * the body has an image or a document, the input has no bound, because we do not know its tokens.
 * @param mayHoldDataUrl false if no string of the body is a data URL
 */
export function boundsOf(body: Buffer, inputTokensEstimate: number, mayHoldDataUrl = true): UsageBounds {
  const inputTokensMax = holdsMedia(body, mayHoldDataUrl)
    ? Number.POSITIVE_INFINITY
    : Math.max(body.length, 4 * inputTokensEstimate, 4_000)
  return { inputTokensMax, isOutputCapped: true }
}

/** If at most this many tokens were shown, any reported output is believed. Estimates of short texts are bad (C14). */
const shortAnswerTokens = 200

/**
 * Decides the billed usage (rulings C3, C6). Each counter is the final figure, else the last partial figure, else our
 * estimate.
 * - The output of a cut answer is at least our estimate of the text produced.
 * - Two large figures are rejected: an output above twice the cap, and an input larger than the request can be.
 * - A final output below a quarter of the shown text is rejected (ruling C14).
 * - The estimate of hidden reasoning never raises the output above the cap (ruling C12).
 */
export function weighUsage(evidence: UsageEvidence): { usage: Usage; source: UsageSource; flags: string[] } {
  const { isComplete, outputTokensCap, bounds } = evidence
  const flags = [...(evidence.report.flags ?? [])]
  const report = believable(evidence, flags)
  let source: UsageSource = isComplete ? 'final' : 'partial'
  let estimated = false

  let inputTokens = report.inputTokens
  if (inputTokens === undefined) {
    // The report may have only cached tokens. Then the uncached input is our estimate minus the cached tokens.
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

/** Removes figures that cannot be true: input above the request's limit, and zeros that mean "not counted" (C14). */
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

/** Whether the reported output is below a quarter of the shown text. Such a count does not cover the whole text. */
function isTooLow(outputTokens: number, { estimateOutput }: UsageEvidence): boolean {
  const believedUpTo = Math.max(shortAnswerTokens, 4 * outputTokens)
  return estimateOutput(believedUpTo) > believedUpTo
}

/** If an answer reports more calls of one kind than this, the count is not believed (ruling C6). */
const callsMax = 1_000

/**
 * Decides the billed calls (ruling C11). A final, plausible report counts; otherwise the calls seen in the answer
 * count. The report of a cut answer may precede the last call, so the larger of the two numbers counts.
 * @returns only calls that have a price, and no count of 0
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

/** Reads counts from a report and flags implausible values (ruling C6). */
type CountReader = {
  read(value: unknown): number | undefined
  /** Returns a report with these counters, and with the flags that were set. Undefined counters are left out. */
  report(counters: Counters): UsageReport
  flag(name: string): void
}

type Counters = {
  [K in Exclude<
    keyof UsageReport,
    'flags' | 'isOutputPartial' | 'calls' | 'callsSeen' | 'models' | 'service' | 'costReported'
  >]: number | undefined
}

export function createCountReader(): CountReader {
  let flags: Set<string> | undefined
  const flag = (name: string) => {
    flags = (flags ?? new Set()).add(name)
  }
  return {
    flag,
    read(value) {
      if (value === undefined || value === null) return undefined
      const count = readCount(value)
      if (count === undefined) flag('usage_invalid')
      return count
    },
    report(counters) {
      const report: UsageReport = {}
      for (const name of Object.keys(counters) as (keyof Counters)[]) {
        const count = counters[name]
        if (count !== undefined) report[name] = count
      }
      if (flags) report.flags = [...flags]
      return report
    },
  }
}

/** A report with inclusive counters: the prompt includes cached tokens, and the output includes reasoning. */
type InclusiveUsage = {
  /** The whole usage object. Some servers count cache writes in its own members. */
  usage: Record<string, unknown>
  prompt: unknown
  cached: unknown
  /** The details of the prompt. They contain the sum of cache writes, and a count for each lifetime in the cache. */
  promptDetails?: Record<string, unknown> | undefined
  completion: unknown
  reasoning: unknown
  total: unknown
  /** Whether a report of zeros counts. Otherwise such a report means that nothing was counted (ruling C14). */
  zerosCount?: boolean
  /** Whether the model counts reasoning in addition to the completion, not as a part of it. */
  excludesReasoning?: boolean
  /** The counters that the model reported earlier in this answer. */
  earlier?: UsageReport | undefined
}

/**
 * Converts counters that include one another into disjoint counters. Some servers leave reasoning out of the completion
 * (ruling C6). So the output is the completion, or the total minus the prompt if this is larger. Without a total,
 * reasoning that exceeds the completion is added. A prompt of 0 tokens means that the prompt was not counted yet.
 * Cached tokens that only an earlier report has are a part of this report's prompt too (I9). Portkey leaves cached
 * tokens out of the prompt. Its total shows this, since it is the sum of all counters.
 */
export function splitInclusive(usage: InclusiveUsage): UsageReport {
  const { read, report, flag } = createCountReader()
  const isZero = usage.zerosCount && usage.prompt === 0 && usage.completion === 0 && !usage.total
  if (isZero) return { inputTokens: 0, outputTokens: 0 }
  let prompt = read(usage.prompt) || undefined
  const completion = read(usage.completion)
  const reasoning = read(usage.reasoning)
  const total = read(usage.total)
  const earlier = prompt === undefined ? undefined : usage.earlier
  let cached = read(usage.cached) ?? earlier?.cacheReadTokens
  const { all, long } = readLifetimes(usage, read)
  // Some servers report 0 as the sum of cache writes, although they report the cache writes of each lifetime.
  const sum = read(firstOf([writtenIn(usage.promptDetails), writtenIn(usage.usage)]))
  let written = sum || (all ?? sum ?? earlier?.cacheWriteTokens)
  const cachedAll = (cached ?? 0) + (written ?? 0)
  const isApart = cachedAll !== (reasoning ?? 0) && total === (prompt ?? 0) + (completion ?? 0) + cachedAll
  if (prompt !== undefined && completion !== undefined && isApart) prompt += cachedAll
  if (prompt !== undefined && cachedAll > prompt) {
    flag('cached_clamped')
    if (cached !== undefined) cached = Math.min(cached, prompt)
    if (written !== undefined) written = Math.min(written, prompt - (cached ?? 0))
  }
  let output = completion
  if (prompt !== undefined && total !== undefined && total > prompt) {
    output = Math.max(completion ?? 0, total - prompt)
  } else if (completion !== undefined && reasoning !== undefined) {
    if (usage.excludesReasoning || reasoning > completion) output = completion + reasoning
  }
  const isUncounted = prompt === undefined && !output
  return report({
    inputTokens: prompt === undefined ? undefined : prompt - (cached ?? 0) - (written ?? 0),
    cacheReadTokens: isUncounted ? undefined : cached,
    cacheWriteTokens: isUncounted ? undefined : written,
    cacheWrite1hTokens: isUncounted ? undefined : long,
    outputTokens: isUncounted ? undefined : output,
    reasoningTokens: isUncounted ? undefined : reasoning,
  })
}

/**
 * Names of cache writes in reports that include them in the prompt: the wires' own, LiteLLM's, DashScope's, and
 * new-api's.
 */
const writtenNames = [
  ...['cache_write_tokens', 'cache_creation_tokens', 'cache_creation_input_tokens', 'cached_creation_tokens'],
]

function writtenIn(counts: Record<string, unknown> | undefined): unknown {
  return counts && firstOf(writtenNames.map((name) => counts[name]))
}

/**
 * Returns the first count that is not 0, since servers may report one count by several names. If no count is above 0,
 * returns the first count that is present.
 */
export function firstOf(counts: readonly unknown[]): unknown {
  return counts.find(Boolean) ?? counts.find((count) => count !== undefined)
}

/**
 * The members of usage reports that count cache writes by lifetime. The longer lifetime comes last. Sources:
 * - OpenAI: types of its SDK 7.57
 * - LiteLLM: `PromptTokensDetailsWrapper`
 * - DashScope: Anthropic's names
 * - new-api: `dto.Usage`, which has the counts in the usage itself
 */
const lifetimes: { member?: string; short: string; long: string }[] = [
  { member: 'cache_write_tokens_details', short: 'ttl_30m_tokens', long: 'ttl_12h_tokens' },
  {
    member: 'cache_creation_token_details',
    short: 'ephemeral_5m_input_tokens',
    long: 'ephemeral_1h_input_tokens',
  },
  { member: 'cache_creation', short: 'ephemeral_5m_input_tokens', long: 'ephemeral_1h_input_tokens' },
  { short: 'claude_cache_creation_5_m_tokens', long: 'claude_cache_creation_1_h_tokens' },
]

/**
 * Reads the cache writes of each lifetime.
 * @returns `all`: the tokens of both lifetimes. `long`: the tokens of the longer lifetime. If no member counts
 * lifetimes, both are undefined
 */
function readLifetimes({ promptDetails, usage }: InclusiveUsage, read: CountReader['read']) {
  for (const { member, short, long } of lifetimes) {
    const counts = member === undefined ? usage : asObject(promptDetails?.[member])
    if (counts === undefined) continue
    const [brief, lasting] = [read(counts[short]), read(counts[long])]
    if (brief !== undefined || lasting !== undefined) return { all: (brief ?? 0) + (lasting ?? 0), long: lasting }
  }
  return {}
}

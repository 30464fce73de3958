import { asObject } from '../bytes/json.ts'
import { readCount, type UsageReport } from './usage.ts'

/** Reads counts out of a report and notes what cannot be believed (ruling C6). */
type CountReader = {
  read(value: unknown): number | undefined
  /** The report with the flags added, undefined counters left out. */
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

/** A report of inclusive counters: cached tokens are part of the prompt, reasoning is part of the output. */
type InclusiveUsage = {
  prompt: unknown
  cached: unknown
  written: unknown
  /** The details of its prompt, in which servers count cache writes by their lifetime. */
  promptDetails?: Record<string, unknown> | undefined
  completion: unknown
  reasoning: unknown
  total: unknown
  /** A report of zeros is one, and does not mean that nobody counted (ruling C14). */
  zerosCount?: boolean
  /** The model counts reasoning beside the completion and not within it. */
  excludesReasoning?: boolean
}

/**
 * The disjoint counters of an inclusive report. Of a total and a completion the larger decides the output, since some
 * leave reasoning out of the latter (ruling C6). Without a total, reasoning is added if it cannot be a part. A prompt
 * is never empty: one of 0 tokens has not been counted yet.
 */
export function splitInclusive(usage: InclusiveUsage): UsageReport {
  const { read, report, flag } = createCountReader()
  const isZero = usage.zerosCount && usage.prompt === 0 && usage.completion === 0 && !usage.total
  if (isZero) return { inputTokens: 0, outputTokens: 0 }
  const prompt = read(usage.prompt) || undefined
  const completion = read(usage.completion)
  const reasoning = read(usage.reasoning)
  const total = read(usage.total)
  let cached = read(usage.cached)
  const { all, long } = readLifetimes(usage.promptDetails, read)
  // Some servers leave their sum of the writes at 0 and count them by lifetime alone.
  const sum = read(usage.written)
  let written = sum || (all ?? sum)
  if (prompt !== undefined && (cached ?? 0) + (written ?? 0) > prompt) {
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
 * The members in which inclusive reports count cache writes by their lifetime, the longer one last. They are OpenAI's (types of
 * its SDK 7.57), LiteLLM's (its `PromptTokensDetailsWrapper`) and DashScope's, which writes Anthropic's words.
 */
const lifetimes = [
  { member: 'cache_write_tokens_details', short: 'ttl_30m_tokens', long: 'ttl_12h_tokens' },
  {
    member: 'cache_creation_token_details',
    short: 'ephemeral_5m_input_tokens',
    long: 'ephemeral_1h_input_tokens',
  },
  { member: 'cache_creation', short: 'ephemeral_5m_input_tokens', long: 'ephemeral_1h_input_tokens' },
]

/** @returns the tokens written for longer than the shortest lifetime, and those of all; undefined if nothing counts them */
function readLifetimes(details: Record<string, unknown> | undefined, read: CountReader['read']) {
  if (details === undefined) return {}
  for (const { member, short, long } of lifetimes) {
    const counts = asObject(details[member])
    if (counts === undefined) continue
    const [brief, lasting] = [read(counts[short]), read(counts[long])]
    if (brief !== undefined || lasting !== undefined) return { all: (brief ?? 0) + (lasting ?? 0), long: lasting }
  }
  return {}
}

import { asObject } from '../bytes/json.ts'
import { readCount, type UsageReport } from './usage.ts'

/** Reads counts from a report and flags implausible values (ruling C6). */
type CountReader = {
  read(value: unknown): number | undefined
  /** Returns the report with these counters and the flags. Undefined counters are left out. */
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
  prompt: unknown
  cached: unknown
  /** The details of the prompt. Servers count cache writes there, also by lifetime. */
  promptDetails?: Record<string, unknown> | undefined
  completion: unknown
  reasoning: unknown
  total: unknown
  /** Whether a report of zeros counts. Otherwise such a report means that nothing was counted (ruling C14). */
  zerosCount?: boolean
  /** Whether the model counts reasoning in addition to the completion, not as a part of it. */
  excludesReasoning?: boolean
}

/**
 * Converts an inclusive report to disjoint counters. The output is the completion, or the total minus the prompt if
 * that is larger: some servers leave reasoning out of the completion (ruling C6). Without a total, reasoning that
 * exceeds the completion is added to it. A prompt is never empty, so a prompt of 0 tokens means that it was not counted
 * yet.
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
  // Some servers leave the sum of cache writes at 0 and count them only by lifetime.
  const sum = read(firstOf(writtenNames.map((name) => usage.promptDetails?.[name])))
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

/** The names of cache writes in the details of inclusive reports: the wires' own, LiteLLM's, and DashScope's. */
const writtenNames = ['cache_write_tokens', 'cache_creation_tokens', 'cache_creation_input_tokens']

/** Returns the first count that is not 0, since servers may report one count by several names; else the first one. */
export function firstOf(counts: readonly unknown[]): unknown {
  return counts.find(Boolean) ?? counts.find((count) => count !== undefined)
}

/**
 * The members of usage reports that count cache writes by lifetime. The longer lifetime comes last. Sources: OpenAI
 * (types of its SDK 7.57), LiteLLM (its `PromptTokensDetailsWrapper`), and DashScope, which uses Anthropic's names.
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

/**
 * Reads cache writes by lifetime.
 * @returns the tokens of lifetimes beyond the shortest, and the tokens of all lifetimes; undefined if no member
 * counts them
 */
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

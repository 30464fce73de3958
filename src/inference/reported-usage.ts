import { readCount, type UsageReport } from './usage.ts'

/** Reads counts out of a report and notes what cannot be believed (ruling C6). */
type CountReader = {
  read(value: unknown): number | undefined
  /** The report with the flags added, undefined counters left out. */
  report(counters: Counters): UsageReport
  flag(name: string): void
}

type Counters = {
  [K in Exclude<keyof UsageReport, 'flags' | 'isOutputPartial' | 'calls' | 'callsSeen' | 'models' | 'service'>]:
    | number
    | undefined
}

export function createCountReader(): CountReader {
  const flags = new Set<string>()
  return {
    read(value) {
      if (value === undefined || value === null) return undefined
      const count = readCount(value)
      if (count === undefined) flags.add('usage_invalid')
      return count
    },
    flag(name) {
      flags.add(name)
    },
    report(counters) {
      const report: UsageReport = {}
      for (const name of Object.keys(counters) as (keyof Counters)[]) {
        const count = counters[name]
        if (count !== undefined) report[name] = count
      }
      if (flags.size > 0) report.flags = [...flags]
      return report
    },
  }
}

/** A report of inclusive counters: cached tokens are part of the prompt, reasoning is part of the output. */
type InclusiveUsage = {
  prompt: unknown
  cached: unknown
  written: unknown
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
  let written = read(usage.written)
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
    cacheWrite1hTokens: undefined,
    outputTokens: isUncounted ? undefined : output,
    reasoningTokens: isUncounted ? undefined : reasoning,
  })
}

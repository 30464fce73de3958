import { asObject } from '../../bytes/json.ts'
import type { Profile } from '../../catalog/profile.ts'
import {
  createCountReader,
  noteCost,
  noteService,
  tokenCountMax,
  type Usage,
  type UsageReport,
} from '../../inference/usage.ts'
import { withCalls } from '../answers/native-answer.ts'

/** Kinds of `iterations` whose tokens are billed, but are not in the totals (message-wire §8). */
const besideTotals: ReadonlySet<unknown> = new Set(['compaction', 'advisor_message'])

/**
 * Decodes usage. On this wire the counters are disjoint already. Tokens written to the cache are also counted by
 * lifetime. A prompt is never empty, so three input counters of zero mean "not counted yet".
 */
export function decodeUsage(raw: unknown, _quirk?: Profile['usageQuirk']): UsageReport {
  const usage = asObject(raw)
  if (!usage) return {}
  const { read, report } = createCountReader()
  const iterations: unknown[] = Array.isArray(usage['iterations']) ? usage['iterations'] : []
  const beside = iterations.map(asObject).filter((iteration) => besideTotals.has(iteration?.['type']))
  const parts = [usage, ...beside].map((part) => {
    const lifetimes = asObject(part?.['cache_creation'])
    const short = read(lifetimes?.['ephemeral_5m_input_tokens'])
    const hour = read(lifetimes?.['ephemeral_1h_input_tokens'])
    const written = read(part?.['cache_creation_input_tokens'])
    return {
      input: read(part?.['input_tokens']),
      cached: read(part?.['cache_read_input_tokens']),
      // Some servers report 0 as the sum, although they report the writes of each lifetime.
      written: written || (sum([short, hour]) ?? written),
      hour,
      output: read(part?.['output_tokens']),
      reasoning: read(asObject(part?.['output_tokens_details'])?.['thinking_tokens']),
    }
  })
  const input = sum(parts.map((part) => part.input))
  const cached = sum(parts.map((part) => part.cached))
  const written = sum(parts.map((part) => part.written))
  const hour = sum(parts.map((part) => part.hour))
  const output = sum(parts.map((part) => part.output))
  const isUncounted = !input && !cached && !written
  const counted = report({
    inputTokens: isUncounted ? undefined : input,
    cacheReadTokens: isUncounted ? undefined : cached,
    cacheWriteTokens: isUncounted ? undefined : written,
    cacheWrite1hTokens: isUncounted ? undefined : hour,
    // If input and output are all 0, nothing was counted yet, so the output is unknown. Otherwise a 0 counts.
    outputTokens: isUncounted && input === 0 && output === 0 ? undefined : output,
    reasoningTokens: sum(parts.map((part) => part.reasoning)),
  })
  return noteCost(noteService(withCalls(counted, usage), usage), usage)
}

/** Decodes the usage of `message_start`. Its output counts only the first tokens of the answer. */
export function decodeStartUsage(raw: unknown, quirk?: Profile['usageQuirk']): UsageReport {
  const report = decodeUsage(raw, quirk)
  return report.outputTokens === undefined ? report : { ...report, isOutputPartial: true }
}

function sum(counts: (number | undefined)[]): number | undefined {
  const known = counts.filter((count) => count !== undefined)
  return known.length === 0
    ? undefined
    : Math.min(
        tokenCountMax,
        known.reduce((a, b) => a + b, 0),
      )
}

/**
 * Returns the usage if its counters cover everything that is billed. In an answer with `iterations`, the counters may
 * cover only a part. The result is then undefined.
 */
export function plainUsage(usage: Record<string, unknown> | undefined): Record<string, unknown> | undefined {
  return Array.isArray(usage?.['iterations']) ? undefined : usage
}

export type MessagesUsage = {
  input_tokens: number
  cache_creation_input_tokens: number
  cache_read_input_tokens: number
  output_tokens: number
}

export function encodeUsage(usage: Usage): MessagesUsage {
  return {
    input_tokens: usage.inputTokens,
    cache_creation_input_tokens: usage.cacheWriteTokens,
    cache_read_input_tokens: usage.cacheReadTokens,
    output_tokens: usage.outputTokens,
  }
}

import { asObject } from '../../bytes/json.ts'
import type { Profile } from '../../catalog/profile.ts'
import { firstOf, noteCost, noteService, splitInclusive, type Usage, type UsageReport } from '../../inference/usage.ts'
import { withCalls } from '../answers/native-answer.ts'

/**
 * Decodes usage. On this wire `input_tokens` includes cached tokens, while the gateway's counters are disjoint.
 * @param toolUsage `tool_usage` of a response, which counts the billed calls of the provider's own tools
 */
export function decodeUsage(raw: unknown, quirk: Profile['usageQuirk'], toolUsage?: unknown): UsageReport {
  const usage = asObject(raw)
  if (!usage) return {}
  const inputDetails = asObject(usage['input_tokens_details'])
  const outputDetails = asObject(usage['output_tokens_details'])
  const report = splitInclusive({
    usage,
    prompt: usage['input_tokens'],
    cached: firstOf([inputDetails?.['cached_tokens'], usage['cached_tokens'], usage['cache_read_input_tokens']]),
    promptDetails: inputDetails,
    completion: usage['output_tokens'],
    reasoning: outputDetails?.['reasoning_tokens'],
    total: usage['total_tokens'],
    excludesReasoning: quirk === 'excl_reasoning',
    // Counters of 0 are accepted, because the continuation of a programmatic tool call reports them.
    zerosCount: true,
  })
  const told = toolUsage == null ? usage : { ...usage, tool_usage: toolUsage }
  return noteCost(noteService(withCalls(report, told), usage), usage)
}

export type ResponsesUsage = {
  input_tokens: number
  input_tokens_details: { cached_tokens: number; cache_write_tokens: number }
  output_tokens: number
  output_tokens_details: { reasoning_tokens: number }
  total_tokens: number
}

export function encodeUsage(usage: Usage): ResponsesUsage {
  const input = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: usage.cacheReadTokens, cache_write_tokens: usage.cacheWriteTokens },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: input + usage.outputTokens,
  }
}

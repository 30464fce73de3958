import { asObject } from '../../bytes/json.ts'
import type { Profile } from '../../catalog/profile.ts'
import { splitInclusive } from '../../inference/reported-usage.ts'
import type { Usage, UsageReport } from '../../inference/usage.ts'

/**
 * On this wire `prompt_tokens` includes the cached ones; the gateway's counters are disjoint. Cache hits stand in one
 * of three places, none of which means anything else, so all three are read whatever the profile says.
 */
export function decodeUsage(raw: unknown, quirk: Profile['usageQuirk']): UsageReport {
  const usage = asObject(raw)
  if (!usage) return {}
  const promptDetails = asObject(usage['prompt_tokens_details'])
  const completionDetails = asObject(usage['completion_tokens_details'])
  return splitInclusive({
    prompt: usage['prompt_tokens'],
    cached: promptDetails?.['cached_tokens'] ?? usage['prompt_cache_hit_tokens'] ?? usage['cached_tokens'],
    written: promptDetails?.['cache_write_tokens'],
    completion: usage['completion_tokens'],
    reasoning: completionDetails?.['reasoning_tokens'] ?? usage['reasoning_tokens'],
    total: usage['total_tokens'],
    excludesReasoning: quirk === 'excl_reasoning',
  })
}

export type ChatUsage = {
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
  prompt_tokens_details: { cached_tokens: number; cache_write_tokens?: number }
  completion_tokens_details: { reasoning_tokens: number }
}

export function encodeUsage(usage: Usage): ChatUsage {
  const prompt = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.outputTokens,
    total_tokens: prompt + usage.outputTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cacheReadTokens,
      ...(usage.cacheWriteTokens > 0 && { cache_write_tokens: usage.cacheWriteTokens }),
    },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  }
}

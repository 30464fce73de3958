import type { Usage } from '../../inference/usage.ts'
import { encodeUsage } from './usage.ts'

/*
 * Members that the types of the vendor's SDK require and a translated model has nothing for (ruling Y3). They are null or empty,
 * as these types allow. The source is `resources/messages/messages.d.ts` of @anthropic-ai/sdk 1.12.
 */

/** Of a message. The event `message_delta` repeats those that `deltaMembers` has. */
export const messageMembers = { container: null, diagnostics: null, stop_details: null }
export const deltaMembers = { container: null, stop_details: null }

/** Of a text. Another SDK takes no null here (message-wire §7). */
export const textMembers = { citations: [] }

/** Of a call: the model called it, and no tool of a provider did. */
export const callMembers = { caller: { type: 'direct' } }

/** All counters of a translated answer. */
export function encodeWholeUsage(usage: Usage): object {
  const { cacheWriteTokens, cacheWrite1hTokens, reasoningTokens } = usage
  return {
    cache_creation: {
      ephemeral_5m_input_tokens: cacheWriteTokens - cacheWrite1hTokens,
      ephemeral_1h_input_tokens: cacheWrite1hTokens,
    },
    output_tokens_details: { thinking_tokens: reasoningTokens },
    server_tool_use: null,
    service_tier: null,
    inference_geo: null,
    speed: null,
    ...encodeUsage(usage),
  }
}

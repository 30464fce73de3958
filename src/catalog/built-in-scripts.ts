import type { ClientWire } from './wire-names.ts'

/** A catalog entry that the simulator answers. Its behavior is in `upstreamModel`. */
export type BuiltInScript = { id: string; wire: ClientWire; upstreamModel: string; description: string }

/** The models of the built-in catalog. One model per wire behaves well. The others misbehave in common ways. */
// biome-ignore format: one model a line
export const builtInScripts: readonly BuiltInScript[] = [
  { id: 'sim-messages', wire: 'messages', upstreamModel: 'sim', description: 'A well-behaved model on the messages wire' },
  { id: 'sim-chat', wire: 'chat', upstreamModel: 'sim', description: 'A well-behaved model on the chat wire' },
  { id: 'sim-responses', wire: 'responses', upstreamModel: 'sim', description: 'A well-behaved model on the responses wire' },
  { id: 'sim-chat-slow', wire: 'chat', upstreamModel: 'sim?first_delay_ms=1000&delay_ms=150', description: 'Streams slowly' },
  { id: 'sim-chat-long', wire: 'chat', upstreamModel: 'sim?tokens=2000&delay_ms=5', description: 'Answers with 2,000 tokens' },
  { id: 'sim-chat-bytes', wire: 'chat', upstreamModel: 'sim?split=1', description: 'Writes every byte on its own' },
  { id: 'sim-chat-429', wire: 'chat', upstreamModel: 'sim?status=429&retry_after=7', description: 'Always over its rate limit' },
  { id: 'sim-chat-500', wire: 'chat', upstreamModel: 'sim?status=500', description: 'Always fails before it answers' },
  { id: 'sim-chat-no-usage', wire: 'chat', upstreamModel: 'sim?usage=none', description: 'Never reports its usage' },
  { id: 'sim-chat-filtered', wire: 'chat', upstreamModel: 'sim?finish=content_filter', description: 'Is cut by a content filter' },
  { id: 'sim-messages-thinking', wire: 'messages', upstreamModel: 'sim?reasoning=Let+me+see.', description: 'Always thinks aloud' },
  { id: 'sim-messages-cut', wire: 'messages', upstreamModel: 'sim?cut_events=6', description: 'Breaks off in the middle' },
  { id: 'sim-messages-hang', wire: 'messages', upstreamModel: 'sim?cut_events=6&cut_how=hang', description: 'Falls silent in the middle' },
  { id: 'sim-responses-failed', wire: 'responses', upstreamModel: 'sim?cut_events=6&cut_how=error', description: 'Reports a failure in the middle' },
]

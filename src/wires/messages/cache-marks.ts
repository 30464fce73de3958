import type { Profile } from '../../catalog/profile.ts'
import type { InferenceRequest } from '../../inference/request.ts'

type Block = Record<string, unknown>

/**
 * Sets the marks at which this wire caches a prompt, for clients whose wires cache without being told (R-CACHE, ruling
 * T5): on the last tool, the last system block and the last block of the last two user turns, four at most.
 */
export function markForCache(
  request: InferenceRequest,
  profile: Profile,
  prompt: { tools: Block[]; system: Block[]; messages: Block[] },
) {
  const isWanted = profile.autoCache === 'always' || (profile.autoCache === 'on_key' && request.cacheKey !== undefined)
  if (!isWanted) return
  const users = prompt.messages.filter((message) => message['role'] === 'user').slice(-2)
  const blocks = [prompt.tools, prompt.system, ...users.map((message) => message['content'] as Block[])]
  for (const list of blocks) {
    const last = list.at(-1)
    if (last) last['cache_control'] = { type: 'ephemeral' }
  }
}

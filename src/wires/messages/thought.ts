import type { Profile } from '../../catalog/profile.ts'
import type { Prepared } from '../requests/prepare.ts'
import type { EncodedMessage } from './encode-turns.ts'

type Block = { type?: unknown }

/**
 * Whether the model goes on with an assistant turn that does not begin with thinking, readable or sealed. It does so if
 * results follow the calls of that turn, or if that turn is the last (a prefill).
 */
export function goesOnUnproven(messages: readonly { role: unknown; content: readonly Block[] }[]): boolean {
  const last = messages.findLastIndex(({ role }) => role === 'assistant')
  if (last < 0) return false
  const blocks = messages[last]!.content
  if (isThought(blocks[0])) return false
  const rest = messages.slice(last + 1)
  const isAnswered = () => rest.some(({ content }) => content.some(({ type }) => type === 'tool_result'))
  return rest.length === 0 || (blocks.some(({ type }) => type === 'tool_use') && isAnswered())
}

/** Whether a message is a turn of the model without thinking. */
export function lacksThought({ role, content }: EncodedMessage): boolean {
  return role === 'assistant' && !content.some(isThought)
}

function isThought(block: Block | undefined): boolean {
  return block?.type === 'thinking' || block?.type === 'redacted_thinking'
}

/**
 * Removes thinking from the turn that the model goes on with, from the last user message that has no results. Without a
 * thinking budget, upstreams refuse it: "When thinking is disabled, an `assistant` message in the final position cannot
 * contain `thinking`" (tailcallhq/forgecode#1853).
 */
export function withoutOpenThoughts(
  messages: EncodedMessage[],
  { losses, conversationField }: Prepared,
  { reasoning: { style, default: usual } }: Profile,
): EncodedMessage[] {
  if (style !== 'budget' || usual !== 'none') return messages
  const isAsked = ({ role, content }: EncodedMessage) =>
    role === 'user' && !content.some(({ type }) => type === 'tool_result')
  const last = messages.findLastIndex(isAsked)
  return messages.map((message, at) => {
    if (at < last || message.role !== 'assistant' || !message.content.some(isThought)) return message
    losses.add(conversationField, 'dropped', 'reasoning of the turn that goes on, without thinking refused')
    return { ...message, content: message.content.filter((block) => !isThought(block)) }
  })
}

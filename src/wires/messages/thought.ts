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

function isThought(block: Block | undefined): boolean {
  return block?.type === 'thinking' || block?.type === 'redacted_thinking'
}

/** Whether an assistant turn has calls and does not begin with thinking (R-HIST). */
export function callsUnthought(blocks: readonly { type?: unknown }[]): boolean {
  return blocks.some(({ type }) => type === 'tool_use') && !beginsWithThought(blocks)
}

/** Whether an assistant turn begins with thinking, readable or sealed. */
export function beginsWithThought([first]: readonly { type?: unknown }[]): boolean {
  return first?.type === 'thinking' || first?.type === 'redacted_thinking'
}

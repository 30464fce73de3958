/** Whether an assistant turn has calls and does not begin with thinking, readable or sealed (R-HIST). */
export function callsUnthought(blocks: readonly { type?: unknown }[]): boolean {
  const first = blocks[0]?.type
  return blocks.some(({ type }) => type === 'tool_use') && first !== 'thinking' && first !== 'redacted_thinking'
}

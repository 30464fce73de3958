/** Whether a turn of the assistant has calls, and does not begin with what it thought, to be read or not (R-HIST). */
export function callsUnthought(blocks: readonly { type?: unknown }[]): boolean {
  const first = blocks[0]?.type
  return blocks.some(({ type }) => type === 'tool_use') && first !== 'thinking' && first !== 'redacted_thinking'
}

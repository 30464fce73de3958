/** Whether blocks of this type hold what a model thought, to be read or not. */
export function isThought(type: unknown): boolean {
  return type === 'thinking' || type === 'redacted_thinking'
}

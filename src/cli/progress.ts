/** What goes on, in the one line of a terminal: only for a person who watches. */
export function showProgress(words: string): void {
  if (!process.stderr.isTTY) return
  // Some terminals do not know their width, and say 0.
  const width = process.stderr.columns || 80
  process.stderr.write(`\r\u001b[2K${words.slice(0, width - 1)}`)
}

export function clearProgress(): void {
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[2K')
}

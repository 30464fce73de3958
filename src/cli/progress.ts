/** Shows progress in one line of a terminal, but only if a person watches. */
export function showProgress(words: string): void {
  if (!isWatched()) return
  // Some terminals do not know their width and report 0.
  const width = process.stderr.columns || 80
  process.stderr.write(`\r\u001b[2K${words.slice(0, width - 1)}`)
}

export function clearProgress(): void {
  if (isWatched()) process.stderr.write('\r\u001b[2K')
}

function isWatched(): boolean {
  return process.stderr.isTTY && !process.argv.includes('--json')
}

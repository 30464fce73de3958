/**
 * Where a word stands in a text or in bytes, one of ASCII. Native search leaps from one first character to the next, and is
 * many times as slow for more than six: what is looked for begins at the underscore where there is one, which is rare in texts and
 * in base64, else it is the end of the word.
 */
export function* placesOf(text: string | Buffer, word: string): Generator<number, void> {
  const underscore = word.indexOf('_')
  const from = underscore < 0 ? Math.max(0, word.length - 6) : underscore
  const part = word.slice(from, from + 6)
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) {
    const start = at - from
    if (start >= 0 && isAt(text, word, start)) yield start
  }
}

/** Whether a word stands anywhere in a text or in bytes. */
export function holdsWord(text: string | Buffer, word: string): boolean {
  return !placesOf(text, word).next().done
}

function isAt(text: string | Buffer, word: string, start: number): boolean {
  if (typeof text === 'string') return text.startsWith(word, start)
  return text.toString('latin1', start, start + word.length) === word
}

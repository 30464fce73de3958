/**
 * Finds the places of an ASCII word in a text or in bytes. A native search for more than six characters is many times slower,
 * because it leaps from one first character to the next. So only six characters of the word are searched for. They begin at
 * the first underscore or digit, because those are rare in texts. Without one, they are the end of the word.
 */
export function* placesOf(text: string | Buffer, word: string): Generator<number, void> {
  const rare = word.search(/[_0-9]/)
  const from = rare < 0 ? Math.max(0, word.length - 6) : rare
  const part = word.slice(from, from + 6)
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) {
    const start = at - from
    if (start >= 0 && isAt(text, word, start)) yield start
  }
}

/** Whether a text or bytes contain a word. */
export function holdsWord(text: string | Buffer, word: string): boolean {
  return !placesOf(text, word).next().done
}

function isAt(text: string | Buffer, word: string, start: number): boolean {
  if (typeof text === 'string') return text.startsWith(word, start)
  return text.toString('latin1', start, start + word.length) === word
}

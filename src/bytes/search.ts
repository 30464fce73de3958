/**
 * Finds the places of an ASCII word in a text or in bytes. A native search for more than six characters is many times
 * slower: it jumps from one match of the first character to the next. Only six characters of the word are therefore
 * searched for. They begin at the first underscore or digit, because these are rare in texts. A word without either is
 * searched for by its last six characters.
 */
export function* placesOf(text: string | Buffer, word: string): Generator<number, void> {
  for (let at = placeOf(text, word, 0); at >= 0; at = placeOf(text, word, at + 1)) yield at
}

/** Whether a text or bytes contain a word. */
export function holdsWord(text: string | Buffer, word: string): boolean {
  return placeOf(text, word, 0) >= 0
}

/** @returns the first place at or after `from`; -1 if the word does not occur */
function placeOf(text: string | Buffer, word: string, from: number): number {
  const rare = rareAt(word)
  const part = word.slice(rare, rare + 6)
  for (let at = text.indexOf(part, from + rare); at >= 0; at = text.indexOf(part, at + 1))
    if (isAt(text, word, at - rare)) return at - rare
  return -1
}

/** Returns where in the word the searched characters begin. */
function rareAt(word: string): number {
  for (let i = 0; i < word.length; i++) {
    const code = word.charCodeAt(i)
    if (code === 0x5f || (code >= 0x30 && code <= 0x39)) return i
  }
  return Math.max(0, word.length - 6)
}

function isAt(text: string | Buffer, word: string, start: number): boolean {
  if (typeof text === 'string') return text.startsWith(word, start)
  return text.toString('latin1', start, start + word.length) === word
}

const wordCharacter = /[\p{L}\p{N}_]/u

/**
 * Finds a phrase in a text as whole words, in any case. A word that is longer by a letter or a digit does not match.
 * The time depends on the length of the text alone.
 */
export function* findWhole(text: string, phrase: string): Generator<number> {
  const lowered = lowerCase(text)
  const wanted = lowerCase(phrase)
  for (let at = lowered.indexOf(wanted); at >= 0; at = lowered.indexOf(wanted, at + wanted.length)) {
    const isFree = !wordCharacter.test(text.charAt(at - 1)) && !wordCharacter.test(text.charAt(at + wanted.length))
    if (isFree) yield at
  }
}

/** Replaces the text at the given places. @param length of the replaced text at each place */
export function replaceAt(text: string, places: Iterable<number>, length: number, instead: string): string {
  let replaced = ''
  let from = 0
  for (const at of places) {
    replaced += text.slice(from, at) + instead
    from = at + length
  }
  return replaced + text.slice(from)
}

/** Like `toLowerCase`, but every character keeps its position: a few capitals would become two characters. */
function lowerCase(text: string): string {
  const lowered = text.toLowerCase()
  return lowered.length === text.length ? lowered : text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/**
 * Copies a text. In V8, a text that was cut from a longer one keeps the whole longer text alive: twenty characters can
 * hold 64 KiB. Use this for a text that outlives the piece it was cut from.
 */
export function ownCopy(text: string): string {
  // The conversion would destroy an unpaired half of a surrogate pair.
  return text.isWellFormed() ? Buffer.from(text, 'utf8').toString('utf8') : text
}

/**
 * Appends a piece to a text. V8 keeps every piece of a concatenated text, so the text is copied each time its length
 * has doubled.
 */
export function appendOwn(before: string, piece: string): string {
  const text = before + piece
  return Math.clz32(text.length) < Math.clz32(before.length) ? ownCopy(text) : text
}

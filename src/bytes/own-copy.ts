/**
 * Copies a text. In V8, a text that was cut out of another one refers to all of it: twenty characters keep their piece of
 * 64 KiB alive. Use this for a text that outlives the piece it came in.
 */
export function ownCopy(text: string): string {
  // Half of a surrogate pair would not survive the conversion.
  return text.isWellFormed() ? Buffer.from(text, 'utf8').toString('utf8') : text
}

/** Appends a piece. The engine keeps every piece of a text that was put together, so the text is copied whenever it has doubled. */
export function appendOwn(before: string, piece: string): string {
  const text = before + piece
  return Math.clz32(text.length) < Math.clz32(before.length) ? ownCopy(text) : text
}

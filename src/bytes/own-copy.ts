/**
 * The same text with characters of its own. In the engine, a text that was cut out of another one refers to all of
 * that other. Twenty characters keep their piece of 64 KiB. Use it for a text that outlives the piece it came in.
 */
export function ownCopy(text: string): string {
  // Half a character would not come back as it was.
  return text.isWellFormed() ? Buffer.from(text, 'utf8').toString('utf8') : text
}

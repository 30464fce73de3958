/**
 * The same text with characters of its own. Of a text that was cut out of another one the engine keeps a place in that
 * other, all of it: twenty characters of a piece of 64 KiB keep the piece. For what outlives the piece it came in.
 */
export function ownCopy(text: string): string {
  // Half a character would not come back as it was.
  return text.isWellFormed() ? Buffer.from(text, 'utf8').toString('utf8') : text
}

/**
 * A token is white space, a group of one to eight Latin letters or digits, or one other character. One space before a
 * group or another character belongs to the same token.
 */
const token = /\s?[A-Za-z0-9_\u00c0-\u024f]{1,8}|\s?[^\sA-Za-z0-9_\u00c0-\u024f]|\s+/gu

/** Splits a text into the simulator's tokens. For English text their number is close to that of a real tokenizer. */
export function tokenize(text: string): string[] {
  return text.match(token) ?? []
}

/** The tokens of an image or a file, independent of its size. */
export const mediaTokens = 100

export function countTokens(text: string): number {
  return tokenize(text).length
}

/** Yields a text in deltas of a few tokens, as a model streams it. */
export function* deltas(text: string, tokensPerDelta = 3): Iterable<string> {
  const tokens = tokenize(text)
  for (let at = 0; at < tokens.length; at += tokensPerDelta) yield tokens.slice(at, at + tokensPerDelta).join('')
}

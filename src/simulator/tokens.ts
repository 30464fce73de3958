/** Up to eight Latin letters or digits with the space before them, one other character, or a run of white space. */
const token = /\s?[A-Za-z0-9_\u00c0-\u024f]{1,8}|\s?[^\sA-Za-z0-9_\u00c0-\u024f]|\s+/gu

/** Splits a text into the simulator's tokens. They are deterministic, and close to a real tokenizer's on English text. */
export function tokenize(text: string): string[] {
  return text.match(token) ?? []
}

export function countTokens(text: string): number {
  return tokenize(text).length
}

/** Yields the text in deltas of a few tokens, as a model streams it. */
export function* deltas(text: string, tokensPerDelta = 3): Iterable<string> {
  const tokens = tokenize(text)
  for (let at = 0; at < tokens.length; at += tokensPerDelta) yield tokens.slice(at, at + tokensPerDelta).join('')
}

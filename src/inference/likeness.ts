/**
 * Digests of the parts that a request without a conversation key shares with other requests (ruling Y24). The digests
 * are keyed and differ for each account. They are never sent, logged, stored or shown.
 */
export type Likeness = {
  /** Digest of the tools. */
  tools: string
  /** Digest of the tools and the instructions, including the operator's turns at the beginning. */
  preamble: string
  /**
   * Digest of the tools, the instructions, and the turns up to the first user turn. Later requests of the conversation
   * have the same digest.
   */
  opener: string
  /** Whether the preamble is too small for any prompt cache. Then it does not matter which account got it before. */
  isSmall: boolean
  /** The estimated tokens of the request's input. */
  tokens: number
}

/**
 * Digests of those parts of a request that other requests may share. They are used for requests without a conversation
 * key (ruling Y24). The digests are made with a secret key and differ for each account. They are never sent, logged,
 * stored or shown.
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

/**
 * Digests of what a request without a name shares with others (ruling Y24). They are keyed, and different for each account. They are
 * never sent, logged, stored or shown.
 */
export type Likeness = {
  /** Of its tools alone. */
  tools: string
  /** Of its tools and its instructions, with the turns of the operator before any other. */
  preamble: string
  /** Of all that and its turns up to the first of the user: the same in every later request of the conversation. */
  opener: string
  /** Whether the preamble is too small for any prompt cache, so that nothing is gained where it was before. */
  isSmall: boolean
  /** The estimated size of its input. */
  tokens: number
}

import type { Prices } from '../catalog/model.ts'

/*
 * The statement of an account's month: what was credited, used and given back between two balances, and which entries prove it.
 *
 *     opening + credits - use + returns = closing        the closing of a month is the opening of the next
 *
 * A month is closed when no entry can be posted in it any more. Its statement has the same bytes whenever it is made. They follow
 * from the entries and from a header, which is kept with the first statement of the closed month.
 */

/** So long after its end nothing of a month is being posted any more, in ms. */
export const closingMs = 60_000

/** How credits are called on statements, and who sells them. */
export type CreditWords = { symbol: string; name: string; seller: string }

/** How they are called where nothing says it. */
export const usualWords: CreditWords = { symbol: '', name: 'credits', seller: '' }

/** A span of an account's entries, by the times at which they were posted; `toMs` is the first moment after it. */
export type StatementMonth = { accountId: string; fromMs: number; toMs: number }

/** The part of a statement that is in no entry, as it was when the first statement of the month was made. */
export type StatementHeader = {
  buyer: string
  words: CreditWords
  timeZone: string
  /** Covers all entries of the store up to the end of the month (ruling C15). */
  head: string
  /** The line of rotations of each key that was used, and its name. */
  keys: [id: string, line: { id: string; name: string }][]
  /** Each person by the id in entries: the person it counts as, and the name. A person who was erased is left out. */
  persons: [id: string, person: { id: string; name: string }][]
}

/** The sums of entries with the same words and prices. Amounts and counts of returns are negative. */
export type StatementGroup = {
  isReturn: boolean
  keyId: string
  model: string
  tier: string
  band: string
  person: string
  labels: string
  amountNanos: bigint
  requests: bigint
  /** In the order of `tokenNames`. */
  tokens: readonly bigint[]
  /** Undefined for returns. */
  prices: Prices | undefined
}

export const tokenNames = [
  ...(['input', 'cache_read', 'cache_write', 'cache_write_1h', 'output', 'reasoning'] as const),
]

export type StatementSums = {
  openingNanos: bigint
  closingNanos: bigint
  /** The digest of the last entry of the account up to the end of the span; null if it has none. */
  digest: string | null
  /** The numbers of the first and last entry; undefined in a month without entries. */
  entries: { from: number; to: number } | undefined
  credits: readonly { postedMs: number; reference: string; amountNanos: bigint }[]
  groups: readonly StatementGroup[]
}

/** A row of a statement: a group of entries under one name. */
export type StatementLine = Pick<StatementGroup, 'amountNanos' | 'requests'> & {
  of: readonly string[]
  tokens: bigint[]
  prices: Prices | undefined
}

/** Sums groups by some of their words, in the order of these. @param wordsOf the words of a group, and more that tells rows apart */
export function sumLines(
  groups: readonly StatementGroup[],
  wordsOf: (group: StatementGroup) => readonly [of: readonly string[], id?: string],
): StatementLine[] {
  const lines = new Map<string, StatementLine>()
  for (const group of groups) {
    const [of, id = ''] = wordsOf(group)
    const place = [...of, id].join('\n')
    const line = lines.get(place) ?? {
      ...{ of, amountNanos: 0n, requests: 0n, tokens: tokenNames.map(() => 0n), prices: group.prices },
    }
    lines.set(place, line)
    line.amountNanos += group.amountNanos
    line.requests += group.requests
    for (const [at, count] of group.tokens.entries()) line.tokens[at]! += count
  }
  return [...lines].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, line]) => line)
}

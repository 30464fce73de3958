import type { Prices } from '../catalog/model.ts'

/*
 * The statement of an account's month. It shows what was credited, used and given back between two balances, and which
 * entries prove it.
 *
 *     opening + credits - use + returns = closing        the closing of a month is the opening of the next
 *
 * A month is closed when no more entries can be posted in it. Every statement of a closed month has the same bytes.
 * They depend only on the entries and on a header, which is stored with the month's first statement.
 */

/** The time after the end of a month, in ms, from which no more entries of that month are posted. */
export const closingMs = 60_000

/** The words for credits on statements, and the name of the seller. */
export type CreditWords = { symbol: string; name: string; seller: string }

/** A span of an account's entries, by their posting times. `toMs` is the first moment after the span. */
export type StatementMonth = { accountId: string; fromMs: number; toMs: number }

/** Facts of a statement that no entry contains. They stay as they were when the month's first statement was made. */
export type StatementHeader = {
  /**
   * The span of the statement. After a change of the reporting zone, it begins where the stored statement of the month
   * before ends. If it is left out, it is the month in `timeZone`.
   */
  fromMs?: number
  toMs?: number
  buyer: string
  words: CreditWords
  timeZone: string
  /** A head (a digest of all entries) that covers all entries up to the end of the month (ruling C15). */
  head: string
  /** The used keys, each with its line on the statement. A key and the keys that replaced it share one line. */
  keys: [id: string, line: { id: string; name: string }][]
  /**
   * For each person id in entries: the person that the id stands for, and the person's name. Erased people are left
   * out.
   */
  persons: [id: string, person: { id: string; name: string }][]
}

/**
 * The sums of entries that have the same values in all text fields below and the same prices. For returned debits, the
 * amount and the counts are negative.
 */
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
  /** Token counts, in the order of `tokenNames`. */
  tokens: readonly bigint[]
  /** The prices that all entries of the group have; undefined for a group of returned debits. */
  prices: Prices | undefined
}

export const tokenNames = [
  ...(['input', 'cache_read', 'cache_write', 'cache_write_1h', 'output', 'reasoning'] as const),
]

export type StatementSums = {
  openingNanos: bigint
  closingNanos: bigint
  /** The digest of the account's last entry up to the end of the span. Null if the account has no entry by then. */
  digest: string | null
  /** The numbers of the first and last entry; undefined in a month without entries. */
  entries: { from: number; to: number } | undefined
  credits: readonly { postedMs: number; reference: string; amountNanos: bigint }[]
  groups: readonly StatementGroup[]
}

/** A row of a statement. It sums all groups of entries that have the names in `of`. */
export type StatementLine = Pick<StatementGroup, 'amountNanos' | 'requests'> & {
  of: readonly string[]
  tokens: bigint[]
  prices: Prices | undefined
}

/**
 * Makes the sorted rows of a statement. Groups with the same names and the same id make one row.
 * @param wordsOf returns the names that a row shows, and an id if two rows may have equal names
 */
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

import { type ChainedRow, digestEntry } from '../../accounts/chain.ts'
import { registerColumns } from '../../accounts/registers.ts'
import {
  type ChainEnd,
  type CopiedRegister,
  copiedNames,
  type EntryRange,
  type RegisterRow,
  type Registers,
} from './end.ts'

/**
 * The sums by which two stores are compared: counts, amounts, and a digest of all entries that does not depend on their
 * order.
 */
export type Sums = {
  entries: number
  credits: number
  debits: number
  creditedNanos: bigint
  debitedNanos: bigint
  digest: string
}

const modulus = 2n ** 256n

/**
 * Adds up entries. The digest is the sum of all entries' digests, modulo 2^256. The digest of an entry covers all its
 * columns. The sum does not depend on the order of the entries, and one entry more or less changes it.
 */
export class Tally {
  #entries = 0
  #credits = 0
  #creditedNanos = 0n
  #debitedNanos = 0n
  #sum = 0n

  add(rows: readonly RegisterRow[]): void {
    for (const row of rows) {
      this.#entries++
      const isCredit = row['kind'] === 'credit'
      if (isCredit) this.#credits++
      if (isCredit) this.#creditedNanos += row['amount'] as bigint
      else this.#debitedNanos += row['amount'] as bigint
      const digest = digestEntry(row as ChainedRow, row['digest'] as string)
      this.#sum += BigInt(`0x${Buffer.from(digest.slice(2), 'base64').toString('hex')}`)
    }
  }

  get sums(): Sums {
    return {
      entries: this.#entries,
      credits: this.#credits,
      debits: this.#entries - this.#credits,
      creditedNanos: this.#creditedNanos,
      debitedNanos: this.#debitedNanos,
      digest: (this.#sum % modulus).toString(16).padStart(64, '0'),
    }
  }
}

/** Registers to which entries refer, with the column that entries name. These registers are copied first. */
const namedBy = { accounts: 'id', prices: 'version' } as const

/** Returns the rows of `from` that `to` lacks, or has with other values. */
export function changedRows(
  name: CopiedRegister,
  from: readonly RegisterRow[],
  to: readonly RegisterRow[],
): RegisterRow[] {
  const there = new Set(to.map((row) => textOf(name, row)))
  return from.filter((row) => !there.has(textOf(name, row)))
}

/** Returns a sentence for each register (table) with different rows. Empty if all registers are equal. */
export function findDifferences(one: Registers, other: Registers): string[] {
  return copiedNames.flatMap((name) => {
    const count = countDifferences(name, one[name], other[name])
    return count === 0 ? [] : [`${name}: ${count} rows differ`]
  })
}

/** Counts the rows that only one of two stores has. */
export function countDifferences(
  name: CopiedRegister,
  one: readonly RegisterRow[],
  other: readonly RegisterRow[],
): number {
  return changedRows(name, one, other).length + changedRows(name, other, one).length
}

/** Returns the rows of `from` whose key is missing in `to`. */
export function missingRows(
  name: keyof typeof namedBy,
  from: readonly RegisterRow[],
  to: readonly RegisterRow[],
): RegisterRow[] {
  const there = new Set(to.map((row) => row[namedBy[name]]))
  return from.filter((row) => !there.has(row[namedBy[name]]))
}

function textOf(name: CopiedRegister, row: RegisterRow): string {
  return JSON.stringify(
    Object.keys(registerColumns(name)).map((column) => (row[column] === null ? null : String(row[column]))),
  )
}

/**
 * Returns the ranges still to be copied or compared. @param come the number of the last entry that was copied or
 * compared, by account
 */
export function rangesBehind(tails: readonly ChainEnd[], come: ReadonlyMap<string, number>): EntryRange[] {
  return tails.flatMap(({ accountId, seq }) => {
    const after = come.get(accountId) ?? 0
    return seq > after ? [{ accountId, after, upto: seq }] : []
  })
}

export function countOf(ranges: readonly EntryRange[]): number {
  return ranges.reduce((sum, { after, upto }) => sum + upto - after, 0)
}

/** Divides ranges into slices of at most `entriesMax` entries. */
export function* sliceRanges(ranges: readonly EntryRange[], entriesMax: number): Iterable<EntryRange[]> {
  let slice: EntryRange[] = []
  let room = entriesMax
  for (const { accountId, after, upto } of ranges) {
    for (let from = after; from < upto; ) {
      const to = Math.min(upto, from + room)
      slice.push({ accountId, after: from, upto: to })
      room -= to - from
      from = to
      if (room > 0) continue
      yield slice
      slice = []
      room = entriesMax
    }
  }
  if (slice.length > 0) yield slice
}

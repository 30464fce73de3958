import { hash } from 'node:crypto'
import { field } from './chain.ts'
import { type SumColumn, sumColumns } from './usage/rollup.ts'

/*
 * Archives of closed months (docs/ledger.md). The entries of a month are moved to a file. The store keeps a sealed row
 * for each account, sums by key and person, and an index of request ids and references. An account's last entry always
 * stays in the store, because the account's next entry builds on it. The verification also compares the sealed row with
 * this last entry.
 */

/**
 * The states of an archive. A command that was killed can be run again and continues.
 *
 *     sealing → removing → away → attaching → attached → removing …
 *
 * In `sealing`, readers see no change. From `removing` until `attached`, the entries count as away: not in the store.
 */
type ArchiveState = 'sealing' | 'removing' | 'away' | 'attaching' | 'attached'

/** The states in which the store may lack entries of the month. */
export const awayStates = ['removing', 'away', 'attaching'] as const satisfies readonly ArchiveState[]

/** An archived month. It holds all entries before the end of the month that are in no earlier archive. */
export type Archive = {
  /** The month in the time zone `timeZone`, such as `2026-01`. */
  month: string
  timeZone: string
  /**
   * The beginning of the month, or the time of the oldest entry if that is earlier. An archive always leaves the last
   * entry of each account in the store, so an entry can be older than the month.
   */
  fromMs: number
  untilMs: number
  state: ArchiveState
  /** The path to which the file was written, or from which the month was last attached. */
  file: string
  /** The SHA-256 of the file, as hexadecimal digits. */
  fileDigest: string
  accounts: number
  entries: number
  /** `sealsDigest` covers all sealed rows with their sums. `indexDigest` covers the index. See `DigestSum`. */
  sealsDigest: string
  indexDigest: string
  /** Covers the digest of the previous archive, and all fields above except the state and the path. */
  digest: string
}

/** The sealed row that stands for an account's entries in an archive. */
export type Seal = {
  accountId: string
  month: string
  fromSeq: number
  toSeq: number
  creditedNanos: bigint
  debitedNanos: bigint
  /** The balance after the last entry. */
  balanceNanos: bigint
  firstDigest: string
  lastDigest: string
  /** The time of the last entry, in Unix milliseconds. No later entry of the account has an earlier time. */
  postedMs: number
}

/**
 * The sums of one key and one person over the archived entries that a seal stands for. An empty `keyId` or `person`
 * means that the entries have none.
 */
export type SealedSums = { keyId: string; person: string; sums: Record<SumColumn, bigint> }

/** The row of an archived entry in the index of archives. `id` is made from the entry's request id or reference. */
export type ArchivedEntry = {
  id: string
  kind: 'debit' | 'credit' | 'return'
  month: string
  accountId: string
  seq: number
  amountNanos: bigint
}

/** A digest of rows that does not depend on their order. It is the bitwise XOR of their SHA-256 digests. */
export class DigestSum {
  readonly #sum = Buffer.alloc(32)
  #count = 0

  add(text: string): void {
    const one = hash('sha256', text, 'buffer')
    for (let at = 0; at < one.length; at++) this.#sum[at]! ^= one[at]!
    this.#count++
  }

  /** Returns the digest, which begins with the number of rows. */
  end(): string {
    return `${this.#count}:${this.#sum.toString('hex')}`
  }
}

/** Returns a sealed row as text. The digest of the row is computed from this text. */
export function sealText(seal: Seal): string {
  const { accountId, month, fromSeq, toSeq, creditedNanos, debitedNanos, balanceNanos } = seal
  const fields = [accountId, month, fromSeq, toSeq, creditedNanos, debitedNanos, balanceNanos]
  return ['seal', ...fields, seal.firstDigest, seal.lastDigest, seal.postedMs].map((value) => field(value)).join('')
}

/** Returns the text of the sums of one key and person in a sealed row. A digest is computed from such texts. */
export function sumsText(accountId: string, month: string, { keyId, person, sums }: SealedSums): string {
  const fields = ['sums', accountId, month, keyId, person, ...sumColumns.map((column) => sums[column])]
  return fields.map((value) => field(value)).join('')
}

/** Formats an index entry for its digest. */
export function indexText({ id, kind, month, accountId, seq, amountNanos }: ArchivedEntry): string {
  return ['index', id, kind, month, accountId, seq, amountNanos].map((value) => field(value)).join('')
}

/** Computes the digest of an archive. @param previous the digest of the previous archive; null for the first archive */
export function digestArchive(archive: Omit<Archive, 'digest' | 'state' | 'file'>, previous: string | null): string {
  const { month, timeZone, fromMs, untilMs, fileDigest, accounts, entries, sealsDigest, indexDigest } = archive
  const fields = ['s1', previous, month, timeZone, fromMs, untilMs, fileDigest, accounts, entries]
  return `s1:${hash('sha256', [...fields, sealsDigest, indexDigest].map((value) => field(value)).join(''), 'base64')}`
}

/**
 * Sums entries by key and person in the same way as reports. A return (an entry that gives a debit back) lowers the
 * number of requests and the cost, but not the tokens.
 */
export function createSealedSums() {
  const all = new Map<string, SealedSums>()
  return { add, list: () => [...all.values()] }

  /** Adds an entry to the sums of its key and person. @param row an entry's values by column */
  function add(row: Readonly<Record<string, unknown>>): void {
    const isDebit = row['kind'] === 'debit'
    if (!isDebit && row['usage_source'] === null) return
    const [keyId, person] = [(row['key_id'] as string | null) ?? '', (row['person'] as string | null) ?? '']
    const name = JSON.stringify([keyId, person])
    const zero = () => Object.fromEntries(sumColumns.map((column) => [column, 0n])) as SealedSums['sums']
    const { sums } = all.get(name) ?? all.set(name, { keyId, person, sums: zero() }).get(name)!
    sums.requests += isDebit ? 1n : -1n
    sums.cost += (isDebit ? 1n : -1n) * BigInt(row['amount'] as bigint)
    if (!isDebit) return
    for (const column of sumColumns)
      if (column !== 'requests' && column !== 'cost') sums[column] += BigInt((row[column] as bigint | null) ?? 0n)
  }
}

/** Returns the archives of a time span whose entries the store may lack. Both bounds of the span may be left out. */
export function findAway(archives: readonly Archive[], sinceMs = 0, untilMs = Number.POSITIVE_INFINITY): Archive[] {
  return archives.filter((one) => isAway(one) && sinceMs < one.untilMs && untilMs > one.fromMs)
}

/** Whether the store may lack entries of the archive. */
export function isAway({ state }: Pick<Archive, 'state'>): boolean {
  return (awayStates as readonly ArchiveState[]).includes(state)
}

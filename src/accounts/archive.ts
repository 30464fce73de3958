import { hash } from 'node:crypto'
import { field } from './chain.ts'
import { type SumColumn, sumColumns } from './usage/rollup.ts'

/*
 * Closed months that are archived (docs/ledger.md). The entries of a month go into a file. The store keeps a sealed row for each
 * account, sums by key and person, and an index of request ids and references. An account's last entry always stays, so the next
 * one builds on it and proves the sealed row before it.
 */

/**
 * The life of an archive. A command that was killed is run again, and goes on.
 *
 *     sealing → removing → away → attaching → attached → removing …
 *
 * While it is sealed, nothing has changed for readers. From `removing` until `attached` its entries count as away.
 */
type ArchiveState = 'sealing' | 'removing' | 'away' | 'attaching' | 'attached'

/** The states in which entries of a month may be missing in the store. */
export const awayStates = ['removing', 'away', 'attaching'] as const satisfies readonly ArchiveState[]

/** A month that is archived: all entries that were not archived before, and that count before its end. */
export type Archive = {
  /** Such as `2026-01`, by the days of the zone. */
  month: string
  timeZone: string
  /** When its oldest entry counts, which had stayed if it is older than the month; else the beginning of the month. */
  fromMs: number
  untilMs: number
  state: ArchiveState
  /** The path of its file, as it was written or last attached. */
  file: string
  /** The SHA-256 of the file in hexadecimal digits. */
  fileDigest: string
  accounts: number
  entries: number
  /** Over all sealed rows with their sums, and over the index: see `DigestSum`. */
  sealsDigest: string
  indexDigest: string
  /** Covers all of the above but the state and the path, and the digest of the archive before it. */
  digest: string
}

/** The entries of an account in an archive. */
export type Seal = {
  accountId: string
  month: string
  fromSeq: number
  toSeq: number
  creditedNanos: bigint
  debitedNanos: bigint
  /** After the last entry. */
  balanceNanos: bigint
  firstDigest: string
  lastDigest: string
  /** When the last entry counts, which no later entry of the account precedes. */
  postedMs: number
}

/** The sums of the entries of a seal, by key and person. An empty text stands for no key or no person. */
export type SealedSums = { keyId: string; person: string; sums: Record<SumColumn, bigint> }

/** An entry in the index, by the id that its database finds it by. */
export type ArchivedEntry = {
  id: string
  kind: 'debit' | 'credit' | 'return'
  month: string
  accountId: string
  seq: number
  amountNanos: bigint
}

/** A digest of rows in any order: the bits of their SHA-256 that differ in an odd number of rows. */
export class DigestSum {
  readonly #sum = Buffer.alloc(32)
  #count = 0

  add(text: string): void {
    const one = hash('sha256', text, 'buffer')
    for (let at = 0; at < one.length; at++) this.#sum[at]! ^= one[at]!
    this.#count++
  }

  /** Begins with the number of rows. */
  end(): string {
    return `${this.#count}:${this.#sum.toString('hex')}`
  }
}

/** The text of a sealed row for its digest. */
export function sealText(seal: Seal): string {
  const { accountId, month, fromSeq, toSeq, creditedNanos, debitedNanos, balanceNanos } = seal
  const fields = [accountId, month, fromSeq, toSeq, creditedNanos, debitedNanos, balanceNanos]
  return ['seal', ...fields, seal.firstDigest, seal.lastDigest, seal.postedMs].map((value) => field(value)).join('')
}

/** The same of sums of a sealed row. */
export function sumsText(accountId: string, month: string, { keyId, person, sums }: SealedSums): string {
  const fields = ['sums', accountId, month, keyId, person, ...sumColumns.map((column) => sums[column])]
  return fields.map((value) => field(value)).join('')
}

/** The same of an entry in the index. */
export function indexText({ id, kind, month, accountId, seq, amountNanos }: ArchivedEntry): string {
  return ['index', id, kind, month, accountId, seq, amountNanos].map((value) => field(value)).join('')
}

/** The digest of an archive. @param previous of the archive before it, null for the first one */
export function digestArchive(archive: Omit<Archive, 'digest' | 'state' | 'file'>, previous: string | null): string {
  const { month, timeZone, fromMs, untilMs, fileDigest, accounts, entries, sealsDigest, indexDigest } = archive
  const fields = ['s1', previous, month, timeZone, fromMs, untilMs, fileDigest, accounts, entries]
  return `s1:${hash('sha256', [...fields, sealsDigest, indexDigest].map((value) => field(value)).join(''), 'base64')}`
}

/** Sums entries by key and person as reports do: a return takes back the request and the cost of its debit, and no tokens. */
export function createSealedSums() {
  const all = new Map<string, SealedSums>()
  return { add, list: () => [...all.values()] }

  /** @param row an entry, by its columns */
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

/** Those of the archives that are away and have entries that count in a span. A bound that is undefined is open. */
export function findAway(archives: readonly Archive[], sinceMs = 0, untilMs = Number.POSITIVE_INFINITY): Archive[] {
  return archives.filter((one) => isAway(one) && sinceMs < one.untilMs && untilMs > one.fromMs)
}

/** Whether entries of the archive may be missing in the store. */
export function isAway({ state }: Pick<Archive, 'state'>): boolean {
  return (awayStates as readonly ArchiveState[]).includes(state)
}

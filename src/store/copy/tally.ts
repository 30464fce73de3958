import { type ChainedRow, digestEntry } from '../../accounts/chain.ts'
import type { RegisterRow } from './end.ts'

/** The proof of a copy's entries: their number, their sums, and one digest of all of them, in whatever order they come. */
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
 * Adds entries up. The digest is the sum of the digests of all entries (modulo 2^256): of all columns, and of the digest
 * that stands with the entry. A sum does not ask in which order they came, and an entry more or less changes it.
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

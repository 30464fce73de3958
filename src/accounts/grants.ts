/**
 * The last grant of an account. `seq` is the number of its entry. `spentNanos` is the part of the grant that was spent
 * up to and including entry `throughSeq`. If the unspent rest does not lapse, the spend is not summed, and `throughSeq`
 * is undefined.
 */
export type GrantBase = {
  reference: string
  seq: number
  amountNanos: bigint
  spentNanos: bigint
  throughSeq: number | undefined
}

export type GrantEntryKind = 'grant' | 'lapse'

/** The prefix of the references of an account's grants or lapses. A lapse takes the unspent rest of a grant back. */
export function grantPrefix(kind: GrantEntryKind, accountId: string): string {
  return `${kind}:${accountId}/`
}

/** Whether a reference is reserved for grants and lapses. */
export function isOfGrant(reference: string): boolean {
  return /^(grant|lapse):/.test(reference)
}

/**
 * Returns the month in the reference of a grant. Returns the empty text, which sorts before all months, if there was no
 * grant.
 */
export function monthOfGrant(reference: string | undefined): string {
  return /\/(\d{4}-\d\d)(?:\/\d+)?$/.exec(reference ?? '')?.[1] ?? ''
}

/** Returns the account's last grant up to this month; undefined for an account without grants until then. */
export function lastGrantUntil(references: readonly string[], month: string): string | undefined {
  return references
    .filter((reference) => monthOfGrant(reference) <= month)
    .toSorted()
    .at(-1)
}

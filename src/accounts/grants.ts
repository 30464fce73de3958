import type { Calendar } from './calendar.ts'

/**
 * The last grant of an account, and the number of its entry. `spentNanos` of it were spent up to and with entry `throughSeq`. If
 * that is undefined, nobody has summed them: the grant does not lapse.
 */
export type GrantBase = {
  reference: string
  seq: number
  amountNanos: bigint
  spentNanos: bigint
  throughSeq: number | undefined
}

export type GrantEntryKind = 'grant' | 'lapse'

/** The beginning of the references of an account's grants or lapses. */
export function grantPrefix(kind: GrantEntryKind, accountId: string): string {
  return `${kind}:${accountId}/`
}

/** Whether only a grant or a lapse may be booked with this reference. */
export function isOfGrant(reference: string): boolean {
  return /^(grant|lapse):/.test(reference)
}

/** The month of a moment in the reporting zone, such as `2026-12`. */
export function monthOf(calendar: Pick<Calendar, 'dateOf'>, ms: number): string {
  return calendar.dateOf(ms).slice(0, 7)
}

/** The month of a grant; the empty text, which is before all months, if there was none. */
export function monthOfGrant(reference: string | undefined): string {
  return /\/(\d{4}-\d\d)(?:\/\d+)?$/.exec(reference ?? '')?.[1] ?? ''
}

/** The last of an account's grants that is of this month or an earlier one; undefined if no grant is. */
export function lastGrantUntil(references: readonly string[], month: string): string | undefined {
  return references
    .filter((reference) => monthOfGrant(reference) <= month)
    .toSorted()
    .at(-1)
}

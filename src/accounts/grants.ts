import type { Calendar } from './calendar.ts'

/** The last grant of an account, and its spending since that entry, up to and with entry `throughSeq`. */
export type GrantBase = { reference: string; amountNanos: bigint; spentNanos: bigint; throughSeq: number | undefined }

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

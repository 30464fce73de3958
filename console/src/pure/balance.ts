import type { AuditRecord, Listed } from '../shapes.ts'
import { dayIn, isDay } from './calendar.ts'
import { readCredits } from './format.ts'

export type Credited = { at: string; credits: string }

/**
 * The credits of an account.
 * @property knownFrom the time before which there may be further credits; undefined if `credited` has all of them
 */
export type Credits = { credited: readonly Credited[]; knownFrom: string | undefined }

type Change = Pick<AuditRecord, 'at' | 'after'>

/** A time later than all others. */
const never = '9999-12-31T00:00:00Z'

/**
 * Reads an account's credits from the audit trail: those given to it, the newest first, its monthly grants, and the one
 * of its creation.
 * @param made the record of its creation; without items if the creation is older than the audit trail
 */
export function creditsOf(
  made: Listed<Change> | undefined,
  given: Listed<Change> | undefined,
  granted: Listed<Change> | undefined,
): Credits {
  if (!made || !given || !granted) return { credited: [], knownFrom: never }
  const credited = [...given.items, ...granted.items].flatMap(({ at, after }) => {
    const { amount = '0', lapsed } = after ?? {}
    return [
      { at, credits: String(amount) },
      // The unspent part of the grant before is taken away together with a new grant.
      ...(lapsed === undefined ? [] : [{ at, credits: `-${lapsed}` }]),
    ]
  })
  const [making] = made.items
  if (given.next !== null || !making) return { credited, knownFrom: given.items.at(-1)?.at ?? never }
  const first = { at: making.at, credits: String(making.after?.['credit'] ?? '0') }
  return { credited: [...credited, first], knownFrom: undefined }
}

/**
 * Computes the balance at the end of each bucket, backwards from the present balance: later debits are added, later
 * credits subtracted.
 * @param billed the debits of each bucket; null if unknown, and then earlier buckets have no balance
 * @returns the balance, and the credit of each bucket; null if there was none
 */
export function balanceOver(
  buckets: readonly string[],
  billed: readonly (string | null)[],
  { credited, knownFrom }: Credits,
  balance: string,
  zone: string,
): { balances: (number | null)[]; credits: (number | null)[] } {
  const inBucket = buckets.map(() => 0n)
  for (const { at, credits } of credited) {
    const place = placeOf(buckets, at, zone)
    if (place >= 0) inBucket[place]! += readCredits(credits)
  }
  const knownAt = knownFrom === undefined ? -1 : placeOf(buckets, knownFrom, zone)
  const balances: (number | null)[] = []
  let now: bigint | undefined = readCredits(balance)
  for (let at = buckets.length - 1; at >= 0; at--) {
    balances.unshift(now === undefined ? null : Number(now) / 1e9)
    const spent = billed[at]
    now =
      now === undefined || spent === null || spent === undefined || at === knownAt
        ? undefined
        : now + readCredits(spent) - inBucket[at]!
  }
  const credits = inBucket.map((nanos, at) => (nanos === 0n ? null : (balances[at] ?? null)))
  return { balances, credits }
}

/** Returns the index of the last bucket that begins at or before a time; -1 if every bucket begins later. */
function placeOf(buckets: readonly string[], at: string, zone: string): number {
  const ms = Date.parse(at)
  const day = dayIn(zone, ms)
  return buckets.findLastIndex((start) => (isDay(start) ? start <= day : Date.parse(start) <= ms))
}

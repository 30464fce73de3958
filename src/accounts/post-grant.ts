import { BookError } from './book-error.ts'
import { type BookChange, type BookWrite, postCredit } from './book-rules.ts'
import { type Calendar, monthOf } from './calendar.ts'
import { formatCredits } from './credit.ts'
import { type GrantBase, type GrantEntryKind, grantPrefix, monthOfGrant } from './grants.ts'

/*
 * Monthly grants of accounts. The law: an account has at most one grant for a month, and one lapse of the previous
 * grant. The law holds for any number of servers, even if they are killed at any moment. Months are those of the
 * reporting zone.
 *
 *     lapse = min(rest, balance), but at least 0
 *     rest  = the grant − the amount spent of it, at least 0 and at most the grant
 *
 * Debits and negative credits after the grant's entry spend the grant first, and then bought credit. Only the
 * entries decide what is spent. A debit that is given back counts as unspent if it came after the grant.
 */

/**
 * Posts the grant of the current month if it is due, and lets the unspent rest of the previous grant lapse. Both
 * entries are posted in one step (see `stepsOf`), so the balance between them causes no warning.
 * @param calendar the calendar of the reporting zone
 * @param base the account's latest grant, as it was read before the change
 * @returns `again` if `base` is out of date and must be read again
 */
export function postGrant(
  accountId: string,
  calendar: Calendar,
  base: GrantBase | undefined,
): BookChange<'posted' | 'not_due' | 'again'> {
  return {
    about: { account: accountId, grants: { accountId, base }, isDated: true },
    decide({ account, grants, nowMs }) {
      if (!account || !grants) throw new BookError('no_account', accountId)
      const { grant } = account.bounds
      const [month, before] = [monthOf(calendar, nowMs), monthOfGrant(account.lastGrant)]
      if (!grant || account.state !== 'active' || before >= month) return { writes: [], result: 'not_due' }
      // `base` was read before this change. It lacks the spent amount if the operator has since then made grants lapse.
      const isSummed = !grant.lapses || !base || base.throughSeq !== undefined
      if (account.lastGrant !== base?.reference || !isSummed) return { writes: [], result: 'again' }
      const { taken, spentNanos } = grants
      const reference = freeReference(taken, 'grant', accountId, month)
      const lapseNanos = grant.lapses && base ? lapseOf(base.amountNanos, spentNanos, account.balanceNanos) : 0n
      const writes: BookWrite[] = [
        postCredit(account, grant.nanos, reference),
        { kind: 'set_account', accountId, fields: { lastGrant: reference } },
      ]
      const after: Record<string, string> = { amount: formatCredits(grant.nanos), reference }
      if (lapseNanos > 0n) {
        const lapsed = freeReference(taken, 'lapse', accountId, before)
        writes.splice(1, 0, { kind: 'post_credit', accountId, amountNanos: -lapseNanos, reference: lapsed })
        after['lapsed'] = formatCredits(lapseNanos)
      }
      return { writes, result: 'posted', trail: { operation: 'account.grant', object: accountId, after } }
    },
  }
}

function lapseOf(grantNanos: bigint, spentNanos: bigint, balanceNanos: bigint): bigint {
  const restNanos = spentNanos < 0n ? grantNanos : grantNanos - spentNanos
  const lapseNanos = restNanos < balanceNanos ? restNanos : balanceNanos
  return lapseNanos > 0n ? lapseNanos : 0n
}

/**
 * Returns the first unused reference for a grant or a lapse in this month (ruling C8). A number is added if the
 * reference is taken, for example by a top-up from the time before its prefix was reserved.
 */
function freeReference(taken: ReadonlySet<string>, kind: GrantEntryKind, accountId: string, month: string): string {
  const first = grantPrefix(kind, accountId) + month
  let reference = first
  for (let number = 2; taken.has(reference); number++) reference = `${first}/${number}`
  return reference
}

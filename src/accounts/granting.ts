import type { Account, Directory } from './account.ts'
import type { Admission } from './admission.ts'
import type { Books } from './books.ts'
import { type Calendar, monthOf } from './calendar.ts'

type GrantingParts = {
  /** Returns the books of the store, which are opened at the first call. */
  books(): Promise<Pick<Books, 'grant'>>
  directory: Directory
  /** The current time in Unix milliseconds. */
  nowMs(): number
  /** The calendar of the reporting zone. */
  calendar: Calendar
  log(level: 'info' | 'error', event: string, fields: Record<string, unknown>): void
}

/**
 * The shortest time between two attempts to post a grant, in ms. A second attempt is needed if the first one failed, or
 * if the grant was not due yet by the store's clock.
 */
const againMs = 1_000

/** Posts monthly grants when they are due: at the server's start, and before an account's first request in a month. */
export function createGranting({ books, directory, nowMs, calendar, log }: GrantingParts) {
  const underWay = new Map<string, Promise<void>>()
  const triedMs = new Map<string, number>()
  let month = { text: '', startMs: 0, endMs: 0 }
  return { around, postAll }

  /**
   * Wraps an admission. If a grant of the account is due, the request waits until the grant is posted. For an account
   * without grants, this costs one comparison.
   */
  function around(admission: Admission): Admission {
    return {
      ...admission,
      enter: (key) =>
        key.account.grantMonth !== undefined && isDue(key.account)
          ? post(key.account).then(() => admission.enter(key))
          : admission.enter(key),
    }
  }

  /** Posts the due grants of all accounts that are in memory, one account after the other. */
  async function postAll(): Promise<void> {
    for (const account of [...directory.listKnown()]) if (isDue(account)) await post(account)
  }

  function isDue({ grantMonth, state }: Account): boolean {
    if (grantMonth === undefined || state !== 'active') return false
    const ms = nowMs()
    if (ms < month.startMs || ms >= month.endMs)
      month = { ...calendar.periodOf(ms, 'month'), text: monthOf(calendar, ms) }
    return grantMonth < month.text
  }

  function post(account: Account): Promise<void> {
    const agoMs = nowMs() - (triedMs.get(account.id) ?? Number.NEGATIVE_INFINITY)
    // If the clock was ahead at the last attempt and was set back, that attempt does not count.
    if (agoMs >= 0 && agoMs < againMs) return Promise.resolve()
    const known = underWay.get(account.id)
    if (known) return known
    const posting = postOnce(account).finally(() => underWay.delete(account.id))
    underWay.set(account.id, posting)
    return posting
  }

  /** Makes one attempt to post the grant. If it fails, the request continues with the existing credit. */
  async function postOnce(account: Account): Promise<void> {
    const [isOfMonth, before] = [month.text, account.grantMonth]
    try {
      const posted = await (await books()).grant(account.id)
      await directory.readAgain?.()
      // The store dates the grant. By its clock, the grant may be of another month than by the clock of this server.
      if (posted && account.grantMonth === before) account.grantMonth = isOfMonth
      triedMs.delete(account.id)
      if (!posted && isDue(account)) triedMs.set(account.id, nowMs())
    } catch (error) {
      triedMs.set(account.id, nowMs())
      log('error', 'grant_failed', { account: account.name, error: (error as Error).message })
    }
  }
}

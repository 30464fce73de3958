import { BookError } from './book-error.ts'
import type { BookChange, BookWrite, Facts } from './book-rules.ts'
import { spanOf } from './budget.ts'
import { type Calendar, formatTime, monthOf } from './calendar.ts'
import { type AheadAccount, type AheadEntry, type AheadPage, correctionReference, type Entry } from './entries.ts'
import { lastGrantUntil } from './grants.ts'

/*
 * Corrections of times (amends ruling C15). Entries that a fast clock dated too late stay unchanged. Each account with
 * such entries gets a correction entry that names them. Reports, budgets and statements then count the named entries at
 * their effective times. The entry after the correction is posted at the right time again.
 */

/**
 * A correction of all entries dated ahead of the clock.
 * @property shiftMs the ms by which an entry moves back if it was created after `nowMs`
 */
export type Correction = { accounts: readonly AheadAccount[]; nowMs: number; shiftMs: number }

/** An entry that a correction names. @property effectiveMs the time at which the entry counts */
export type CorrectedEntry = Omit<AheadEntry, 'effectiveMs'> &
  Pick<AheadAccount, 'accountId' | 'accountName'> & { effectiveMs: number }

const entriesAtOnce = 1_000

/** Reads the entries that a correction names, page by page. The correction may be only planned. */
export async function* eachCorrected(
  books: { pageAhead(page: AheadPage): Promise<AheadEntry[]> },
  { accounts, nowMs, shiftMs }: Correction,
): AsyncIterable<CorrectedEntry> {
  for (const { accountId, accountName, fromSeq, toSeq } of accounts)
    for (let afterSeq = fromSeq - 1; afterSeq < toSeq; afterSeq += entriesAtOnce)
      for (const entry of await books.pageAhead({ accountId, afterSeq, toSeq, limit: entriesAtOnce }))
        yield {
          ...entry,
          accountId,
          accountName,
          effectiveMs: entry.effectiveMs ?? effectiveMsOf(entry, nowMs, shiftMs),
        }
}

/**
 * Returns the earliest time that the account's next entry may have: the posting time of the given entry. For a
 * correction, it is the earlier time at which the correction was made.
 */
export function floorMsOf({ kind, createdMs, postedMs, details }: Entry): number {
  return kind === 'credit' && details?.effectiveMs !== undefined ? createdMs : postedMs
}

/**
 * Computes the time at which an entry counts. @param shiftMs the number of ms by which an entry moves back if it was
 * created after `nowMs`
 */
function effectiveMsOf({ createdMs }: { createdMs: number }, nowMs: number, shiftMs: number): number {
  return createdMs > nowMs ? createdMs - shiftMs : createdMs
}

/**
 * Returns by how many ms the entries that were created after `nowMs` move back, so that the last of them counts at
 * `lastMs`.
 */
function shiftMsOf(entries: readonly { createdMs: number }[], nowMs: number, lastMs: number): number {
  const latestMs = entries.reduce((latest, { createdMs }) => Math.max(latest, createdMs), 0)
  return latestMs > nowMs ? latestMs - lastMs : 0
}

/**
 * Finds the times at which entries count after a correction. An entry that was created before `nowMs` counts at its
 * creation. All other entries are moved back by the same number of ms.
 * @param lastMs the time at which the latest moved entry will count
 * @throws BookError if `lastMs` is ahead of the clock or precedes a correctly dated entry, or if an entry would move
 *   before 1970
 */
export function correctTimes(accounts: readonly AheadAccount[], nowMs: number, lastMs: number): Correction {
  if (lastMs > nowMs) throw new BookError('effective_ahead', formatTime(lastMs)!)
  const moved = accounts.flatMap(({ moved, afterMs }) => (moved ? [{ ...moved, afterMs }] : []))
  const latestMs = moved.reduce((latest, one) => Math.max(latest, one.lastMs), 0)
  // The earliest valid `lastMs`. No entry may move to a time before 1970. `lastMs` must not precede the entry before
  // the moved ones, unless that entry is dated ahead of the clock too.
  const earliestMs = moved.reduce(
    (earliest, { firstMs, afterMs }) => Math.max(earliest, latestMs - firstMs, afterMs <= nowMs ? afterMs : 0),
    0,
  )
  if (moved.length > 0 && lastMs < earliestMs) throw new BookError('effective_early', formatTime(earliestMs)!)
  return { accounts, nowMs, shiftMs: moved.length > 0 ? latestMs - lastMs : 0 }
}

/**
 * Corrects all entries that are dated ahead of the clock. Each account gets one correction without an amount. Budgets
 * whose windows begin ahead of the clock are counted again.
 * @param lastMs the new time of the last corrected entry; not later than the time of the store
 */
export function correctAhead(lastMs: number, calendar: Calendar): BookChange<Correction> {
  return {
    about: { ahead: true, isDated: true },
    decide({ ahead = [], aheadBudgets, aheadGrants, nowMs }: Facts) {
      const result = correctTimes(ahead, nowMs, lastMs)
      if (ahead.length === 0 && !aheadBudgets?.length) return { writes: [], result }
      const writes = ahead.flatMap((account) => writesOf(account, result))
      for (const { accountId, scope, per } of aheadBudgets ?? [])
        writes.push({
          ...{ kind: 'set_spend', accountId, scope, ...spanOf(calendar, per, nowMs) },
          ...{ spentNanos: 0n, throughSeq: 0 },
        })
      // Grants for future months stay. The account's last grant is set to the latest one up to the current month. So
      // each month before a future grant gets its own grant (ruling Y20).
      for (const { accountId, references } of aheadGrants ?? []) {
        const lastGrant = lastGrantUntil(references, monthOf(calendar, nowMs))
        writes.push({ kind: 'set_account', accountId, fields: { lastGrant } })
      }
      const after = { entries: countOf(result), accounts: ahead.length, effective: formatTime(lastMs)! }
      const trail = { operation: 'ledger.correct', object: 'ledger', after }
      if (ahead.length > 0) writes.push({ kind: 'count_anew', nowMs })
      return { writes, result, trail }
    },
  }
}

/** Counts the entries that a correction names. */
export function countOf({ accounts }: Correction): number {
  return accounts.reduce((sum, { fromSeq, toSeq }) => sum + toSeq - fromSeq + 1, 0)
}

function writesOf({ accountId, fromSeq, toSeq, moved, keptMs }: AheadAccount, correction: Correction): BookWrite[] {
  const { nowMs, shiftMs } = correction
  const effectiveMs = moved ? moved.lastMs - shiftMs : keptMs!
  const reference = correctionReference(accountId, fromSeq, toSeq)
  return [
    { kind: 'post_credit', accountId, amountNanos: 0n, reference, createdMs: nowMs, effectiveMs },
    { kind: 'shift_entries', accountId, fromSeq, toSeq: toSeq + 1, nowMs, shiftMs },
  ]
}

/** The account whose entries are being verified. */
type ReadAccount = { id: string; shifted: { entry: Entry; shiftedMs: number }[]; latestMs: number }

/**
 * Verifies that corrections name the entries that were dated ahead of the clock, and that the named entries count at
 * the stated times. Entries come account by account.
 */
export function createCorrectionCheck(findings: string[]) {
  let account: ReadAccount = { id: '', shifted: [], latestMs: 0 }
  return { check, end: finish }

  /** Checks an entry. @param shiftedMs the time at which the entry counts; undefined if that is its posting time */
  function check(entry: Entry, shiftedMs: number | undefined): void {
    if (entry.accountId !== account.id) {
      finish()
      account = { id: entry.accountId, shifted: [], latestMs: 0 }
    }
    if (floorMsOf(entry) !== entry.postedMs || shiftedMs !== undefined)
      account.shifted.push({ entry, shiftedMs: shiftedMs ?? 0 })
    else account.latestMs = Math.max(account.latestMs, entry.postedMs)
    if (entry.kind === 'credit' && entry.details?.effectiveMs !== undefined)
      checkCorrection(entry, entry.details.effectiveMs)
  }

  function checkCorrection({ accountId, seq, createdMs, amountNanos, reference }: Entry, lastMs: number): void {
    const find = (text: string) => findings.push(`account ${accountId}, entry ${seq}: corrects times, and ${text}`)
    const named = account.shifted.filter(({ entry }) => entry.seq !== seq)
    const entries = named.map(({ entry }) => entry)
    const fromSeq = entries[0]?.seq ?? 0
    if (amountNanos !== 0n) find(`has an amount of ${amountNanos}`)
    if (reference !== correctionReference(accountId, fromSeq, seq - 1) || entries.length !== seq - fromSeq)
      find('does not name the entries before it that count at another time')
    if (account.latestMs > createdMs || entries.some(({ postedMs }) => postedMs <= createdMs))
      find('does not name exactly those that were ahead')
    const shiftMs = shiftMsOf(entries, createdMs, lastMs)
    const wrong = account.shifted.filter(
      ({ entry, shiftedMs }) => shiftedMs !== effectiveMsOf(entry, createdMs, shiftMs),
    )
    if (shiftMs < 0 || wrong.length > 0) find(`${wrong.length} entries count at other times than it says`)
    account = { id: accountId, shifted: [], latestMs: 0 }
  }

  function finish(): void {
    if (account.shifted.length > 0)
      findings.push(
        `account ${account.id}: ${account.shifted.length} entries count at another time, and no correction says so`,
      )
  }
}

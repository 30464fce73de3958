import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Debit } from '../../accounts/ledger.ts'
import type { Posting } from '../../accounts/poster.ts'
import { tryLockStore } from '../files/lock.ts'
import { concludeSpool, readSpool, spoolPath } from '../files/spool.ts'
import { formThreeBegun, type Say } from '../serving/thread.ts'
import type { Database } from './database.ts'
import { findLocked, giveBack, postDebits, readDebtors } from './post.ts'
import type { SpendWindows } from './spend-windows.ts'

type RecoveryOptions = {
  /** The folder of this server's spool and lock. */
  stateDir: string
  spoolsDir: string
  say: Say
  windows?: SpendWindows
  /** Called with the debits of a spool that the ledger now has, and with the requests whose debits were reversed. */
  remember?: (debits: readonly Debit[], returned: readonly string[]) => void
}

/** The base path of a server's lock, spool and process record in its folder. */
export function placeOf(stateDir: string): string {
  return join(stateDir, 'replica')
}

/** The most debits in one call. */
const rowsMax = 500

/**
 * Posts the debits that earlier runs left in their spools, files of unposted debits (ruling X13). The spools are in
 * this server's folder, which it has locked, and in folders below `spoolsDir` that no server has locked.
 *
 * - Each debit is posted exactly once, because the ledger knows its request id. The call may be repeated after any
 *   failure.
 * - Debits of locked accounts stay in their spool for the next start. They are also reported as `held`, and this server
 *   posts or reverses them as soon as it can (ruling Y16).
 */
export async function recoverSpools(database: Database, options: RecoveryOptions): Promise<void> {
  const { stateDir, spoolsDir } = options
  const own = placeOf(stateDir)
  await recover(database, own, options)
  const below = readdirSync(spoolsDir, { withFileTypes: true }).filter((one) => one.isDirectory())
  for (const folder of [spoolsDir, ...below.map(({ name }) => join(spoolsDir, name))]) {
    const place = placeOf(folder)
    if (place === own || !existsSync(spoolPath(place))) continue
    // If a running server has locked the folder, that server posts the spool itself.
    const unlock = tryLockStore(place)
    if (unlock) await recover(database, place, options).finally(unlock)
  }
}

async function recover(database: Database, place: string, options: RecoveryOptions): Promise<void> {
  const { say, windows, remember = () => {} } = options
  const path = spoolPath(place)
  const spooled = readSpool(path)
  const { debits, returns, unreadable } = spooled
  if (!debits.length && !returns.length && !unreadable) return
  const [postings, held, booked]: [Posting[], Debit[], Debit[]] = [[], [], []]
  const listener = { onBooked: (debit: Debit) => void booked.push(debit), onBegun: () => say('log', formThreeBegun) }
  for (let at = 0; at < debits.length; at += rowsMax) {
    const some = debits.slice(at, at + rowsMax)
    const locked = await findLocked(database, [...new Set(some.map(({ accountId }) => accountId))])
    held.push(...some.filter(({ accountId }) => locked.has(accountId)))
    const free = some.filter(({ accountId }) => !locked.has(accountId))
    postings.push(...(await postDebits(database, free, windows, listener)).postings)
  }
  const debtors = await readDebtors(database, returns)
  const lockedNow = await findLocked(database, [...new Set(debtors.map(({ accountId }) => accountId))])
  const refused = debtors.filter(({ accountId }) => lockedNow.has(accountId))
  const now = new Set(returns).difference(new Set(refused.map(({ requestId }) => requestId)))
  const returned = now.size > 0 ? (await giveBack(database, [...now], windows)).returned : []
  // The spool is removed now. If a standby takes over that lacks these debits, only this process still has them.
  remember(booked, returned)
  const heldCount = held.length + refused.length
  const recovery = concludeSpool(path, spooled, postings, returned.length, heldCount > 0)
  const fields = { ...recovery, ...(heldCount > 0 && { held: heldCount }), spool: path }
  if (heldCount > 0) say('held', { debits: held, refused })
  say('log', { level: recovery.aside ? 'error' : 'info', event: 'crash_recovery', fields })
}

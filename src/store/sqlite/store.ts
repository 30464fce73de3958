import type { DatabaseSync } from 'node:sqlite'
import { createCalendar, utc, type Zone } from '../../accounts/calendar.ts'
import type { Audited, VerifyOptions } from '../../accounts/entries.ts'
import { isDamage } from '../files/cures.ts'
import { lockStore } from '../files/lock.ts'
import { type Accounts, createAccounts } from './accounts.ts'
import { createEntries, type Entries } from './entries.ts'
import { createFolding } from './fold.ts'
import { createListing, type Listing } from './listing.ts'
import { rewriteLog } from './log-rewrite.ts'
import { noteMoved, refuseMoved } from './moved.ts'
import { type OpenOptions, openDatabase, transact, withoutWaiting } from './open.ts'
import { createOperators, type Operators } from './operators.ts'
import { createUsageReading, type UsageReading } from './usage.ts'
import { createUsageKeeping } from './usage-keep.ts'
import { audit, verify } from './verify.ts'

/** Everything one connection can do, each operation one transaction. The books and the server's worker share it. */
export type Store = Accounts &
  Omit<Entries, 'findCredit' | 'postCredit' | 'writeSpend'> &
  Listing &
  UsageReading &
  ReturnType<typeof createFolding> &
  ReturnType<typeof createUsageKeeping> &
  Omit<Operators, 'write' | 'findOperators' | 'findMade'> & {
    /** The time of the machine. */
    readNowMs(): number
    /** Findings in words; none when the books are right. */
    verify(options: VerifyOptions): string[]
    /** The same, and where nothing was found a head of what was read (ruling C15). It writes the head's moment down. */
    audit(options: VerifyOptions): Audited
    /** Runs what may as well be done later: where another process has the lock it fails at once. */
    withoutWaiting<T>(work: () => T): T
    /** Of the write-ahead log, as this connection knows it. It changes nothing. */
    countFrames(): number
    /** Brings the log into the file itself, as far as readers allow. */
    checkpoint(): void
    /** Makes what is in the log durable, whatever syncs have failed before (B8). @throws where it cannot. */
    makeDurable(): void
    /** The first damage of the file that a quick look finds. Reads all of it. */
    findDamage(): string | undefined
    close(): void
  }

export type StoreOptions = Omit<OpenOptions, 'lock'> & {
  nowMs?: () => number
  /** The caller is the server that holds the store's lock. Everybody else migrates only where no server runs. */
  isServer?: boolean
  /** In whose days budgets are spent. */
  zone?: Zone | undefined
}

/** @param nowMs Unix milliseconds. @throws StoreError */
export function openStore(
  path: string,
  { nowMs = Date.now, isServer, zone = utc, ...options }: StoreOptions = {},
): Store {
  const db = openDatabase(path, { ...options, lock: isServer ? undefined : lockStore })
  if (isServer) refuseMovedOrClose(db)
  else if (options.note) noteMoved(db, options.note)
  const { findCredit, postCredit, writeSpend, ...entries } = createEntries(db, nowMs, createCalendar(zone))
  const operators = createOperators(db)
  const { write: _write, findOperators: _find, findMade: _made, ...readOperators } = operators
  // Where SQLite is too old to know the word it does a passive checkpoint, which is harmless and tells the same.
  const lookAtLog = db.prepare('PRAGMA wal_checkpoint(NOOP)')
  return {
    ...createAccounts(db, { findCredit, postCredit, writeSpend }, operators, nowMs),
    readNowMs: nowMs,
    ...readOperators,
    ...entries,
    ...createListing(db),
    ...createUsageReading(db),
    ...createFolding(db),
    ...createUsageKeeping(db),
    verify: (options) => verify(db, nowMs(), options),
    audit: (options) => audit(db, nowMs(), options),
    withoutWaiting: (work) => withoutWaiting(db, work),
    countFrames: () => Number(lookAtLog.get()!.log),
    checkpoint: () => db.exec('PRAGMA wal_checkpoint(PASSIVE)'),
    makeDurable: () => transact(db, () => rewriteLog(path)),
    findDamage: () => findDamage(db),
    close: () => db.close(),
  }
}

function refuseMovedOrClose(db: DatabaseSync): void {
  try {
    refuseMoved(db)
  } catch (error) {
    db.close()
    throw error
  }
}

function findDamage(db: DatabaseSync): string | undefined {
  try {
    const { quick_check: text } = db.prepare('PRAGMA quick_check(1)').get()!
    return text === 'ok' ? undefined : String(text).split('\n').at(-1)
  } catch (error) {
    if (isDamage(error)) return (error as Error).message
    throw error
  }
}

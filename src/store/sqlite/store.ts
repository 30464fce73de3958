import type { DatabaseSync } from 'node:sqlite'
import type { BookStore } from '../../accounts/books.ts'
import { createCalendar, utc, type Zone } from '../../accounts/calendar.ts'
import type { VerifyOptions } from '../../accounts/entries.ts'
import type { Reporting } from '../../accounts/usage/reporting.ts'
import type { Watched } from '../../accounts/warnings.ts'
import { lockStore } from '../files/lock.ts'
import { concludeSpool, type Recovery, readSpool, spoolPath } from '../files/spool.ts'
import { isDamage, StoreError } from '../files/store-error.ts'
import { rewriteLog } from '../files/sync.ts'
import { createQuestions } from '../sql/books.ts'
import type { Dialect } from '../sql/dialect.ts'
import { createListing } from '../sql/listing.ts'
import { readClock } from '../sql/moments.ts'
import { countMissed } from '../sql/spends.ts'
import { answering, promising } from '../sql/step.ts'
import { adoptReporting, findOtherZone, pruneSome } from '../sql/usage-keep.ts'
import { createUsageReading } from '../sql/usage-reading.ts'
import { createWords } from '../sql/words.ts'
import { type Accounts, createAccounts } from './accounts.ts'
import { createEntries, type Entries } from './entries.ts'
import { createFolding } from './fold.ts'
import { type OpenOptions, openDatabase, transact, withoutWaiting } from './open.ts'
import { createDialect, createRun, noteMoved, type Run, refuseMoved, usageDialect } from './run.ts'
import { audit, verify } from './verify.ts'

/** The operations of one connection, each in its own transaction. The books and the server's worker call them. */
export type Store = ReturnType<typeof openStore>

type StoreOptions = Omit<OpenOptions, 'lock'> & {
  nowMs?: () => number
  /** Whether the caller is the server that holds the store's lock. Any other caller migrates only if no server runs. */
  isServer?: boolean
  /** The time zone whose days, weeks and months renew budgets. */
  zone?: Zone | undefined
  /** Called when the ledger gets its first entry of form 3, a newer layout of entries. */
  onBegun?: (() => void) | undefined
}

/**
 * Opens a store.
 * @param nowMs Unix milliseconds
 * @throws StoreError
 */
export function openStore(
  path: string,
  { nowMs = Date.now, isServer, zone = utc, onBegun, ...options }: StoreOptions = {},
) {
  const db = openDatabase(path, { ...options, lock: isServer ? undefined : lockStore })
  if (isServer) closingOnError(db, () => refuseMoved(db))
  else if (options.note) noteMoved(db, options.note)
  const [dialect, run] = [createDialect(nowMs), createRun(db)]
  closingOnError(db, () => run(countMissed(dialect)), isDamage)
  const { postCredits, forget, ...entries } = createEntries(db, nowMs, createCalendar(zone), onBegun)
  const { change, ...accounts } = createAccounts(db, run, dialect, { postCredits, forget, nowMs })
  const atOnce = answerAtOnce(db, run, dialect, { change, forget })
  // SQLite versions without NOOP do a passive checkpoint instead. It is harmless and returns the same row.
  const lookAtLog = db.prepare('PRAGMA wal_checkpoint(NOOP)')
  return {
    /** The methods of `BookStore` without promises, because the thread of the ledger never waits. */
    atOnce,
    ...(promising(atOnce) as BookStore),
    ...accounts,
    ...entries,
    ...createFolding(db, run, dialect),
    /** The time of the store, with the facts that show whether its clock is right (ruling Y15). */
    readClock: () => run(readClock(dialect)),
    adoptReporting: (reporting: Reporting, nowMs: number) => run(adoptReporting(dialect, reporting, nowMs)),
    pruneSome: () => run(pruneSome(dialect)),
    /** Checks the recorded zone. @throws StoreError if the recorded zone is not `said` (ruling X12) */
    refuseOtherZone: (said: string, shown: string) => refuseOtherZone(run, said, shown),
    /** Runs work that can also be done later. If another process has the lock, the work fails at once. */
    withoutWaiting: <T>(work: () => T) => withoutWaiting(db, work),
    /** Returns the number of frames in the write-ahead log, as far as this connection knows. Writes nothing. */
    countFrames: () => Number(lookAtLog.get()!.log),
    /** Copies as much of the log into the file as the readers of the log allow. */
    checkpoint: () => db.exec('PRAGMA wal_checkpoint(PASSIVE)'),
    /**
     * Makes the content of the log durable, even if syncs have failed before (B8).
     * @throws what SQLite or the disk reports
     */
    makeDurable: () => transact(db, () => rewriteLog(path)),
    /** Returns the first damage that a quick check of the whole file finds. */
    findDamage: () => findDamage(db),
    close: () => db.close(),
  }
}

function answerAtOnce(
  db: DatabaseSync,
  run: Run,
  dialect: Dialect,
  { change, forget }: Pick<Accounts, 'change'> & Pick<Entries, 'forget'>,
) {
  const listing = createListing(dialect, { readMax: Infinity, sumMax: Infinity })
  const questions = {
    ...createQuestions(dialect),
    ...listing,
    ...createUsageReading(dialect, usageDialect, createWords(dialect)),
  }
  const { watch, ...answers } = answering(questions, run)
  return {
    ...answers,
    change,
    watch(what: Watched) {
      forget()
      watch(what)
    },
    verify: (options: VerifyOptions) => verify(db, run, dialect, options),
    audit: (options: VerifyOptions) => audit(db, run, dialect, options),
  }
}

/** Checks the time zone that the store records. @throws StoreError if it differs from `said` (ruling X12) */
export function refuseOtherZone(run: Run, said: string, shown: string): void {
  const refusal = run(findOtherZone(createDialect(), said, shown))
  if (refusal !== undefined) throw new StoreError(refusal)
}

/**
 * Runs `work`, and closes the database if it throws.
 * @param isLeft returns true for an error to ignore, because `verify` will report the damage that caused it
 */
function closingOnError(db: DatabaseSync, work: () => void, isLeft: (error: unknown) => boolean = () => false): void {
  try {
    work()
  } catch (error) {
    if (isLeft(error)) return
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

/**
 * Posts the debits that an earlier run left in the spool. Each is posted once, because the ledger has the request ids
 * of posted debits. The caller holds the store's lock.
 * @param makeDurable called first. It must make the ledger durable, because posted debits are removed from the spool
 * @returns undefined if the spool was empty
 */
export function drainSpool(path: string, store: Store, makeDurable: () => void): Recovery | undefined {
  const spooled = readSpool(spoolPath(path))
  const { debits, returns, unreadable } = spooled
  if (!debits.length && !returns.length && !unreadable) return undefined
  makeDurable()
  const postings = store.postDebits(debits)
  const returned = returns.length ? store.giveBack(returns).length : 0
  return concludeSpool(spoolPath(path), spooled, postings, returned)
}

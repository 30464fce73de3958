import { BookError } from '../../accounts/book-error.ts'
import { accountOf, type BookChange, stepsOf } from '../../accounts/book-rules.ts'
import type { BookStore } from '../../accounts/books.ts'
import type { Moved } from '../files/store-error.ts'
import { createQuestions, findFacts, make } from '../sql/books.ts'
import { createListing } from '../sql/listing.ts'
import { readMoved } from '../sql/moments.ts'
import { countMissed } from '../sql/spends.ts'
import { answering, promising } from '../sql/step.ts'
import { createUsageReading } from '../sql/usage-reading.ts'
import { createWords } from '../sql/words.ts'
import { type Database, openDatabase, type Transaction } from './database.ts'
import { locks, migrate, refuseEmpty } from './migrate.ts'
import { postCredits, postFunctions } from './post.ts'
import { dialect, run, sliceSizes, usageDialect } from './run.ts'
import { explainDatabase, isConflict } from './trouble.ts'
import { audit, verify } from './verify.ts'

type PostgresBooks = BookStore & { readMoved(): Promise<Moved | undefined>; close(): Promise<void> }

type PostgresBooksOptions = {
  /** The URL as it may be shown (ruling X13). */
  shown: string
  /** Whether to create a store if the database has none. If false, a database without a store is an error. */
  create?: boolean
  /** The longest time of a statement, in ms, if it is not the usual one. */
  statementMs?: number | undefined
}

/** The longest time of a statement of the books, in ms. No statement reads more than a slice of the ledger. */
const patienceMs = 5_000

/** The longest time of a report, in ms. In an upgraded store, reports may have to read many entries. */
const reportMs = 30_000

/**
 * Makes PostgreSQL use an index even if it has no statistics of the table. The wait for a lock is limited even if
 * statements may take long, because debits may have to wait for it.
 */
const settings = { enable_seqscan: 'off', lock_timeout: `${0.75 * patienceMs}` }

/** The longest time of a statement of a migration, in ms. The statement may wait for locks, and change many rows. */
const schemaMs = 60_000

/** The number of times that a change is tried if it conflicts with other changes. */
const triesMax = 5

/** Opens the books of a store in PostgreSQL, and creates or upgrades its schema. @throws StoreError */
export async function openPostgresBooks(
  url: string,
  { shown, create = true, statementMs = patienceMs }: PostgresBooksOptions,
): Promise<PostgresBooks> {
  const maker = openDatabase({ url, max: 1, patienceMs, statementMs: schemaMs, purpose: 'schema' })
  try {
    if (!create) await refuseEmpty(maker, shown)
    await migrate(maker, shown, postFunctions)
    await run(maker, countMissed(dialect))
  } catch (error) {
    throw explainDatabase(error, shown)
  } finally {
    await maker.close()
  }
  const database = openDatabase({ url, max: 2, patienceMs, statementMs, purpose: 'books', settings })
  // Reports read whole tables, for which the forced use of an index (`settings`) would be slow.
  const reports = openDatabase({ url, max: 2, patienceMs, statementMs: reportMs, purpose: 'reports' })
  return {
    ...createPostgresBooks(database, sliceSizes, reports),
    readMoved: () => run(database, readMoved(dialect)),
    async close() {
      await Promise.all([database.close(), reports.close()])
    },
  }
}

/** Creates the books on a database that already has the schema. @param reports runs the queries of reports */
export function createPostgresBooks(database: Database, sizes = sliceSizes, reports: Database = database): BookStore {
  const questions = { ...createQuestions(dialect), ...createListing(dialect, sizes) }
  const words = createWords(dialect)
  reports.onConnect(words.forget)
  return {
    ...promising(answering(questions, (step) => run(database, step))),
    ...promising(answering(createUsageReading(dialect, usageDialect, words), (step) => run(reports, step))),
    change: (change) => makeChange(database, change),
    verify: (options) => verify(database, options, sizes),
    audit: (options) => audit(database, options, sizes),
  }
}

/**
 * Makes a change. If the database aborts the change because of a conflict, nothing was written, and the change is
 * repeated.
 */
async function makeChange<T>(database: Database, change: BookChange<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await database.transact((transaction) => changeIn(transaction, change))
    } catch (error) {
      if (tries === triesMax || !isConflict(error)) throw error
    }
  }
}

/**
 * Makes a change. All changes of operators run one after the other, so revisions are committed in their order. A server
 * that has read a revision has therefore read all earlier ones.
 */
async function changeIn<T>(transaction: Transaction, { about, decide }: BookChange<T>): Promise<T> {
  await transaction.query('SELECT pg_advisory_xact_lock($1)', [locks.operators])
  // Every post shares this lock. Here it is taken exclusively, so that nothing is posted while entries dated in the
  // future are corrected.
  if (about.ahead) await transaction.query('SELECT pg_advisory_xact_lock($1)', [locks.head])
  const facts = await run(transaction, findFacts(dialect, about))
  const { writes, result } = decide(facts)
  if (writes.length === 0) return result
  for (const step of stepsOf(writes)) {
    if (!Array.isArray(step)) await run(transaction, make(dialect, step))
    // A debit may have been reversed since the change was decided, so the balance may be too large to add the credit.
    else if (!(await postCredits(transaction, step, facts.nowMs))) throw new BookError('overflow', step[0]!.accountId)
  }
  const accountIds = writes.map(accountOf).filter((id) => id !== undefined)
  if (accountIds.length === 0) return result
  const rows = await transaction.query(
    `UPDATE triwire.accounts SET revision = nextval('triwire.revisions') WHERE id = ANY ($1) RETURNING revision`,
    [[...new Set(accountIds)]],
  )
  const newest = rows.map(({ revision }) => revision as bigint).reduce((a, b) => (a > b ? a : b))
  await transaction.query(`SELECT pg_notify('triwire_changes', $1)`, [`${newest}`])
  return result
}

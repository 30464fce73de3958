import { resolve } from 'node:path'
import { explainCalls, StoreError, sayMoved } from '../files/store-error.ts'
import { type Database, openDatabase, type Transaction } from '../postgres/database.ts'
import { locks, migrate, refuseEmpty } from '../postgres/migrate.ts'
import { postFunctions } from '../postgres/post.ts'
import { dialect, run } from '../postgres/run.ts'
import { archiveGuards, archivingVersion } from '../postgres/schema.ts'
import { codeOf, explainDatabase } from '../postgres/trouble.ts'
import { readMoved } from '../sql/moments.ts'
import type { ArchiveStore } from './end.ts'

/** The longest time of a statement, in ms. A statement reads at most one month of some accounts. */
const patienceMs = 60_000

/** The longest wait for a lock on tables in use, in ms, and the number of tries. Debits wait meanwhile. */
const [lockMs, triesMax] = [1_000, 10]

/** The SQLSTATE of a statement that waited too long for a lock. */
const lockNotAvailable = '55P03'

/** Makes PostgreSQL use the index in which the entries of an account are together, even without statistics. */
const settings = { enable_seqscan: 'off' }

/** Opens a database for archiving. @throws StoreError if the database cannot be used, or its content was moved */
export async function openPostgresArchive({ url, shown }: { url: string; shown: string }): Promise<ArchiveStore> {
  const database = openDatabase({ url, max: 2, patienceMs, purpose: 'archive', settings })
  try {
    await refuseEmpty(database, shown)
    await migrate(database, shown, postFunctions)
    const moved = await run(database, readMoved(dialect))
    if (moved) throw new StoreError(sayMoved(shown, moved))
    const { run: ask, begin, tidy, ...archive } = createPostgresArchive(database, shown)
    // Errors of the database driver are replaced, because they do not say what an operator can do.
    return { ...archive, ...explainCalls({ run: ask, begin, tidy }, (error) => explainDatabase(error, shown)) }
  } catch (error) {
    await database.close()
    throw explainDatabase(error, shown)
  }
}

/**
 * Makes an `ArchiveStore` of a PostgreSQL database. @param database has our schema; it is closed together with the
 * store
 */
export function createPostgresArchive(database: Database, shown: string): ArchiveStore {
  return {
    shown,
    dialect,
    fileOf: (month) => resolve(`triwire.${month}.archive`),
    run: (step) => run(database, step),
    begin: async () => {
      for (let tries = 1; ; tries++) {
        try {
          return await database.transact(makeGuards)
        } catch (error) {
          // Another session holds the lock in a long statement. Waiting debits are posted before the next try.
          if (tries === triesMax || codeOf(error) !== lockNotAvailable) throw error
        }
      }
    },
    lock: `SELECT pg_advisory_xact_lock(${locks.operators})`,
    idOf: (row) => (row['id'] as string).replaceAll('-', ''),
    tidy: async () => void (await database.query('VACUUM triwire.entries')),
    close: () => database.close(),
  }
}

async function makeGuards({ query }: Transaction): Promise<void> {
  await query('SELECT pg_advisory_xact_lock($1)', [locks.schema])
  const [guard] = await query("SELECT 1 FROM pg_trigger WHERE tgrelid = 'triwire.entries'::regclass AND tgname = $1", [
    'archived_entries_are_not_repeated',
  ])
  if (guard) return
  await query(`SELECT set_config('lock_timeout', '${lockMs}', true)`)
  await query(archiveGuards)
  await query(`UPDATE triwire.schema SET oldest = greatest(oldest, ${archivingVersion})`)
}

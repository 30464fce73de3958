import { lockStore } from '../files/lock.ts'
import { realPath } from '../files/place.ts'
import { explainErrors } from '../files/store-error.ts'
import { openDatabase, transact } from '../sqlite/open.ts'
import { createDialect, createRun, refuseMoved } from '../sqlite/run.ts'
import { archiveGuards, archivingVersion } from '../sqlite/schema.ts'
import type { ArchiveStore } from './end.ts'

/** How long a statement waits for a lock of the server, in ms. */
const busyMs = 10_000

/**
 * Opens a file for archiving.
 * @param nowMs Unix milliseconds
 * @throws StoreError if the file cannot be used, or its content was moved
 */
export function openSqliteArchive(path: string, nowMs: () => number = Date.now): ArchiveStore {
  const db = openDatabase(path, { busyMs, create: false, lock: lockStore })
  try {
    refuseMoved(db)
  } catch (error) {
    db.close()
    throw error
  }
  const run = createRun(db)
  return {
    shown: path,
    dialect: createDialect(nowMs),
    fileOf: (month) => `${realPath(path)}.${month}.archive`,
    run: async (step) => explainErrors(path, () => run(step)),
    begin: async () =>
      explainErrors(path, () =>
        transact(db, () => {
          if (db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'archived_entries_are_not_repeated'").get()) return
          db.exec(archiveGuards)
          const oldest = Number(db.prepare('PRAGMA user_version').get()!.user_version)
          db.exec(`PRAGMA user_version = ${Math.max(oldest, archivingVersion)}`)
        }),
      ),
    lock: undefined,
    idOf: (row) => (row['request_id'] ?? row['reference']) as string,
    // The next entries use the free pages. Shrinking the file would block the server.
    tidy: async () => {},
    close: async () => db.close(),
  }
}

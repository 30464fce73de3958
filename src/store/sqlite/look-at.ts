import { accessSync, constants, existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import type { AccountLook } from '../../accounts/planless.ts'
import { lockPathOf } from '../files/lock.ts'
import { isThere, realPath, refuseNoRoom } from '../files/place.ts'
import { explainErrors } from '../files/store-error.ts'
import { createQuestions } from '../sql/books.ts'
import { type NewerContent, readNewer } from '../sql/newer.ts'
import { readUsageState } from '../sql/usage-keep.ts'
import { readOurVersions, refuseUnfit } from './open.ts'
import { createDialect, createRun, type Run, refuseMoved } from './run.ts'
import { migrations, secondRelease } from './schema.ts'
import { refuseOtherZone } from './store.ts'

/**
 * Checks a store as a server does at its start, and changes nothing. If the store does not exist, only its place is
 * checked.
 * @param timeZone the zone that the server would use
 * @throws StoreError with the reason why a server would not start
 */
export function lookAt(path: string, timeZone: string): void {
  if (!isThere(path)) {
    refuseNoRoom(path)
    return
  }
  refuseUnfit(path)
  const real = realPath(path)
  const lock = lockPathOf(real)
  for (const file of [path, dirname(real), ...(existsSync(lock) ? [lock] : [])])
    explainErrors(file, () => accessSync(file, constants.R_OK | constants.W_OK))
  explainErrors(path, () => {
    const db = new DatabaseSync(untouched(path), { readOnly: true, readBigInts: true })
    try {
      // A store with an older schema is not checked further. It may have no zone, and the server first migrates it.
      const isUpToDate = readOurVersions(db, path, migrations.length).version >= migrations.length
      if (!isUpToDate) return
      refuseMoved(db)
      refuseOtherZone(createRun(db), timeZone, path)
    } finally {
      db.close()
    }
  })
}

/** Reads accounts and writes nothing. Returns undefined if the store is missing or has an older schema. */
export async function lookAtAccounts<T>(path: string, look: AccountLook<T>): Promise<T | undefined> {
  const { pageAccounts, findAccount } = createQuestions(createDialect())
  return lookAtFile(path, (run) =>
    look({
      pageAccounts: async (page) => run(pageAccounts(page)),
      findAccount: async (name) => run(findAccount(name)),
      readUsageState: async () => run(readUsageState(createDialect())),
    }),
  )
}

/**
 * Counts the rows of a store that release 0.2 cannot read. Returns undefined if no store with
 * today's schema exists.
 */
export function lookForNewer(path: string): Promise<NewerContent | undefined> {
  return lookAtFile(path, async (run) =>
    run(readNewer(createDialect(), 'SELECT user_version FROM pragma_user_version', secondRelease)),
  )
}

async function lookAtFile<T>(path: string, look: (run: Run) => Promise<T>): Promise<T | undefined> {
  if (!isThere(path)) return undefined
  const db = new DatabaseSync(untouched(path), { readOnly: true, readBigInts: true })
  try {
    if (readOurVersions(db, path, migrations.length).version < migrations.length) return undefined
    return await look(createRun(db))
  } finally {
    db.close()
  }
}

/**
 * Whether the first audit records of a store, of any version, have one of this actor and operation. Nothing is written.
 * @throws StoreError, or the error of SQLite, if the file is no store
 */
export function beginsWith({ actor, operation }: { actor: string; operation: string }, path: string): boolean {
  refuseUnfit(path)
  const db = new DatabaseSync(untouched(path), { readOnly: true })
  try {
    const found = db.prepare('SELECT 1 FROM audit WHERE seq <= 10 AND actor = ? AND operation = ?')
    return found.get(actor, operation) !== undefined
  } finally {
    db.close()
  }
}

/**
 * Returns the path or URL with which to open a store. A store without a log (WAL) has no writer. It is opened as
 * immutable, so that SQLite creates no log.
 */
function untouched(path: string): string | URL {
  if (existsSync(`${path}-wal`)) return path
  const url = pathToFileURL(path)
  url.searchParams.set('immutable', '1')
  return url
}

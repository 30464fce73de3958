import { accessSync, constants, existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import type { AccountRow, NewerContent } from '../../accounts/book-rows.ts'
import { findPlanless } from '../../accounts/planless.ts'
import { lockPathOf } from '../files/lock.ts'
import { isThere, realPath, refuseNoRoom } from '../files/place.ts'
import { explainErrors } from '../files/store-error.ts'
import { createQuestions } from '../sql/books.ts'
import { readNewer } from '../sql/newer.ts'
import { readOurVersions, refuseUnfit } from './open.ts'
import { createDialect, createRun, refuseMoved } from './run.ts'
import { migrations, secondRelease } from './schema.ts'
import { refuseOtherZone } from './store.ts'

/**
 * Looks at a store as a server does at its start, and changes nothing. Of one that is still to be made only the place is looked at.
 * @param timeZone whose days it is to count by
 * @throws StoreError with what a server would not start on.
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
      // An older one has no zone, or the server brings it up to date first.
      const isUpToDate = readOurVersions(db, path, migrations.length).version >= migrations.length
      if (!isUpToDate) return
      refuseMoved(db)
      refuseOtherZone(createRun(db), timeZone, path)
    } finally {
      db.close()
    }
  })
}

/** The accounts that have another plan than these, as `findPlanless` finds them, in a store that is there and up to date. */
export async function lookForPlanless(path: string, plans: readonly string[]): Promise<AccountRow[]> {
  if (!isThere(path)) return []
  const db = new DatabaseSync(untouched(path), { readOnly: true, readBigInts: true })
  try {
    if (readOurVersions(db, path, migrations.length).version < migrations.length) return []
    const { pageAccounts } = createQuestions(createDialect())
    const run = createRun(db)
    return await findPlanless({ pageAccounts: async (page) => run(pageAccounts(page)) }, plans)
  } finally {
    db.close()
  }
}

/** Counts rows that the second release does not know. Undefined: the store is missing, or older. */
export function lookForNewer(path: string): NewerContent | undefined {
  if (!isThere(path)) return undefined
  const db = new DatabaseSync(untouched(path), { readOnly: true, readBigInts: true })
  try {
    if (readOurVersions(db, path, migrations.length).version < migrations.length) return undefined
    return createRun(db)(readNewer(createDialect(), 'SELECT user_version FROM pragma_user_version', secondRelease))
  } finally {
    db.close()
  }
}

/** A reader makes a log all the same, and leaves it, unless SQLite is assured that nobody writes to the file. */
function untouched(path: string): string | URL {
  if (existsSync(`${path}-wal`)) return path
  const url = pathToFileURL(path)
  url.searchParams.set('immutable', '1')
  return url
}

import { closeSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { LockedError } from '../files/lock.ts'
import { isThere, makeFolder, refuseNoFile, refuseWideMode } from '../files/place.ts'
import { explainErrors, explainMaking, StoreError } from '../files/store-error.ts'
import { detailedVersion, figures, migrations, type SqliteMigration, secondRelease } from './schema.ts'

/*
 * A file has two version numbers. `user_version` is the lowest version of the schema that a program must know to use
 * the file; the second release checks only this number. The last byte of `application_id` is the version of the schema
 * itself. The second release and later ones write it.
 */
const applicationId = 0x74_72_69_00

export type OpenOptions = {
  /** How long a statement waits for another process, in ms. The wait blocks the thread of the statement. */
  busyMs?: number
  /** Whether to create a missing file. If false, a missing file is an error. */
  create?: boolean
  /** How much of the file the connection may keep in memory, in KB. The default of SQLite is 2,000. */
  cacheKb?: number
  /** Takes the lock of the store while an older schema is migrated. Undefined if the caller already has the lock. */
  lock?: ((path: string) => () => void) | undefined
  /** Receives messages about the store for the operator, for example that its schema was migrated. */
  note?: ((text: string) => void) | undefined
}

/**
 * Opens the file, and creates or migrates it if necessary. Commits on the connection are on the disk when they return.
 * @throws StoreError
 */
export function openDatabase(
  path: string,
  { busyMs = 2_000, create = true, cacheKb = 2_000, lock, note }: OpenOptions = {},
): DatabaseSync {
  if (!isThere(path)) {
    if (!create)
      throw new StoreError(`There is no store at ${path}: name the right one with --store, or create an account`)
    createFile(path)
  }
  refuseUnfit(path)
  return explainErrors(path, () => {
    // Foreign keys are enabled after the migration. If a forger left rows that violate them, `verify` reports the rows,
    // and the store can still be opened.
    const db = new DatabaseSync(path, { timeout: busyMs, readBigInts: true, enableForeignKeyConstraints: false })
    try {
      // A file of another program is refused before anything is written to it.
      readTogether(db, () => readOurVersions(db, path, migrations.length))
      // Every opening must set FULL. Without FULL, a power loss may lose a commit, even with WAL.
      db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864')
      db.exec(`PRAGMA cache_size = -${cacheKb}`)
      // Erased names of people must not stay in a page. FAST cleans only pages that are written anyway.
      db.exec('PRAGMA secure_delete = FAST')
      const wasVersion = readVersions(db).version
      const wasOlder = wasVersion > 0 && wasVersion < migrations.length
      if (lock && wasOlder) migrateUnder(lock, db, path)
      else migrate(db, path)
      addFigures(db)
      if (wasOlder) note?.(`${path} was brought up to date: ${sayOlder(wasVersion)}`)
      db.exec('PRAGMA foreign_keys = ON')
      return db
    } catch (error) {
      db.close()
      throw error
    }
  })
}

/** Explains which older versions of triwire can still open a file that was just upgraded. */
function sayOlder(wasVersion: number): string {
  return wasVersion < secondRelease
    ? 'older versions of triwire can no longer open it'
    : 'the version before this one can open it until an entry of form 3 is written'
}

/** Migrates under the lock of the store, because a running server of the older version would keep writing old rows. */
function migrateUnder(lock: (path: string) => () => void, db: DatabaseSync, path: string): void {
  let unlock: () => void
  try {
    unlock = lock(path)
  } catch (cause) {
    if (!(cause instanceof LockedError)) throw cause
    throw new StoreError(
      `${path} was written by an older triwire, and a server runs on it: restart that server with this triwire, which brings the store up to date, then try again`,
      { cause },
    )
  }
  try {
    migrate(db, path)
  } finally {
    unlock()
  }
}

/** Upgrades an older schema in one transaction. @throws StoreError for a newer schema or another program's file */
export function migrate(db: DatabaseSync, path: string, steps: readonly SqliteMigration[] = migrations): void {
  if (readVersions(db).version === steps.length) return
  transact(db, () => {
    const { version, oldest } = readOurVersions(db, path, steps.length)
    if (version >= steps.length) return
    for (const step of steps.slice(version)) {
      if (typeof step === 'string') db.exec(step)
      else step(db)
    }
    db.exec(`PRAGMA user_version = ${Math.max(oldest, Math.min(secondRelease, steps.length))}`)
    if (steps.length > secondRelease) db.exec(`PRAGMA application_id = ${applicationId + steps.length}`)
  })
}

/**
 * Marks the ledger as having entries of form 3, a layout of entries. Programs that do not know this layout then refuse
 * to open the ledger. Called in the transaction of the first entry of form 3.
 * @returns false if the ledger was marked before
 */
export function beginDetails(db: DatabaseSync): boolean {
  if (readVersions(db).oldest >= detailedVersion) return false
  db.exec(`PRAGMA user_version = ${detailedVersion}`)
  return true
}

/** Refuses a path without a file, or with a file that SQLite must not open. @throws StoreError */
export function refuseUnfit(path: string): void {
  refuseNoFile(path)
  refuseWideMode([path, `${path}-wal`, `${path}-shm`])
  refuseSecondName(path)
}

function addFigures(db: DatabaseSync): void {
  const isThere = () => db.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'sums_state'`).get() !== undefined
  if (!isThere()) transact(db, () => isThere() || db.exec(figures))
}

/** Tables that a store of any version has, since the first migration. */
const firstTables = ['accounts', 'keys', 'entries']

/** Reads the versions of a file. @throws StoreError for a newer store or a file of another program */
export function readOurVersions(db: DatabaseSync, path: string, newest: number): FileVersions {
  const versions = readVersions(db)
  const { version, oldest } = versions
  const tables = db.prepare('SELECT name FROM sqlite_master').all()
  // Databases of other programs can have a version too, and even accounts.
  const isStore = version > 0 && firstTables.every((table) => tables.some(({ name }) => name === table))
  if (tables.length > 0 && !isStore)
    throw new StoreError(`${path} is not a triwire store: name another file with --store`)
  if (oldest > newest) {
    throw new StoreError(
      `${path} has schema version ${version} and this triwire knows ${newest}: run the newer triwire that wrote it`,
    )
  }
  return versions
}

/** The schema version of a file, and the lowest version that a program must know. Both are 0 in a new file. */
type FileVersions = { version: number; oldest: number }

function readVersions(db: DatabaseSync): FileVersions {
  const read = (name: string) => Number(db.prepare(`PRAGMA ${name}`).get()![name])
  const [oldest, id] = [read('user_version'), read('application_id')]
  const version = id - applicationId
  return { oldest, version: version > oldest && version < 256 ? version : oldest }
}

/**
 * Runs `work` in a transaction, and rolls it back if `work` throws. The write lock is taken first, so what `work` reads
 * cannot change before it writes.
 */
export function transact<T>(db: DatabaseSync, work: () => T): T {
  db.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    db.exec('COMMIT')
    return result
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

/** Runs `work` in a transaction, so that all its reads see the data of the same moment. */
export function readTogether<T>(db: DatabaseSync, work: () => T): T {
  db.exec('BEGIN')
  try {
    return work()
  } finally {
    // After some errors SQLite has ended the transaction itself. A COMMIT would then fail and hide that error.
    if (db.isTransaction) db.exec('COMMIT')
  }
}

/** Runs `work`. If another process has the lock, `work` fails at once instead of waiting. */
export function withoutWaiting<T>(db: DatabaseSync, work: () => T): T {
  const { timeout } = db.prepare('PRAGMA busy_timeout').get()!
  db.exec('PRAGMA busy_timeout = 0')
  try {
    return work()
  } finally {
    db.exec(`PRAGMA busy_timeout = ${timeout}`)
  }
}

/** Creates the file. SQLite gives the other files beside the database the same mode. */
function createFile(path: string): void {
  try {
    makeFolder(dirname(path))
    closeSync(openSync(path, 'a', 0o600))
  } catch (cause) {
    const why = explainMaking(cause)
    throw why === undefined ? cause : new StoreError(why, { cause })
  }
}

/**
 * Refuses a file with several hard links. SQLite keeps a log for each name. Each log lacks the commits in the others
 * (https://www.sqlite.org/howtocorrupt.html, "multiple links to the same file"). SQLite follows symbolic links, so
 * these are allowed.
 */
function refuseSecondName(path: string): void {
  const names = statSync(path).nlink
  if (names < 2) return
  throw new StoreError(
    `${path} has ${names} names (hard links), which destroys a database that is used by both: find the others with "find -samefile", and remove them or make copies of them`,
  )
}

import { copyFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, suite } from 'node:test'
import type { BookChange } from '../../src/accounts/book-rules.ts'
import { type Books, createBooks } from '../../src/accounts/books.ts'
import { createCalendar, utc, type Zone } from '../../src/accounts/calendar.ts'
import type { GrantBase } from '../../src/accounts/grants.ts'
import type { Debit } from '../../src/accounts/ledger.ts'
import type { Posting } from '../../src/accounts/poster.ts'
import type { Reporting } from '../../src/accounts/usage/reporting.ts'
import type { TrafficCell } from '../../src/accounts/usage/traffic.ts'
import type { ArchiveStore } from '../../src/store/archive/end.ts'
import { createPostgresArchive } from '../../src/store/archive/postgres-end.ts'
import { openSqliteArchive } from '../../src/store/archive/sqlite-end.ts'
import { createPostgresBooks, openPostgresBooks } from '../../src/store/postgres/books.ts'
import { type Database, openDatabase } from '../../src/store/postgres/database.ts'
import { createFolding } from '../../src/store/postgres/fold.ts'
import { giveBack, postDebits } from '../../src/store/postgres/post.ts'
import { dialect, run } from '../../src/store/postgres/run.ts'
import { SpendWindows } from '../../src/store/postgres/spend-windows.ts'
import { adoptReporting, pruneSome } from '../../src/store/sql/usage-keep.ts'
import { openStore } from '../../src/store/sqlite/store.ts'
import { atEnd } from '../support/at-end.ts'
import { copyEmptyStore } from '../support/empty-store.ts'
import { type Postgres, startPostgres, withoutPostgres } from '../support/postgres.ts'
import { patienceMs } from '../support/waiting.ts'
import { createPath } from './fixtures.ts'
import { type Forger, forgeFile } from './forge.ts'

/** A store of a test, whichever its engine: its books, and what only a server does with it. Closed after the test. */
export type TestStore = Books & {
  close(): Promise<void>
  change: <T>(change: BookChange<T>) => Promise<T>
  sumGrant: (accountId: string) => Promise<GrantBase | undefined>
  postDebits(rows: readonly Debit[]): Promise<readonly Posting[]>
  giveBack(requestIds: readonly string[]): Promise<readonly string[]>
  /** Folds so many entries at most into figures for reports. @returns whether there may be more */
  fold(entriesMax: number): Promise<boolean>
  writeTraffic(cells: readonly TrafficCell[]): Promise<void>
  /** At the time of the store. */
  adoptReporting(reporting: Reporting): Promise<void>
  pruneSome(): Promise<boolean>
  /** Turns the clock of the store, which does not move by itself, to this time. */
  turn(ms: number): Promise<void>
  /** Changes the store past the triggers, like a person with write access who knows the schema. */
  forge(work: (forger: Forger) => Promise<void>): Promise<void>
  /** Runs statements like a person with a connection and no other means. */
  exec(sql: string): Promise<void>
  /** The same store for commands that archive its months. */
  archives: ArchiveStore
  /** Another connection to the same store. */
  beside(): Promise<TestStore>
  /** The same after the store was opened as a command opens it. */
  reopen(): Promise<TestStore>
  /** Greatest number of a change, and the ids of the accounts that have changed after this one. */
  readChanges(after: bigint): Promise<{ revision: bigint; accountIds: string[] }>
}

/** Where the clock of a store stands still; without it the clock is the system's. `zone`: whose days budgets are of. */
export type OpenOptions = { atMs?: number; zone?: Zone }

export type Engine = {
  name: 'SQLite' | 'PostgreSQL'
  /** What people call where the ledger is. */
  place: 'the file' | 'the database'
  skip: string | false
  start(): Promise<void>
  stop(): void | Promise<void>
  open(options?: OpenOptions): Promise<TestStore>
  /** Fills a store once, which is opened as by `open`. @returns opens a copy of it each time, at the time at which it was left */
  prepare(fill: (store: TestStore) => Promise<void>, options?: OpenOptions): Promise<() => Promise<TestStore>>
}

/** Defines the same tests for each engine. Where PostgreSQL is not installed its tests are skipped and say so. */
export function onEachStore(define: (engine: Engine) => void): void {
  for (const engine of [createSqlite(), createPostgres()]) {
    suite(`on ${engine.name}`, { skip: engine.skip }, () => {
      before(() => engine.start())
      after(() => engine.stop())
      define(engine)
    })
  }
}

function createSqlite(): Engine {
  return {
    name: 'SQLite',
    place: 'the file',
    skip: false,
    start: async () => {},
    stop() {},
    async open({ atMs, zone } = {}) {
      return openFile(createPath(), { atMs }, zone)
    },
    async prepare(fill, { atMs, zone } = {}) {
      const path = createPath()
      const clock = { atMs }
      const store = openFile(path, clock, zone)
      await fill(store)
      await store.close()
      return async () => {
        const copy = createPath()
        copyFileSync(path, copy)
        return openFile(copy, { ...clock }, zone)
      }
    },
  }
}

/** A store of SQLite by its file, which may be made elsewhere. */
export function openFile(
  path: string,
  clock: { atMs: number | undefined } = { atMs: undefined },
  zone = utc,
): TestStore {
  const nowMs = () => clock.atMs ?? Date.now()
  copyEmptyStore(path)
  const store = openStore(path, { nowMs, zone })
  const close = once(async () => store.close())
  atEnd(close)
  return {
    close,
    ...createBooks(store, nowMs, undefined, createCalendar(zone)),
    change: async (change) => store.change(change),
    sumGrant: async (accountId) => store.sumGrant(accountId),
    postDebits: async (rows) => store.postDebits(rows),
    giveBack: async (requestIds) => store.giveBack(requestIds),
    fold: async (entriesMax) => store.fold(entriesMax) > 0,
    writeTraffic: async (cells) => store.writeTraffic(cells),
    adoptReporting: async (reporting) => store.adoptReporting(reporting, nowMs()),
    pruneSome: async () => store.pruneSome(),
    async turn(ms) {
      clock.atMs = ms
    },
    forge: (work) => forgeFile(path, work),
    archives: openSqliteArchives(path, nowMs),
    async exec(sql) {
      const db = new DatabaseSync(path)
      try {
        db.exec(sql)
      } finally {
        db.close()
      }
    },
    beside: async () => openFile(path, clock, zone),
    reopen: async () => openFile(path, clock, zone),
    async readChanges(after) {
      const { revision, accounts } = store.readChanges(after)
      return { revision, accountIds: accounts.map(({ id }) => id) }
    },
  }
}

function openSqliteArchives(path: string, nowMs: () => number): ArchiveStore {
  let opened: ArchiveStore | undefined
  const open = () => {
    if (opened) return opened
    opened = openSqliteArchive(path, nowMs)
    atEnd(opened.close)
    return opened
  }
  return new Proxy({} as ArchiveStore, { get: (_, name) => open()[name as keyof ArchiveStore] })
}

/** One cluster for a file of tests, and a copy of a database with the schema in it for each test. */
function createPostgres(): Engine {
  let postgres: Postgres
  let admin: Database
  let stopped: string | undefined
  let count = 0
  const copy = async (template: string) => {
    const name = `store_${++count}`
    await admin.query(postgres.copying(template, name))
    return { name, url: postgres.url.replace(/postgres$/, name) }
  }
  const makeStopped = async () => {
    const { name } = await copy('made')
    stopClock(postgres, name, 0)
    return name
  }
  const openCopy = async (template: string, clock: { atMs: number | undefined }, zone?: Zone) => {
    const { name, url } = await copy(template)
    // A copy of a database has not its settings.
    if (clock.atMs !== undefined) await admin.query(clockPath(name))
    return { name, store: openUrl(postgres, url, name, clock, zone) }
  }
  const make = async ({ atMs, zone }: OpenOptions, clock = { atMs }) => {
    if (atMs === undefined) return openCopy('made', clock, zone)
    stopped ??= await makeStopped()
    const made = await openCopy(stopped, clock, zone)
    await made.store.turn(atMs)
    return made
  }
  return {
    name: 'PostgreSQL',
    place: 'the database',
    skip: withoutPostgres(),
    async start() {
      postgres = await startPostgres()
      const url = postgres.createDatabase('made')
      await (await openPostgresBooks(url, { shown: url })).close()
      admin = openDatabase({ url: postgres.url, max: 1, patienceMs, purpose: 'copies', idleMs: 0 })
    },
    async stop() {
      await admin.close()
      postgres.remove()
    },
    open: async (options = {}) => (await make(options)).store,
    async prepare(fill, options = {}) {
      const clock = { atMs: options.atMs }
      const { name, store } = await make(options, clock)
      await fill(store)
      await store.close()
      return async () => (await openCopy(name, { ...clock }, options.zone)).store
    },
  }
}

function openUrl(
  postgres: Postgres,
  url: string,
  name: string,
  clock: { atMs: number | undefined },
  zone = utc,
): TestStore {
  const database = openDatabase({ url, max: 4, patienceMs, purpose: 'test' })
  const close = once(() => database.close())
  atEnd(close)
  const store = createPostgresBooks(database)
  // By the clock of the poster, and not the database's: it still finds the right window.
  const windows = new SpendWindows(zone)
  return {
    close,
    ...createBooks(store, () => clock.atMs ?? Date.now(), undefined, createCalendar(zone)),
    change: async (change) => store.change(change),
    sumGrant: async (accountId) => store.sumGrant(accountId),
    postDebits: async (rows) => (await postDebits(database, rows, windows)).postings,
    giveBack: async (requestIds) => (await giveBack(database, requestIds, windows)).returned,
    ...createFolding(database),
    adoptReporting: (reporting) => run(database, adoptReporting(dialect, reporting)),
    pruneSome: () => run(database, pruneSome(dialect)),
    async turn(ms) {
      clock.atMs = ms
      await database.query('UPDATE turned.clock SET ms = $1', [ms])
    },
    forge: (work) => forgeDatabase(url, work),
    archives: {
      ...createPostgresArchive(database, name),
      fileOf: (month) => join(dirname(createPath()), `${name}.${month}.archive`),
    },
    async exec(sql) {
      postgres.run(`SET search_path = triwire; ${sql}`, name)
    },
    beside: async () => openUrl(postgres, url, name, clock, zone),
    async reopen() {
      await (await openPostgresBooks(url, { shown: url })).close()
      return openUrl(postgres, url, name, clock, zone)
    },
    readChanges: (after) => readChanges(database, after),
  }
}

/** A test may close a store before its end does. */
function once(close: () => Promise<void>): () => Promise<void> {
  let closing: Promise<void> | undefined
  return () => (closing ??= close())
}

async function readChanges({ query }: Database, after: bigint): ReturnType<TestStore['readChanges']> {
  const rows = await query('SELECT id, revision FROM triwire.accounts ORDER BY revision')
  const revision = (rows.at(-1)?.revision as bigint | undefined) ?? 0n
  return { revision, accountIds: rows.filter((row) => (row.revision as bigint) > after).map(({ id }) => id as string) }
}

/** Whoever asks for the time there finds this function before the server's own, in sessions that begin from now on. */
export function stopClock(postgres: Postgres, name: string, atMs: number): void {
  postgres.run(
    `CREATE SCHEMA turned;
     CREATE TABLE turned.clock AS SELECT ${atMs}::bigint AS ms;
     CREATE FUNCTION turned.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
       $$ SELECT 'epoch'::timestamptz + ms * interval '1 millisecond' FROM turned.clock $$;
     ${clockPath(name)}`,
    name,
  )
}

const clockPath = (name: string) => `ALTER DATABASE ${name} SET search_path = turned, pg_catalog`

async function forgeDatabase(url: string, work: (forger: Forger) => Promise<void>): Promise<void> {
  const database = openDatabase({ url, max: 1, patienceMs, purpose: 'forger' })
  try {
    await database.transact(async ({ query }) => {
      await query('SET LOCAL search_path = triwire')
      // Triggers and foreign keys are for others; entries have what SQLite's have by themselves.
      await query('ALTER TABLE entries ALTER id SET DEFAULT gen_random_uuid(), ALTER priced_calls SET DEFAULT 0')
      await query('SET LOCAL session_replication_role = replica')
      await work({
        engine: 'postgres',
        all: (sql) => query(sql),
        run: async (sql, ...values) => void (await query(numbered(withEnds(sql)), values)),
        ends: { table: 'balances', id: 'account_id' },
      })
      await query('ALTER TABLE entries ALTER id DROP DEFAULT, ALTER priced_calls DROP DEFAULT')
    })
  } finally {
    await database.close()
  }
}

function numbered(sql: string): string {
  let n = 0
  return sql.replaceAll('?', () => `$${++n}`)
}

/** How an account's chain ends is in a table of its own here. */
function withEnds(sql: string): string {
  return sql.replace(/UPDATE accounts SET (?:balance|seq|\(seq)[^;]*/g, (statement) =>
    statement.replace('UPDATE accounts', 'UPDATE balances').replace(/WHERE id = (?=[^)]*$)/, 'WHERE account_id = '),
  )
}

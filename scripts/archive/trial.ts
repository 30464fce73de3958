/*
 * Stores whose months are archived, of either engine, with clocks that are turned: for `scripts/archive.ts` and
 * `scripts/archive-faults.ts`.
 */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createBooks } from '../../src/accounts/books.ts'
import { parseHead } from '../../src/accounts/chain.ts'
import type { Debit } from '../../src/accounts/ledger.ts'
import { createPostgresBooks, openPostgresBooks } from '../../src/store/postgres/books.ts'
import { openDatabase } from '../../src/store/postgres/database.ts'
import { createFolding } from '../../src/store/postgres/fold.ts'
import { postDebits } from '../../src/store/postgres/post.ts'
import { dialect, run } from '../../src/store/postgres/run.ts'
import { SpendWindows } from '../../src/store/postgres/spend-windows.ts'
import { adoptReporting } from '../../src/store/sql/usage-keep.ts'
import { openStore } from '../../src/store/sqlite/store.ts'
import { stopClock } from '../../test/store/engines.ts'
import { createDebitRow, verifyOptions } from '../../test/store/fixtures.ts'
import type { Postgres } from '../../test/support/postgres.ts'

/** The month that is detached and attached. It is the first of the filled months. */
export const month = '2025-01'

const reporting = { timeZone: 'UTC', weekStarts: 'monday', keepMonths: 24 } as const
const startMs = Date.UTC(2025, 0, 1)
const program = resolve(import.meta.dirname, '../../bin/triwire.mjs')
/** The number of debits in one call. */
export const batch = 1_000

export type Trial = {
  /** The place of the store, as `--store` accepts it. */
  place: string
  books: Pick<ReturnType<typeof createBooks>, 'createAccount' | 'createKey' | 'credit' | 'audit' | 'findAccount'>
  post(debits: readonly Debit[]): Promise<readonly string[]>
  fold(): Promise<void>
  /** Sets the clock of the store to this time. */
  turn(ms: number): Promise<void>
  bytes(): Promise<number>
  close(): Promise<void>
}

export type Size = { months: number; perMonth: number; accounts: number }

/** @property first the debits of the first month @property head the head of the ledger after the second month */
export type Filled = { first: Debit[]; head: string; owners: string[] }

/** Posts `perMonth` debits in each month, as a server does, and folds them. */
export async function fill(trial: Trial, { months, perMonth, accounts }: Size): Promise<Filled> {
  await trial.turn(Date.UTC(2025, 0, 1, 6))
  const owners: string[] = []
  for (let n = 0; n < accounts; n++) {
    const { id } = await trial.books.createAccount(`account ${n}`, 1_000_000_000_000_000n)
    owners.push(id)
    await trial.books.credit(id, 5n, `january ${id}`)
  }
  const keys = await Promise.all(owners.map(async (id) => (await trial.books.createKey(id)).id))
  const first: Debit[] = []
  let head = ''
  for (let at = 0; at < months; at++) {
    for (let done = 0; done < perMonth; done += batch) {
      const atMs = Date.UTC(2025, at, 2) + Math.floor((done / perMonth) * 25 * 86_400_000)
      await trial.turn(atMs)
      const debits = Array.from({ length: Math.min(batch, perMonth - done) }, (_, n) =>
        debitOf(atMs, owners[n % accounts]!, keys[n % accounts]!),
      )
      if (at === 0) first.push(...debits)
      const postings = await trial.post(debits)
      if (postings.some((one) => one !== 'posted'))
        throw new Error(`not posted: ${postings.find((one) => one !== 'posted')}`)
    }
    if (at === 1) head = (await trial.books.audit(verifyOptions)).head!
  }
  await trial.fold()
  return { first, head, owners }
}

let count = 0

function debitOf(createdMs: number, accountId: string, keyId: string): Debit {
  const requestId = `req_${createdMs.toString(16).padStart(12, '0')}7${(count++).toString(16).padStart(19, '0')}`
  return { ...createDebitRow(requestId, accountId), keyId, createdMs }
}

/** Creates a SQLite store in a folder. Its clock begins with the first month. */
export async function openFile(folder: string): Promise<Trial> {
  return openPath(join(folder, 'triwire.db'), startMs)
}

function openPath(path: string, atMs: number): Trial {
  let now = atMs
  const store = openStore(path, { nowMs: () => now })
  store.adoptReporting(reporting, now)
  return {
    place: path,
    books: createBooks(store, () => now),
    post: async (debits) => store.postDebits(debits),
    fold: async () => {
      while (store.fold(500) > 0);
    },
    turn: async (ms) => {
      now = ms
    },
    bytes: async () => {
      store.checkpoint()
      return statSync(path).size
    },
    close: async () => store.close(),
  }
}

/** Creates a store in a database of its own. Its clock begins with the first month. */
export async function openUrl(postgres: Postgres, name = 'archive'): Promise<Trial> {
  const url = postgres.createDatabase(name)
  stopClock(postgres, name, startMs)
  await (await openPostgresBooks(url, { shown: url })).close()
  const trial = openCopy(url)
  await trial.adopt()
  return trial
}

function openCopy(url: string): Trial & { adopt(): Promise<void> } {
  const database = openDatabase({ url, max: 4, patienceMs: 600_000, purpose: 'trial' })
  const folding = createFolding(database)
  const windows = new SpendWindows({ timeZone: 'UTC', weekStarts: 'monday' })
  return {
    place: url,
    adopt: () => run(database, adoptReporting(dialect, reporting)),
    books: createBooks(createPostgresBooks(database), Date.now),
    post: async (debits) => (await postDebits(database, debits, windows)).postings,
    fold: async () => {
      while (await folding.fold());
    },
    turn: async (ms) => void (await database.query('UPDATE turned.clock SET ms = $1', [ms])),
    bytes: async () => {
      const [row] = await database.query(
        "SELECT sum(pg_total_relation_size(c.oid)) AS n FROM pg_class c WHERE relnamespace = 'triwire'::regnamespace AND relkind = 'r'",
      )
      return Number(row!['n'])
    },
    close: () => database.close(),
  }
}

/** Opens a copy of a filled store. Its clock shows the end of the fill (PostgreSQL), or the end of 2025 (SQLite). */
export function reopen(place: string): Trial {
  return place.includes('://') ? openCopy(place) : openPath(place, Date.UTC(2025, 11, 31))
}

/** @throws Error with the first findings */
export async function verify({ books }: Trial, head?: string): Promise<void> {
  const { findings } = await books.audit({
    ...verifyOptions,
    against: head === undefined ? undefined : parseHead(head),
  })
  if (findings.length > 0) throw new Error(findings.slice(0, 5).join('\n'))
}

/** Starts a command of triwire on the store. */
export function start({ place }: Pick<Trial, 'place'>, words: readonly string[], stdio: StdioOptions): ChildProcess {
  return spawn(process.execPath, [program, ...words, '--store', place, '--json'], { stdio })
}

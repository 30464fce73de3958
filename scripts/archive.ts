/*
 * Tries the archive of months on both stores: `node bin/node.mjs scripts/archive.ts 100000 10`. The numbers are debits
 * a month and kills; `sqlite` or `postgres` after them selects one store. Fills 12 months like a server, with a moved
 * clock, and detaches and attaches the first month. Checks that `verify` succeeds with and without the month, and that
 * its debits and credits are still known. Then kills the commands at several moments, and runs them again. Needs
 * Debian's postgresql.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createBooks } from '../src/accounts/books.ts'
import { parseHead } from '../src/accounts/chain.ts'
import type { Debit } from '../src/accounts/ledger.ts'
import { createPostgresBooks, openPostgresBooks } from '../src/store/postgres/books.ts'
import { openDatabase } from '../src/store/postgres/database.ts'
import { createFolding } from '../src/store/postgres/fold.ts'
import { postDebits } from '../src/store/postgres/post.ts'
import { dialect, run } from '../src/store/postgres/run.ts'
import { SpendWindows } from '../src/store/postgres/spend-windows.ts'
import { adoptReporting } from '../src/store/sql/usage-keep.ts'
import { openStore } from '../src/store/sqlite/store.ts'
import { createDebitRow, verifyOptions } from '../test/store/fixtures.ts'
import { startPostgres } from '../test/support/postgres.ts'

const perMonth = Number(process.argv[2] ?? 100_000)
const kills = Number(process.argv[3] ?? 10)
const [months, batch, accounts] = [12, 1_000, 50]
const reporting = { timeZone: 'UTC', weekStarts: 'monday', keepMonths: 24 } as const
const month = '2025-01'
let count = 0

type Trial = {
  place: string
  books: Pick<ReturnType<typeof createBooks>, 'createAccount' | 'createKey' | 'credit' | 'audit' | 'findAccount'>
  post(debits: readonly Debit[]): Promise<readonly string[]>
  fold(): Promise<void>
  turn(ms: number): Promise<void>
  bytes(): Promise<number>
  close(): Promise<void>
}

const folder = mkdtempSync(join(tmpdir(), 'triwire-archive-'))
const program = resolve(import.meta.dirname, '../bin/triwire.mjs')
const postgres = await startPostgres()
try {
  for (const open of { sqlite: [openFile], postgres: [openUrl] }[process.argv[4] ?? ''] ?? [openFile, openUrl])
    await tryOn(await open())
} finally {
  postgres.remove()
  rmSync(folder, { recursive: true, force: true })
}

async function tryOn(trial: Trial): Promise<void> {
  const { books, place } = trial
  console.log(`\n${place.replace(/:\/\/.*/, '')}: ${months} months of ${perMonth} debits, ${accounts} accounts`)
  const { first, head, owners } = await timed('filled', () => fill(trial))
  const file = join(folder, `${Math.random()}.archive`)
  const archive = (word: string) => command(trial, ['ledger', 'archive', word, month, '--file', file])
  const before = await trial.bytes()
  await timed('export', () => archive('export'))
  const { entries } = await timed('detach', () => archive('detach'))
  console.log(
    `  ${entries} entries left; store ${mb(before)} → ${mb(await trial.bytes())}, file ${mb(statSync(file).size)}`,
  )
  await timed('verify without the month', () => verify(trial, head))
  const balances = await Promise.all(owners.map(async (id) => (await books.findAccount(id)).balanceNanos))
  await timed('every debit and credit of it once more', async () => {
    for (let at = 0; at < first.length; at += batch) {
      const postings = await trial.post(first.slice(at, at + batch))
      if (postings.some((one) => one !== 'exists')) throw new Error('a debit that is away was not known')
    }
    for (const id of owners)
      if ((await books.credit(id, 5n, `january ${id}`)) !== 'exists') throw new Error('a credit was not known')
  })
  const after = await Promise.all(owners.map(async (id) => (await books.findAccount(id)).balanceNanos))
  if (`${balances}` !== `${after}`) throw new Error('a balance has changed')
  await timed('verify after that', () => verify(trial, head))
  await timed('attach', () => archive('attach'))
  await timed('verify with it again', () => verify(trial, head))
  for (let n = 0; n < kills; n++) {
    const word = n % 2 === 0 ? 'detach' : 'attach'
    await killed(trial, ['ledger', 'archive', word, month, '--file', file], 300 + Math.random() * 4_000)
    await verify(trial, head)
    await archive(word)
  }
  console.log(`  ${kills} commands were killed, verify held after each, and each went on`)
  await trial.close()
}

async function fill(trial: Trial) {
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

function debitOf(createdMs: number, accountId: string, keyId: string): Debit {
  const requestId = `req_${createdMs.toString(16).padStart(12, '0')}7${(count++).toString(16).padStart(19, '0')}`
  return { ...createDebitRow(requestId, accountId), keyId, createdMs }
}

async function openFile(): Promise<Trial> {
  const path = join(folder, 'triwire.db')
  let now = Date.UTC(2025, 0, 1)
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

async function openUrl(): Promise<Trial> {
  const url = postgres.createDatabase('archive')
  const startMs = Date.UTC(2025, 0, 1)
  postgres.run(
    `CREATE SCHEMA turned; CREATE TABLE turned.clock AS SELECT ${startMs}::bigint AS ms;
     CREATE FUNCTION turned.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
       $$ SELECT 'epoch'::timestamptz + ms * interval '1 millisecond' FROM turned.clock $$;
     ALTER DATABASE archive SET search_path = turned, pg_catalog`,
    'archive',
  )
  await (await openPostgresBooks(url, { shown: url })).close()
  const database = openDatabase({ url, max: 4, patienceMs: 600_000, purpose: 'trial' })
  await run(database, adoptReporting(dialect, reporting))
  const folding = createFolding(database)
  const windows = new SpendWindows({ timeZone: 'UTC', weekStarts: 'monday' })
  return {
    place: url,
    books: createBooks(createPostgresBooks(database), Date.now),
    post: async (debits) => (await postDebits(database, debits, windows)).postings,
    fold: async () => {
      while (await folding.fold());
    },
    turn: async (ms) => void (await database.query(`UPDATE turned.clock SET ms = ${ms}`)),
    bytes: async () => {
      const [row] = await database.query(
        "SELECT sum(pg_total_relation_size(c.oid)) AS n FROM pg_class c WHERE relnamespace = 'triwire'::regnamespace AND relkind = 'r'",
      )
      return Number(row!['n'])
    },
    close: () => database.close(),
  }
}

async function verify({ books }: Trial, head?: string): Promise<void> {
  const { findings } = await books.audit({
    ...verifyOptions,
    against: head === undefined ? undefined : parseHead(head),
  })
  if (findings.length > 0) throw new Error(findings.slice(0, 5).join('\n'))
}

function start(trial: Trial, words: readonly string[], stdio: 'ignore' | 'pipe'): ChildProcess {
  return spawn(process.execPath, [program, ...words, '--store', trial.place, '--json'], {
    stdio: ['ignore', stdio, 'inherit'],
  })
}

async function command(trial: Trial, words: readonly string[]): Promise<{ entries: number }> {
  const child = start(trial, words, 'pipe')
  const [text, code] = await Promise.all([
    Array.fromAsync(child.stdout!),
    new Promise((done) => child.once('exit', done)),
  ])
  if (code !== 0) throw new Error(`${words.join(' ')} failed`)
  return JSON.parse(text.join(''))
}

async function killed(trial: Trial, words: readonly string[], afterMs: number): Promise<void> {
  const child = start(trial, words, 'ignore')
  const ended = new Promise((done) => child.once('exit', done))
  await Promise.race([ended, sleep(afterMs)])
  child.kill('SIGKILL')
  await ended
}

async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  const started = performance.now()
  const result = await work()
  console.log(`  ${what}: ${((performance.now() - started) / 1_000).toFixed(1)} s`)
  return result
}

function mb(bytes: number): string {
  return `${(bytes / 1e6).toFixed(0)} MB`
}

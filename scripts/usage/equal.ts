import assert from 'node:assert/strict'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { type Books, createBooks } from '../../src/accounts/books.ts'
import { quarterMs, utc } from '../../src/accounts/calendar.ts'
import type { Debit } from '../../src/accounts/ledger.ts'
import type { UsageAnswer, UsageQuestion } from '../../src/accounts/usage/question.ts'
import { foldedMax } from '../../src/accounts/usage/reporting.ts'
import { priceNanos } from '../../src/catalog/model.ts'
import { newRequestId } from '../../src/ids.ts'
import { openPostgresBooks } from '../../src/store/postgres/books.ts'
import { openDatabase } from '../../src/store/postgres/database.ts'
import { createFolding } from '../../src/store/postgres/fold.ts'
import { giveBack, postDebits } from '../../src/store/postgres/post.ts'
import { dialect, run, usageDialect } from '../../src/store/postgres/run.ts'
import { SpendWindows } from '../../src/store/postgres/spend-windows.ts'
import { adoptReporting } from '../../src/store/sql/usage-keep.ts'
import { createUsageReading } from '../../src/store/sql/usage-reading.ts'
import { createWords } from '../../src/store/sql/words.ts'
import { createDialect, createRun, usageDialect as fileDialect } from '../../src/store/sqlite/run.ts'
import { openStore } from '../../src/store/sqlite/store.ts'
import {
  type Asking,
  asking,
  berlin,
  boundsOf,
  hourMs,
  isByDays,
  type Post,
  post,
  question,
  startMs,
} from '../../test/store/usage-laws.ts'
import { startPostgres } from '../../test/support/postgres.ts'

type Answering = { readUsage(question: UsageQuestion): Promise<UsageAnswer>; close(): Promise<void> }

/** A store to fill, and a copy in which nothing was ever folded. The copy answers questions by a scan of the ledger. */
type Proven = Answering & {
  books: Books
  /** Sets the time at which debits are posted from now on, if the store's clock can be set. */
  turn(ms: number): void
  post(debits: readonly Debit[]): Promise<unknown>
  giveBack(requestIds: readonly string[]): Promise<unknown>
  fold(): Promise<boolean>
  copyUnfolded(): Promise<Answering>
}

const questionsAsked = 25

/**
 * Fills a store with the traffic of test/store/usage.test.ts, posted and folded as by a server, with the chain. Runs
 * `ledger verify`, and asks questions with and without a tail (entries that are not folded). Each answer must equal a
 * scan of the ledger.
 */
export async function proveEqual(folder: string, entries: number, engine: string | undefined): Promise<void> {
  const seed = Date.now() % 2 ** 31
  if (engine !== 'PostgreSQL') await prove('SQLite', openFileToFill(folder), entries, seed)
  if (engine === 'SQLite') return
  const postgres = await startPostgres({ settings: ['fsync = off', 'max_wal_size = 4GB', 'shared_buffers = 512MB'] })
  try {
    await prove('PostgreSQL', await openDatabaseToFill(postgres.createDatabase('whole')), entries, seed)
  } finally {
    postgres.remove()
  }
}

async function prove(engine: string, store: Proven, entries: number, seed: number): Promise<void> {
  const beganMs = performance.now()
  const accounts: string[] = []
  for (const name of ['a', 'b', 'c']) accounts.push((await store.books.createAccount(name, 9_000_000_000_000_000n)).id)
  const { folds, lastMs } = await postAll(store, accounts, entries, seed)
  const filledMs = performance.now()
  const scanned = await store.copyUnfolded()
  const questions = fc.sample(asking, { seed, numRuns: questionsAsked }).map((one) => questionOf(one, accounts, lastMs))
  const expected: UsageAnswer[] = []
  for (const one of questions) expected.push(await scanned.readUsage(one))
  await scanned.close()
  const compare = async () => {
    for (const [at, one] of questions.entries())
      assert.deepEqual(await store.readUsage(one), expected[at], `seed ${seed}, question ${at}`)
  }
  await compare()
  let more = 0
  while (await store.fold()) more++
  await compare()
  // The keys of these debits were never created, which verify reports.
  const findings = (await store.books.verify({ priceNanos })).filter((one) => !one.endsWith('does not exist'))
  await store.close()
  console.log(
    `${engine}: ${entries} debits and their returns in ${seconds(filledMs - beganMs)}, ${folds} folds of at most ${foldedMax} and ${more} more; ` +
      `${questionsAsked} questions, with a tail and without, as by a scan of the ledger; ${findings.length} findings of verify ` +
      `(${seconds(performance.now() - filledMs)}, seed ${seed})`,
  )
  for (const finding of findings.slice(0, 10)) console.log(finding)
  if (findings.length > 0) process.exitCode = 1
}

/** @returns the time of the last entry */
async function postAll(store: Proven, accounts: readonly string[], entries: number, seed: number) {
  let [nowMs, folds] = [startMs, 0]
  // Intervals are shorter than in the property test, so that all entries are within a few months.
  const faster = 500 / entries
  for (let done = 0, piece = 0; done < entries; piece++) {
    const posts = fc.sample(post, {
      seed: seed + piece,
      numRuns: Math.min(entries - done, 1 + ((seed + piece * 37) % 800)),
    })
    const debits = posts.map((one) => debitOf(one, accounts))
    nowMs += posts.reduce((sum, { later }) => sum + later, 0) * hourMs * faster
    store.turn(Math.floor(nowMs))
    await store.post(debits)
    const returned = debits.flatMap(({ requestId }, at) => (posts[at]!.isReturned ? [requestId] : []))
    if (returned.length > 0) await store.giveBack(returned)
    done += posts.length
    // The last entries are not folded here, so that readers must fold them.
    for (let fold = piece % 3; fold > 0 && done < entries * 0.95; fold--) if (await store.fold()) folds++
  }
  return { folds, lastMs: Math.max(Math.floor(nowMs), Date.now()) }
}

function debitOf({ account, key, model, outcome, upstream }: Post, accounts: readonly string[]): Debit {
  const [accountId, requestId] = [accounts[account]!, newRequestId()]
  // Makes figures that differ each time; they have no other meaning.
  const some = Number.parseInt(requestId.slice(-6), 16)
  const usage = {
    ...{
      inputTokens: some % 9_973,
      cacheReadTokens: some % 4_999,
      cacheWriteTokens: some % 13,
      cacheWrite1hTokens: some % 7,
    },
    ...{ outputTokens: some % 1_999, reasoningTokens: some % 11, estimated: false },
  }
  const rate = { inputNanos: 3_000_000_000n, cacheReadNanos: 300_000_000n, cacheWriteNanos: 3_750_000_000n }
  const prices = { ...rate, cacheWrite1hNanos: 6_000_000_000n, outputNanos: 15_000_000_000n }
  return {
    ...{ requestId, accountId, keyId: `${accountId}/${key}`, clientWire: 'chat', model, modelWire: 'messages' },
    ...{ upstream, upstreamAccount: 'one', amountNanos: priceNanos(prices, usage), usage, usageSource: 'final' },
    ...{ pricedCalls: 0, calls: undefined, priceVersion: 'v1', prices, outcome, createdMs: Date.now() },
  }
}

function questionOf(asked: Asking, accounts: readonly string[], lastMs: number): UsageQuestion {
  const boundsMs = boundsOf({ ...asked, period: asked.period === 'quarter' ? 'hour' : asked.period }, lastMs)
  return question({
    bounds: boundsMs.map((ms) => Math.floor(ms / quarterMs)),
    daysOf: isByDays(asked) ? { timeZone: asked.zone, weekStarts: 'monday' } : undefined,
    ...{ by: asked.by, top: asked.top },
    only: {
      ...(asked.model && { model: [asked.model] }),
      ...(asked.account !== undefined && { account: [accounts[asked.account]!] }),
    },
    sums: ['cost', 'requests', 'errors', 'input_tokens', 'cache_read_tokens', 'output_tokens', 'reasoning_tokens'],
  })
}

function openFileToFill(folder: string): Proven {
  const path = join(folder, 'whole.db')
  let nowMs = startMs
  const store = openStore(path, { nowMs: () => nowMs })
  store.adoptReporting(berlin, nowMs)
  const whole = new DatabaseSync(path, { readBigInts: true })
  return {
    books: createBooks(store, () => nowMs),
    turn: (ms) => {
      nowMs = ms
    },
    post: async (debits) => store.postDebits(debits),
    giveBack: async (requestIds) => store.giveBack(requestIds),
    fold: async () => store.fold(foldedMax) > 0,
    readUsage: async (question) => readAllOf(whole, question),
    async close() {
      whole.close()
      store.close()
    },
    async copyUnfolded() {
      const copy = join(folder, 'scanned.db')
      whole.exec(`VACUUM INTO '${copy}'`)
      chmodSync(copy, 0o600)
      const db = new DatabaseSync(copy, { readBigInts: true })
      for (const table of ['sums_h', 'sums_d', 'sums_t', 'sums_k', 'sums_marks']) db.exec(`DELETE FROM ${table}`)
      db.exec('UPDATE sums_state SET folded_id = 0')
      return { readUsage: async (question) => readAllOf(db, question), close: async () => db.close() }
    },
  }
}

/** Answers a question, and reads all entries that are not folded, without a limit. */
function readAllOf(db: DatabaseSync, question: UsageQuestion): UsageAnswer {
  const dialect = createDialect()
  return createRun(db)(createUsageReading(dialect, fileDialect, createWords(dialect), Infinity).readUsage(question))
}

async function openDatabaseToFill(url: string): Promise<Proven> {
  const opened = await openPostgresBooks(url, { shown: url })
  const database = openDatabase({ url, max: 4, patienceMs: 600_000, purpose: 'trial' })
  await run(database, adoptReporting(dialect, berlin))
  const { fold } = createFolding(database)
  const reading = createUsageReading(dialect, usageDialect, createWords(dialect), Infinity)
  const windows = new SpendWindows(utc)
  return {
    books: createBooks(opened, Date.now),
    turn() {},
    post: (debits) => postDebits(database, debits, windows),
    giveBack: (requestIds) => giveBack(database, requestIds, windows),
    fold: () => fold(),
    readUsage: (question) => run(database, reading.readUsage(question)),
    async close() {
      await Promise.all([opened.close(), database.close()])
    },
    /** Hides the figures of this database until `close`, so that it answers like a copy without figures. */
    async copyUnfolded() {
      const tables = ['sums_h', 'sums_d', 'sums_t', 'sums_k', 'sums_marks']
      const all = (text: (table: string) => string) => database.query(tables.map(text).join('; '))
      await all(
        (table) =>
          `ALTER TABLE triwire.${table} RENAME TO ${table}_kept; CREATE TABLE triwire.${table} (LIKE triwire.${table}_kept INCLUDING ALL)`,
      )
      return {
        readUsage: (question) => run(database, reading.readUsage(question)),
        close: async () =>
          void (await all(
            (table) => `DROP TABLE triwire.${table}; ALTER TABLE triwire.${table}_kept RENAME TO ${table}`,
          )),
      }
    },
  }
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(0)} s`
}

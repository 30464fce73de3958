import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createBooks } from '../../src/accounts/books.ts'
import { foldedMax } from '../../src/accounts/usage/reporting.ts'
import { findUsageDifferences } from '../../src/store/sql/usage-check.ts'
import { createDialect, createRun } from '../../src/store/sqlite/run.ts'
import { openStore } from '../../src/store/sqlite/store.ts'
import {
  ask,
  askings,
  keepProgress,
  makeOwners,
  measure,
  printTimes,
  readOwners,
  sessions,
  startSteps,
} from './ledger.ts'

/** Entries in one commit, and cells of traffic in one commit. */
const [writtenAtOnce, countedAtOnce] = [500_000, 20_000]

/** Fills a file with entries, and asks questions. @param isFilled whether the file is filled already */
export async function askInFile(folder: string, entries: number, isFilled: boolean): Promise<void> {
  const path = join(folder, 'long.db')
  if (!isFilled) await fill(path, folder, entries)
  await printTimes('SQLite', askings, async (asking, times) => {
    const opened = openStore(path, { create: false })
    const found = await measure(() => ask(createBooks(opened, Date.now), asking), times)
    opened.close()
    return found
  })
}

async function fill(path: string, folder: string, entries: number): Promise<void> {
  const isNew = !existsSync(path)
  const store = openStore(path)
  const books = createBooks(store, Date.now)
  if (isNew) await makeOwners(books)
  const owners = await readOwners(books)
  const progress = keepProgress(join(folder, 'long.json'))
  const made = sessions(entries, owners, progress.endMs)
  const steps = startSteps('SQLite', entries)
  writeEntries(path, made, steps.tell)
  steps.end('written')
  let folded = 0
  for (let count = foldedMax; count === foldedMax; folded += count) {
    count = store.fold(foldedMax)
    steps.tell(folded)
  }
  steps.end('folded', folded)
  let at = 0
  for (const cells of made.traffic(countedAtOnce)) {
    if (at++ < progress.counted) continue
    store.writeTraffic(cells)
    progress.counted = at
    steps.tell(at * countedAtOnce)
  }
  steps.end('counted')
  store.close()
  const checked = new DatabaseSync(path, { readBigInts: true, readOnly: true })
  steps.endCheck(createRun(checked)(findUsageDifferences(createDialect(), 5_000)))
  checked.close()
  console.log(`SQLite, ${entries} entries: ${steps.said()}, ${Math.round(statSync(path).size / 1_048_576)} MB in all`)
}

/**
 * Writes entries without the chain and the triggers, in the order of their times. Existing entries are skipped.
 * @param isOfPersons false for a store of a release without people
 */
export function writeEntries(
  path: string,
  made: ReturnType<typeof sessions>,
  tell: (count: number) => void,
  isOfPersons = true,
): void {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA synchronous = OFF; DROP TRIGGER IF EXISTS entries_are_not_replaced')
  const there = Number(db.prepare('SELECT count(*) AS n FROM entries').get()!['n'])
  if (there === 0) db.exec(`INSERT INTO prices VALUES ('v1', 0, 0, 0, 0, 0, NULL)`)
  const insert = db.prepare(
    `INSERT INTO entries (account_id, seq, kind, amount, balance_after, request_id, key_id, client_wire, model, model_wire, upstream,
       upstream_account, input_tokens, cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens,
       usage_source, price_version, outcome, created_ms, posted_ms, digest${isOfPersons ? ', person' : ''})
     VALUES (?, ?, 'debit', ?, 0, ?, ?, 'chat', ?, 'messages', ?, 'one', 1000, 500, 0, 0, 200, 50, 'final', 'v1', ?, ?, ?, 'x'${isOfPersons ? ', ?' : ''})`,
  )
  const setSeq = db.prepare('UPDATE accounts SET seq = ? WHERE id = ?')
  let count = 0
  db.exec('BEGIN')
  for (const { accountId, seq, keyId, person, model, upstream, outcome, atMs } of made.entries()) {
    if (++count <= there) continue
    const words = [keyId, model, upstream, outcome]
    insert.run(
      accountId,
      seq,
      1_000_000 + (count % 999),
      `r${count}`,
      ...words,
      atMs,
      atMs,
      ...(isOfPersons ? [person ?? null] : []),
    )
    if (count % writtenAtOnce === 0) commit()
    tell(count)
  }
  commit()
  db.exec('COMMIT')
  db.close()

  function commit(): void {
    for (const [id, seq] of made.seqs) setSeq.run(seq, id)
    db.exec('COMMIT; BEGIN')
  }
}

import { join } from 'node:path'
import { createBooks } from '../../src/accounts/books.ts'
import { openPostgresBooks } from '../../src/store/postgres/books.ts'
import { type Database, openDatabase } from '../../src/store/postgres/database.ts'
import { createFolding } from '../../src/store/postgres/fold.ts'
import { dialect, run, sliceSizes } from '../../src/store/postgres/run.ts'
import { findUsageDifferences } from '../../src/store/sql/usage-check.ts'
import { startPostgres } from '../../test/support/postgres.ts'
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

const statementMs = 600_000

/** Entries in one statement, and cells of traffic in one commit. */
const [writtenAtOnce, countedAtOnce] = [20_000, 20_000]

const settings = ['fsync = off', 'synchronous_commit = off', 'max_wal_size = 4GB', 'shared_buffers = 512MB']

/** Does the same in PostgreSQL. @param given the URL of a database to use instead of one of its own */
export async function askInDatabase(
  folder: string,
  entries: number,
  isFilled: boolean,
  given: string | undefined,
): Promise<void> {
  const postgres = given === undefined ? await startPostgres({ settings }) : undefined
  try {
    const url = given ?? postgres!.createDatabase('usage')
    if (!isFilled) await fill(url, folder, entries)
    await printTimes('PostgreSQL', askings, async (asking, times) => {
      const reading = await openPostgresBooks(url, { shown: url })
      const found = await measure(() => ask(createBooks(reading, Date.now), asking), times)
      await reading.close()
      return found
    })
  } finally {
    postgres?.remove()
  }
}

async function fill(url: string, folder: string, entries: number): Promise<void> {
  const opened = await openPostgresBooks(url, { shown: url })
  const books = createBooks(opened, Date.now)
  if ((await books.listKeys()).length === 0) await makeOwners(books)
  const owners = await readOwners(books)
  const progress = keepProgress(join(folder, 'long-postgres.json'))
  const made = sessions(entries, owners, progress.endMs)
  const [patienceMs, purpose] = [statementMs, 'trial']
  const database = openDatabase({ url, max: 2, patienceMs, purpose, settings: { enable_seqscan: 'off' } })
  const steps = startSteps('PostgreSQL', entries)
  await writeEntries(database, made, steps.tell)
  await database.query('ANALYZE')
  steps.end('written')
  const { fold, writeTraffic } = createFolding(database)
  const before = await countFolded(database)
  for (let n = 1; await fold(); n++) steps.tell(n * 500)
  steps.end('folded', (await countFolded(database)) - before)
  let at = 0
  for (const cells of made.traffic(countedAtOnce)) {
    if (at++ < progress.counted) continue
    await writeTraffic(cells)
    progress.counted = at
    steps.tell(at * countedAtOnce)
  }
  await database.query('VACUUM ANALYZE')
  steps.end('counted')
  const findings: string[] = []
  for (const finding of await run(database, findUsageDifferences(dialect, sliceSizes.verifyMax))) findings.push(finding)
  steps.endCheck(findings)
  const [size] = await database.query('SELECT pg_database_size(current_database()) AS bytes')
  console.log(
    `PostgreSQL, ${entries} entries: ${steps.said()}, ${Math.round(Number(size!['bytes']) / 1_048_576)} MB in all`,
  )
  await database.close()
  await opened.close()
}

async function countFolded({ query }: Database): Promise<number> {
  return Number((await query('SELECT coalesce(sum(requests), 0) AS n FROM triwire.sums_k'))[0]!['n'])
}

/**
 * Writes entries without the chain, in the order of their times. Existing entries are skipped.
 * @param isOfPersons false for a store of a release without people
 */
export async function writeEntries(
  database: Database,
  made: ReturnType<typeof sessions>,
  tell: (count: number) => void,
  isOfPersons = true,
): Promise<void> {
  const id = (at: number, ms: number) => `${ms.toString(16).padStart(12, '0')}7000${at.toString(16).padStart(16, '0')}`
  const [{ n: there }] = (await database.query('SELECT count(*) AS n FROM triwire.entries')) as [{ n: bigint }]
  let rows: (string | number | null)[][] = []
  let count = 0
  for (const { accountId, seq, keyId, person, model, upstream, outcome, atMs } of made.entries()) {
    if (++count <= there) continue
    rows.push([
      id(count, atMs),
      accountId,
      seq,
      1_000_000 + (count % 999),
      `r${count}`,
      keyId,
      model,
      upstream,
      outcome,
      atMs,
      person ?? null,
    ])
    if (count % writtenAtOnce === 0) await flush()
    tell(count)
  }
  await flush()
  await database.query(
    'UPDATE triwire.balances b SET seq = n.seq FROM unnest($1::text[], $2::bigint[]) AS n (id, seq) WHERE b.account_id = n.id',
    [[...made.seqs.keys()], [...made.seqs.values()]],
  )

  async function flush(): Promise<void> {
    const columns = Array.from({ length: isOfPersons ? 11 : 10 }, (_, at) => rows.map((row) => row[at]!))
    rows = []
    await database.query(
      `INSERT INTO triwire.entries (id, account_id, seq, kind, amount, balance_after, request_id, key_id, client_wire, model, model_wire,
         upstream, upstream_account, input_tokens, cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, output_tokens,
         reasoning_tokens, priced_calls, usage_source, price_version, outcome, created_ms, posted_ms, digest${isOfPersons ? ', person' : ''})
       SELECT n.id::uuid, n.account, n.seq, 'debit', n.amount, 0, n.request, n.key, 'chat', n.model, 'messages', n.upstream, 'one',
         1000, 500, 0, 0, 200, 50, 0, 'final', 'v1', n.outcome, n.at, n.at, 'x'${isOfPersons ? ', n.person' : ''}
       FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
         $10::bigint[]${isOfPersons ? ', $11::text[]' : ''})
         AS n (id, account, seq, amount, request, key, model, upstream, outcome, at${isOfPersons ? ', person' : ''})`,
      columns,
    )
  }
}

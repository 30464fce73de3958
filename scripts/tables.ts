/*
 * Measures the usage table and the statements of a month with many entries, by default a million:
 * `node bin/node.mjs scripts/tables.ts [entries] [SQLite|PostgreSQL] [--base FOLDER]`.
 *
 * - `usage table --by account,person,key,model` runs as a program. The table must be complete, and the program may use
 *   100 MB. `--base` names a checkout of commit bbaae1cf with its packages. In turns with the table, its command
 *   `ledger totals` reads the same entries without people. The table may not take longer than that.
 * - Statements of 200 accounts may take 2 s each. A statement of one account that has all entries may take 10 s. After
 *   1,000 more entries, the statements must have the same bytes in every form.
 *
 * Times are the shortest of several turns, because other work on the machine only adds time. The script fails if a
 * figure is above its bound.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { type Books, createBooks } from '../src/accounts/books.ts'
import { createCalendar, utc } from '../src/accounts/calendar.ts'
import { statementOperations } from '../src/operations/statements.ts'
import { openPostgresBooks } from '../src/store/postgres/books.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { fillMonth, type Month, type MonthStore, openFile } from './usage/month.ts'

const { values, positionals } = parseArgs({ options: { base: { type: 'string' } }, allowPositionals: true })
const [entries, engine] = [Number(positionals[0] ?? 1_000_000), positionals[1]]
const forms = ['json', 'csv', 'html'] as const
const [megabytesMax, statementMsMax, longStatementMsMax, turns] = [100, 2_000, 10_000, 5]

const calendar = createCalendar(utc)
const { startMs: endMs } = calendar.periodOf(Date.now(), 'month')
const { startMs } = calendar.periodOf(endMs - 1, 'month')
const month: Month = { entries, startMs, endMs, name: calendar.dateOf(startMs).slice(0, 7) }

const folder = mkdtempSync(join(tmpdir(), 'triwire-tables-'))
process.env['TRIWIRE_TEST_DIR'] ??= folder
const says: string[] = []
try {
  for (const name of ['SQLite', 'PostgreSQL'] as const) if (engine === undefined || engine === name) await measure(name)
  console.log(`| store | figure | measured | must |\n|---|---|---|---|\n${says.join('\n')}`)
} finally {
  rmSync(folder, { recursive: true })
}

function say(engine: string, figure: string, measured: number, most: number, unit: string): void {
  const isFail = measured > most
  if (isFail) process.exitCode = 1
  says.push(`| ${engine} | ${figure} | ${measured} ${unit}${isFail ? ' **FAIL**' : ''} | ${most} ${unit} |`)
  console.error(says.at(-1))
}

async function measure(engine: 'SQLite' | 'PostgreSQL'): Promise<void> {
  const settings = ['fsync = off', 'synchronous_commit = off', 'max_wal_size = 4GB', 'shared_buffers = 512MB']
  const postgres = engine === 'PostgreSQL' ? await startPostgres({ settings }) : undefined
  const placeOf = (name: string) => postgres?.createDatabase(name) ?? join(folder, `${name}.db`)
  try {
    const many = await fillMonth(placeOf('many'), month, { accounts: 200, keys: 5 })
    await measureTable(
      engine,
      many,
      values.base && (await fillMonth(placeOf('base'), month, { accounts: 200, keys: 5 }, values.base)),
    )
    await measureStatements(engine, many, statementMsMax)
    await measureStatements(
      engine,
      await fillMonth(placeOf('one'), month, { accounts: 1, keys: 5 }),
      longStatementMsMax,
    )
  } finally {
    postgres?.remove()
  }
}

async function measureTable(engine: string, store: MonthStore, base: MonthStore | '' | undefined): Promise<void> {
  const took = { table: Infinity, totals: Infinity }
  let megabytes = 0
  for (let turn = 0; turn < turns; turn++) {
    if (base) {
      const totals = await run(values.base!, ['ledger', 'totals', '--by', 'account,key,model', '--store', base.place])
      took.totals = Math.min(took.totals, totals.ms)
    }
    const args = ['usage', 'table', '--by', 'account,person,key,model', '--month', month.name, '--csv']
    const table = await run(join(import.meta.dirname, '..'), [...args, '--store', store.place])
    took.table = Math.min(took.table, table.ms)
    // The first run also compiles the program, and later runs use the stored result. So its memory does not count.
    if (turn > 0) megabytes = Math.max(megabytes, table.megabytes)
    else checkTable(engine, table.output)
  }
  say(engine, 'peak of `usage table`', Math.ceil(megabytes), megabytesMax, 'MB')
  say(
    engine,
    base ? '`usage table`, at most `ledger totals` of the base' : '`usage table`',
    ...roundAll(took.table, took.totals),
    'ms',
  )
}

function roundAll(a: number, b: number): [number, number] {
  return [Math.round(a), Math.round(b)]
}

/** Checks that the rows add up to the total, and that the total counts every entry. */
function checkTable(engine: string, csv: string): void {
  const rows = csv
    .trim()
    .split('\r\n')
    .slice(1)
    .map((line) => line.split(','))
  const total = rows.pop()!
  const requests = rows.reduce((sum, row) => sum + Number(row[5]), 0)
  const withPerson = rows.filter((row) => row[1] !== '').length
  console.error(`${engine}: ${rows.length} rows, ${withPerson} of people`)
  const isWhole =
    total[0] === 'total' && Number(total[5]) === entries && requests === entries && withPerson > rows.length / 2
  if (!isWhole) throw new Error(`the table of ${engine} is not complete: ${requests} requests, total ${total.join()}`)
}

type Ran = { ms: number; megabytes: number; output: string }

/** Runs triwire from a checkout. The peak of its memory is what the system reports when it ends. */
async function run(root: string, args: readonly string[]): Promise<Ran> {
  const report = `process.on('exit',()=>process.stderr.write('peak '+process.resourceUsage().maxRSS+'\\n'))`
  const beganMs = performance.now()
  const child = spawn(
    process.execPath,
    ['--import', `data:text/javascript,${report}`, join(root, 'bin/triwire.mjs'), ...args],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const [output, said, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  const ms = performance.now() - beganMs
  const peaks = Array.from(said.matchAll(/^peak (\d+)$/gm), ([, kilobytes]) => Number(kilobytes) / 1024)
  if (code !== 0 || peaks.length === 0) throw new Error(`triwire ${args.join(' ')} ended with ${code}: ${said}`)
  return { ms, megabytes: Math.max(...peaks), output }
}

async function measureStatements(
  engine: string,
  { place, accounts, postMore }: MonthStore,
  mostMs: number,
): Promise<void> {
  const { books, close } = await openOnly(place)
  const made = new Map<string, string>()
  let [slowest, slowestOwn] = [0, 0]
  for (const account of accounts)
    for (const form of forms) {
      const [beganMs, before] = [performance.now(), process.cpuUsage()]
      made.set(`${account} ${form}`, await makeStatement(books, account, form))
      slowest = Math.max(slowest, performance.now() - beganMs)
      const { user, system } = process.cpuUsage(before)
      slowestOwn = Math.max(slowestOwn, (user + system) / 1_000)
    }
  await postMore(1_000)
  let differing = 0
  for (const account of accounts)
    for (const form of forms)
      if ((await makeStatement(books, account, form)) !== made.get(`${account} ${form}`)) differing++
  await close()
  say(
    engine,
    `slowest statement of ${accounts.length} × ${forms.length} (at work ${Math.round(slowestOwn)} ms at most)`,
    Math.round(slowest),
    mostMs,
    'ms',
  )
  say(engine, 'statements with other bytes after 1,000 entries', differing, 0, '')
}

async function openOnly(place: string): Promise<{ books: Books; close(): unknown }> {
  const opened = place.startsWith('postgres') ? await openPostgresBooks(place, { shown: 'database' }) : openFile(place)
  return { books: createBooks(opened, Date.now), close: () => opened.close() }
}

async function makeStatement(books: Books, account: string, form: (typeof forms)[number]): Promise<string> {
  const [show] = statementOperations
  const context = {
    books,
    running: { readCreditWords: async () => ({ symbol: '€', name: 'EUR', seller: undefined }) } as never,
    ...{ requestId: '', openBooks: () => Promise.reject(), who: undefined, nowMs: Date.now(), version: '', calendar },
  }
  const outcome = await show!.run(context, show!.input.parse({ account, month: month.name, form }) as never)
  const { body, text } = outcome as { body?: unknown; text?: string }
  return text ?? JSON.stringify(body)
}

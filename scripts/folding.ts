/*
 * Measures the memory of a server that folds a long ledger for the first time (CON-10): `node bin/node.mjs
 * scripts/folding.ts [entries,entries…] [SQLite|PostgreSQL] [seconds]`. The defaults are 1 and 3 million entries and 60
 * seconds. Meanwhile, four concurrent clients request the console's figures. Prints the server's peak memory, the
 * longest response, and the progress. The script fails above 300 MB, or if a report or a status lacks the progress.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createBooks } from '../src/accounts/books.ts'
import { openPostgresBooks } from '../src/store/postgres/books.ts'
import { openDatabase } from '../src/store/postgres/database.ts'
import { openStore } from '../src/store/sqlite/store.ts'
import { freePort } from '../test/support/listen.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { startProgram } from './support/program.ts'
import { makeOwners, readOwners, sessions } from './usage/ledger.ts'
import * as database from './usage/postgres.ts'
import * as file from './usage/sqlite.ts'

const [sizes = '1000000,3000000', engine, seconds = '60'] = process.argv.slice(2)
const megabytesMax = 300

type FilledStore = { store: string; token: string; remove(): void }

/** Requests for figures: those of the console's overview and lists, and of the whole time. */
const questions = [
  '/usage?last=30d&bucket=hour&by=model&measures=credits,requests,errors,first_byte_ms&top=6',
  '/usage?last=30d&bucket=all&by=account,key&measures=credits&top=20',
  '/keys?sort=-spent',
  '/usage?last=395d&bucket=day&measures=credits,requests',
]

const folder = mkdtempSync(join(tmpdir(), 'triwire-folding-'))
process.env['TRIWIRE_TEST_DIR'] ??= folder
try {
  console.log('| | entries | most memory, MB | longest answer, s | folded after | share |\n|---|---|---|---|---|---|')
  for (const entries of sizes.split(',').map(Number)) {
    if (engine !== 'PostgreSQL') await measureFolding('SQLite', entries, await fillFile(entries))
    if (engine !== 'SQLite') await measureFolding('PostgreSQL', entries, await fillDatabase(entries))
  }
} finally {
  rmSync(folder, { recursive: true })
}

async function fillFile(entries: number): Promise<FilledStore> {
  const path = join(folder, `${entries}.db`)
  const store = openStore(path)
  const books = createBooks(store, Date.now)
  await makeOwners(books)
  const token = await makeToken(books)
  file.writeEntries(path, sessions(entries, await readOwners(books), Date.now()), () => {})
  store.close()
  return { store: path, token, remove: () => rmSync(path) }
}

async function fillDatabase(entries: number): Promise<FilledStore> {
  const settings = ['fsync = off', 'synchronous_commit = off', 'max_wal_size = 4GB', 'shared_buffers = 512MB']
  const postgres = await startPostgres({ settings })
  const url = postgres.createDatabase('folding')
  const opened = await openPostgresBooks(url, { shown: 'database' })
  const books = createBooks(opened, Date.now)
  await makeOwners(books)
  const token = await makeToken(books)
  const writing = openDatabase({ url, max: 2, patienceMs: 600_000, statementMs: 600_000, purpose: 'trial' })
  await database.writeEntries(writing, sessions(entries, await readOwners(books), Date.now()), () => {})
  await writing.query('ANALYZE')
  await writing.close()
  await opened.close()
  return { store: url, token, remove: () => postgres.remove() }
}

async function makeToken(books: ReturnType<typeof createBooks>): Promise<string> {
  return (await books.createOperator('trial', 'viewer', Date.now() + 86_400_000)).token!
}

async function measureFolding(name: string, entries: number, { store, token, remove }: FilledStore): Promise<void> {
  const admin = `127.0.0.1:${await freePort()}`
  const config = join(folder, 'triwire.yaml')
  const lines = [
    'listen: 127.0.0.1:0',
    `admin_listen: ${admin}`,
    `store: ${store}`,
    'log: { level: error }',
    `state_dir: ${join(folder, `state-${name}-${entries}`)}`,
    `seal_key: ${randomBytes(32).toString('base64')}`,
  ]
  writeFileSync(config, lines.join('\n'), { mode: 0o600 })
  const { child } = await startProgram(config, 'inherit')
  try {
    const endMs = performance.now() + Number(seconds) * 1_000
    let longestMs = 0
    let share: number | undefined
    const askOne = async (path: string) => {
      while (performance.now() < endMs) {
        const beganMs = performance.now()
        const response = await fetch(`http://${admin}/api/v1${path}`, { headers: { authorization: `Bearer ${token}` } })
        const body = (await response.json()) as { folding?: { folded: number; entries: number } }
        if (response.status !== 200 && response.status !== 429) throw new Error(`${path}: ${response.status}`)
        longestMs = Math.max(longestMs, performance.now() - beganMs)
        if (body.folding) share = body.folding.folded / body.folding.entries
        await new Promise((resolve) => setTimeout(resolve, 500))
      }
    }
    await Promise.all([...questions, '/status'].map(askOne))
    const most = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))![1]) / 1024
    const isFail = most > megabytesMax || share === undefined
    if (isFail) process.exitCode = 1
    const percent = share === undefined ? 'not said' : `${(100 * share).toFixed(1)} %`
    console.log(
      `| ${name} | ${entries} | ${most.toFixed(0)}${isFail ? ' **FAIL**' : ''} | ${(longestMs / 1_000).toFixed(1)} | ${seconds} s | ${percent} |`,
    )
  } finally {
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
    remove()
  }
}

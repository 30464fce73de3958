/*
 * Measures lists of keys in large stores (SCA-5): `node bin/node.mjs scripts/key-lists.ts [keys] [SQLite|PostgreSQL]`,
 * by default two million keys. Requests pages, searches and filters from the real program, first with 1,000 keys and
 * then with all. Prints the shortest of 20 times of each, because other work on the machine can only add time. The
 * script fails if a request with a bound takes more than three times as long with all keys.
 *
 * Accounts have ten keys each, except one, which has a tenth of all keys. The keys were made one per second. Every
 * tenth has expired, every twentieth is revoked, and every hundredth account is suspended. The run takes a few minutes
 * and 2 GB of disk.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createBooks } from '../src/accounts/books.ts'
import { openPostgresBooks } from '../src/store/postgres/books.ts'
import { openStore } from '../src/store/sqlite/store.ts'
import { freePort } from '../test/support/listen.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { fillDatabase, fillFile, middlePrefix } from './key-lists/fill.ts'
import { startProgram } from './support/program.ts'

const [few, many] = [1_000, Number(process.argv[2] ?? 2_000_000)]
const [rounds, timesMax] = [20, 3]

/** A request. @property isBound whether the script fails if the time grows */
type KeyQuestion = { name: string; path: (keys: number) => string; isBound: boolean }

const questions: readonly KeyQuestion[] = [
  { name: 'a page', path: () => '/keys?limit=50', isBound: true },
  { name: 'a page, the newest first', path: () => '/keys?limit=50&sort=-created', isBound: true },
  { name: 'a page of one account', path: () => '/keys?limit=50&account=account-7', isBound: true },
  { name: 'a page of a large account', path: () => '/keys?limit=50&account=account-0', isBound: true },
  { name: 'search: two characters of a key', path: (n) => `/keys?q=${middlePrefix(n).slice(0, 9)}`, isBound: true },
  { name: 'search: all characters of a key', path: (n) => `/keys?q=${middlePrefix(n)}`, isBound: true },
  { name: 'search: what all keys begin with', path: () => '/keys?q=SK-TRI-', isBound: true },
  { name: 'search: start of a label', path: () => '/keys?q=team%2099', isBound: true },
  { name: 'search within an account', path: () => '/keys?q=sk-tri-&account=account-7', isBound: true },
  { name: 'active', path: () => '/keys?state=active', isBound: true },
  { name: 'revoked', path: () => '/keys?state=revoked', isBound: true },
  { name: 'expired', path: () => '/keys?state=expired', isBound: true },
  { name: 'of suspended accounts', path: () => '/keys?state=suspended', isBound: true },
  { name: 'one key by its characters', path: (n) => `/keys/${middlePrefix(n)}`, isBound: true },
  { name: 'keys that spent most', path: () => '/keys?sort=-spent', isBound: false },
  { name: 'accounts', path: () => '/accounts?limit=50', isBound: true },
  { name: 'accounts that contain a text', path: () => '/accounts?q=nt-99', isBound: false },
  { name: 'accounts that spent most', path: () => '/accounts?sort=-spent', isBound: false },
  { name: 'what needs an operator', path: () => '/needs', isBound: false },
]

const folder = mkdtempSync(join(tmpdir(), 'triwire-key-lists-'))
process.env['TRIWIRE_TEST_DIR'] ??= folder
try {
  if (process.argv[3] !== 'PostgreSQL') await compare('SQLite', inFile)
  if (process.argv[3] !== 'SQLite') await compareInDatabase()
} finally {
  rmSync(folder, { recursive: true })
}

async function compareInDatabase(): Promise<void> {
  const settings = ['fsync = off', 'synchronous_commit = off', 'max_wal_size = 4GB', 'shared_buffers = 512MB']
  const postgres = await startPostgres({ settings })
  try {
    await compare('PostgreSQL', async (keys) => {
      const url = postgres.createDatabase(`keys_${keys}`)
      const books = await openPostgresBooks(url, { shown: 'database' })
      await fillDatabase(url, keys)
      const { token } = await createBooks(books, Date.now).createOperator('trial', 'viewer', Date.now() + 86_400_000)
      await books.close()
      return { store: url, token: token! }
    })
  } finally {
    postgres.remove()
  }
}

async function inFile(keys: number): Promise<{ store: string; token: string }> {
  const path = join(folder, `keys-${keys}.db`)
  const store = openStore(path)
  const { token } = await createBooks(store, Date.now).createOperator('trial', 'viewer', Date.now() + 86_400_000)
  store.close()
  fillFile(path, keys)
  return { store: path, token: token! }
}

async function compare(
  engine: string,
  fill: (keys: number) => Promise<{ store: string; token: string }>,
): Promise<void> {
  const [small, large] = [await measureAll(few, await fill(few)), await measureAll(many, await fill(many))]
  console.log(`\n| ${engine}, ms | ${few} keys | ${many} keys | times |\n|---|---|---|---|`)
  for (const [at, { name, isBound }] of questions.entries()) {
    const times = large[at]! / small[at]!
    const isOver = isBound && times > timesMax
    if (isOver) process.exitCode = 1
    console.log(
      `| ${name} | ${small[at]!.toFixed(1)} | ${large[at]!.toFixed(1)} | ${times.toFixed(1)}${isOver ? ' **FAIL**' : ''} |`,
    )
  }
}

/** @returns the shortest time of each request, in ms */
async function measureAll(keys: number, { store, token }: { store: string; token: string }): Promise<number[]> {
  const admin = `127.0.0.1:${await freePort()}`
  const config = join(folder, 'triwire.yaml')
  const lines = [
    'listen: 127.0.0.1:0',
    `admin_listen: ${admin}`,
    `store: ${store}`,
    'log: { level: error }',
    `state_dir: ${join(folder, 'state')}`,
    `seal_key: ${randomBytes(32).toString('base64')}`,
  ]
  writeFileSync(config, lines.join('\n'), { mode: 0o600 })
  const { child } = await startProgram(config, 'inherit')
  try {
    const best: number[] = []
    const asking = { headers: { authorization: `Bearer ${token}` } }
    // The start takes long, because the server reads all keys of a file.
    const look = () =>
      fetch(`http://${admin}/api/v1/me`, asking).then(
        ({ ok }) => ok,
        () => false,
      )
    while (!(await look())) await pause(1_000)
    for (const { path } of questions) {
      const taken: number[] = []
      for (let round = -3; round < rounds; round++) {
        const beganMs = performance.now()
        const response = await fetch(`http://${admin}/api/v1${path(keys)}`, asking)
        const text = await response.text()
        if (response.status !== 200) throw new Error(`${path(keys)}: ${response.status} ${text.slice(0, 300)}`)
        const tookMs = performance.now() - beganMs
        if (round >= 0) taken.push(tookMs)
        if (tookMs > 2_000 && round >= 0) break
      }
      best.push(Math.min(...taken))
    }
    return best
  } finally {
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
  }
}

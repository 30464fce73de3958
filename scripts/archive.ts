/*
 * Tries the archive of months on both stores: `node bin/node.mjs scripts/archive.ts 100000 10`. The numbers are debits
 * a month and kills; `sqlite` or `postgres` after them selects one store. Fills 12 months like a server, with a moved
 * clock, and detaches and attaches the first month. Checks that `verify` succeeds with and without the month, and that
 * its debits and credits are still known. Then kills the commands at several moments, and runs them again. Needs
 * Debian's postgresql.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startPostgres } from '../test/support/postgres.ts'
import { batch, fill, month, openFile, openUrl, start, type Trial, verify } from './archive/trial.ts'

const perMonth = Number(process.argv[2] ?? 100_000)
const kills = Number(process.argv[3] ?? 10)
const [months, accounts] = [12, 50]

const folder = mkdtempSync(join(tmpdir(), 'triwire-archive-'))
const postgres = await startPostgres()
try {
  const opens = { sqlite: () => openFile(folder), postgres: () => openUrl(postgres) }
  const open = opens[process.argv[4] as keyof typeof opens]
  for (const one of open ? [open] : Object.values(opens)) await tryOn(await one())
} finally {
  postgres.remove()
  rmSync(folder, { recursive: true, force: true })
}

async function tryOn(trial: Trial): Promise<void> {
  const { books, place } = trial
  console.log(`\n${place.replace(/:\/\/.*/, '')}: ${months} months of ${perMonth} debits, ${accounts} accounts`)
  const { first, head, owners } = await timed('filled', () => fill(trial, { months, perMonth, accounts }))
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

async function command(trial: Trial, words: readonly string[]): Promise<{ entries: number }> {
  const child = start(trial, words, ['ignore', 'pipe', 'inherit'])
  const [text, code] = await Promise.all([
    Array.fromAsync(child.stdout!),
    new Promise((done) => child.once('exit', done)),
  ])
  if (code !== 0) throw new Error(`${words.join(' ')} failed`)
  return JSON.parse(text.join(''))
}

async function killed(trial: Trial, words: readonly string[], afterMs: number): Promise<void> {
  const child = start(trial, words, ['ignore', 'ignore', 'inherit'])
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

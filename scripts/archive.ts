/*
 * Tries the archive of months on both stores: `node bin/node.mjs scripts/archive.ts 100000 10`. The numbers are debits
 * a month and kills; `sqlite` or `postgres` after them selects one store. Fills 12 months like a server, with a moved
 * clock, and detaches and attaches the first month. Checks that:
 *
 * - `verify` succeeds with and without the month;
 * - its debits and credits are still known while it is away;
 * - statements, reports and `explain` then name the month, or answer as before.
 *
 * Then kills the commands at several moments, and runs them again. Prints times, and the largest memory of each
 * command, read from `/proc`. Needs Debian's postgresql.
 */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startPostgres } from '../test/support/postgres.ts'
import { batch, fill, month, openFile, openUrl, start, type Trial, verify } from './archive/trial.ts'

const perMonth = Number(process.argv[2] ?? 100_000)
const kills = Number(process.argv[3] ?? 10)
const [months, accounts] = [12, 50]

/** Commands that need entries of the month, and some that need only its sums. `ACCOUNT` and `REQUEST` are replaced. */
const questions = [
  'statement ACCOUNT 2025-01',
  'statement ACCOUNT 2025-02',
  'usage --by model --since 2025-01-01 --until 2025-02-01 --bucket day',
  'usage --by model --since 2025-01-02 --until 2025-01-03 --bucket quarter',
  'usage table --by account --month 2025-01',
  'ledger totals',
  'ledger show REQUEST',
  'explain REQUEST',
]
const needsEntries = new Set([questions[0], questions[3], ...questions.slice(5)])

/** The largest memory of any command since `timed` began. */
let peakKb = 0

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
  const archive = async (word: string) =>
    JSON.parse(await succeed(trial, ['ledger', 'archive', word, month, '--file', file]))
  const proven = (what: string) => timed(what, () => succeed(trial, ['ledger', 'verify', '--against', head]))
  const before = await trial.bytes()
  await proven('verify before')
  const whole = await timed('what reports say of the month', () => report(trial, owners[0]!, first[0]!.requestId))
  await timed('export', () => archive('export'))
  const { entries } = await timed('detach', () => archive('detach'))
  console.log(
    `  ${entries} entries left; store ${mb(before)} → ${mb(await trial.bytes())}, file ${mb(statSync(file).size)}`,
  )
  await proven('verify without the month')
  const away = await timed('what they say while it is away', () => report(trial, owners[0]!, first[0]!.requestId))
  for (const [words, text] of away) {
    if (
      needsEntries.has(words)
        ? !/^1 .*2025-01 are away: .*triwire ledger archive attach MONTH/s.test(text)
        : text !== whole.get(words)
    )
      throw new Error(`${words}, while the month is away: ${text}`)
    console.log(`    ${words}: ${needsEntries.has(words) ? text.trim() : 'the same as before'}`)
  }
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
  await proven('verify after that')
  await timed('attach', () => archive('attach'))
  await proven('verify with it again')
  const again = await report(trial, owners[0]!, first[0]!.requestId)
  for (const [words, text] of again) if (text !== whole.get(words)) throw new Error(`${words}, attached again: ${text}`)
  for (let n = 0; n < kills; n++) {
    const word = n % 2 === 0 ? 'detach' : 'attach'
    await killed(trial, ['ledger', 'archive', word, month, '--file', file], 300 + Math.random() * 4_000)
    await verify(trial, head)
    await archive(word)
  }
  console.log(`  ${kills} commands were killed, verify held after each, and each went on`)
  await trial.close()
}

/** The exit code and output of each question. */
async function report(trial: Trial, account: string, request: string): Promise<Map<string, string>> {
  const answers = new Map<string, string>()
  for (const words of questions) {
    const { code, text } = await command(
      trial,
      words.replace('ACCOUNT', account).replace('REQUEST', request).split(' '),
    )
    answers.set(words, `${code} ${text}`)
  }
  return answers
}

async function succeed(trial: Trial, words: readonly string[]): Promise<string> {
  const { code, text } = await command(trial, words)
  if (code !== 0) throw new Error(`${words.join(' ')} failed: ${text}`)
  return text
}

async function command(trial: Trial, words: readonly string[]): Promise<{ code: number; text: string }> {
  const child = start(trial, words, ['ignore', 'pipe', 'pipe'])
  const watch = setInterval(() => {
    try {
      peakKb = Math.max(
        peakKb,
        Number(/VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? 0),
      )
    } catch {
      // The command has ended.
    }
  }, 50)
  const [out, err, code] = await Promise.all([
    Array.fromAsync(child.stdout!),
    Array.fromAsync(child.stderr!),
    new Promise<number>((done) => child.once('exit', (code) => done(code ?? -1))),
  ])
  clearInterval(watch)
  return { code, text: code === 0 ? out.join('') : [...out, ...err].join('') }
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
  peakKb = 0
  const result = await work()
  const memory = peakKb > 0 ? `, ${mb(peakKb * 1_024)}` : ''
  console.log(`  ${what}: ${((performance.now() - started) / 1_000).toFixed(1)} s${memory}`)
  return result
}

function mb(bytes: number): string {
  return `${(bytes / 1e6).toFixed(0)} MB`
}

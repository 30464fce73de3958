import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createBooks } from '../src/accounts/books.ts'
import { parseCredits } from '../src/accounts/credit.ts'
import { clientWireNames } from '../src/catalog/wire-names.ts'
import { startSimulator } from '../src/simulator/simulator.ts'
import { openStore } from '../src/store/sqlite/store.ts'
import { wires } from '../src/wires/wires.ts'
import { readRss, startProgram } from './support/program.ts'

// node bin/node.mjs scripts/soak.ts [--minutes 30] [--clients 6]
//
// Runs mixed traffic over all nine pairs, as JSON and streams. Two in a hundred requests have a fault: an upstream that
// is busy, broken or cut, or a client that leaves. At the end, memory and descriptors must not have grown, and ledger
// and log must agree. Memory is compared between the second and the last third of the time; the first third is the
// warm-up.

const { values: options } = parseArgs({
  options: { minutes: { type: 'string', default: '30' }, clients: { type: 'string', default: '6' } },
})
const totalMs = Number(options.minutes) * 60_000
/** The largest growth of resident memory, in MB per hour, beyond `noiseMb`, the effect of one garbage collection. */
const growthMax = 20
const noiseMb = 15

const kinds = { good: 'sim', busy: 'sim?status=429&retry_after=1', broken: 'sim?status=500', cut: 'sim?cut_events=3' }
const faults = ['busy', 'broken', 'cut', 'leave'] as const
const tools = {
  messages: [{ name: 'look', input_schema: { type: 'object' } }],
  chat: [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }],
  responses: [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} }, strict: false }],
}
const texts = ['Hello there.', 'Use the tool.', 'Tell me more. '.repeat(400)]

const folder = mkdtempSync(join(tmpdir(), 'triwire-soak-'))
const simulator = await startSimulator()
const storePath = join(folder, 'triwire.db')
const logPath = join(folder, 'access.log')
const key = await createKey()
writeFileSync(join(folder, 'triwire.yaml'), configuration(), { mode: 0o600 })
const log = openSync(logPath, 'a', 0o600)
const program = await startProgram(join(folder, 'triwire.yaml'), log)
closeSync(log)

const outcomes = new Map<string, number>()
const samples: { ms: number; rss: number; descriptors: number }[] = []
const startedMs = performance.now()
const elapsed = () => performance.now() - startedMs
const sampling = setInterval(() => {
  samples.push({ ms: elapsed(), rss: readRss(program.child), descriptors: countDescriptors() })
  simulator.requests.length = 0
}, 5_000)
const telling = setInterval(() => {
  const { rss, descriptors } = samples.at(-1) ?? { rss: 0, descriptors: 0 }
  const asked = [...outcomes.values()].reduce((sum, count) => sum + count, 0)
  console.error(
    `${Math.round(elapsed() / 60_000)} min: ${asked} asked, ${Math.round(rss)} MB, ${descriptors} descriptors`,
  )
}, 60_000)
await Promise.all(
  Array.from({ length: Number(options.clients) }, async () => {
    while (elapsed() < totalMs) await ask()
  }),
)
clearInterval(sampling)
clearInterval(telling)
const exited = new Promise((resolve) => program.child.once('exit', resolve))
program.child.kill('SIGINT')
await exited
await simulator.close()

const verified = spawnSync(
  process.execPath,
  [join(import.meta.dirname, '../bin/triwire.mjs'), 'ledger', 'verify', '--log', logPath, '--store', storePath],
  { encoding: 'utf8', maxBuffer: 1e9 },
)
const [second, last] = [
  samples.slice(samples.length / 3, (2 * samples.length) / 3),
  samples.slice((2 * samples.length) / 3),
]
const growth = least(last, 'rss') - least(second, 'rss')
const allowed = noiseMb + (growthMax * totalMs) / 3 / 3_600_000
const counted = [...outcomes].sort().map(([outcome, count]) => `${count} ${outcome}`)
const problems = [
  ...(growth > allowed ? [`memory grew by ${growth.toFixed(1)} MB in a third of the time`] : []),
  ...(least(last, 'descriptors') > least(second, 'descriptors') + 5 ? ['descriptors are left open'] : []),
  ...(verified.status === 0 ? [] : [`ledger verify: ${verified.stdout}${verified.stderr}`]),
  ...(outcomes.get('unexpected') ? ['some answers were neither right nor the fault that was asked for'] : []),
]
console.log(
  `${options.minutes} min: ${counted.join(', ')}\n` +
    `least memory in the second third ${least(second, 'rss').toFixed(1)} MB, in the last ${least(last, 'rss').toFixed(1)} MB; ` +
    `descriptors ${least(second, 'descriptors')}, ${least(last, 'descriptors')}\n${verified.stdout.trim().split('\n')[0]}`,
)
for (const problem of problems) console.log(`FAIL: ${problem}`)
if (problems.length > 0) process.exitCode = 1
rmSync(folder, { recursive: true })

async function ask(): Promise<void> {
  const [client, wire] = [pick(clientWireNames), pick(clientWireNames)]
  const fault = Math.random() < 0.02 ? pick(faults) : undefined
  const kind = fault === undefined || fault === 'leave' ? 'good' : fault
  const stream = fault === 'cut' || fault === 'leave' || Math.random() < 0.6
  const text = pick(texts)
  const body = {
    ...(client === 'responses' ? { input: text } : { messages: [{ role: 'user', content: text }] }),
    ...(client === 'messages' && { max_tokens: 400 }),
    ...(text.startsWith('Use') && { tools: tools[client] }),
    ...{ model: `${kind}-${wire}`, stream },
  }
  const leaving = new AbortController()
  try {
    const response = await fetch(`${program.url}${wires[client].client.path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'x-session-id': `talk-${Math.floor(Math.random() * 50)}` },
      body: JSON.stringify(body),
      signal: leaving.signal,
    })
    if (fault === 'leave') leaving.abort()
    const answer = await response.text()
    const isWhole = stream
      ? /message_stop|\[DONE\]|response\.(completed|incomplete)/.test(answer)
      : answer.endsWith('}')
    note(judge(fault, response.status, isWhole))
  } catch {
    note(fault === 'leave' || fault === 'cut' ? fault : 'unexpected')
  }
}

function judge(fault: (typeof faults)[number] | undefined, status: number, isWhole: boolean): string {
  if (fault === undefined) return status === 200 && isWhole ? 'good' : 'unexpected'
  if (fault === 'busy') return status === 429 ? fault : 'unexpected'
  if (fault === 'broken') return status === 502 ? fault : 'unexpected'
  if (fault === 'cut') return status !== 200 || !isWhole ? fault : 'unexpected'
  return fault
}

function note(outcome: string): void {
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
}

function pick<T>(from: readonly T[]): T {
  return from[Math.floor(Math.random() * from.length)]!
}

function least(some: typeof samples, what: 'rss' | 'descriptors'): number {
  return Math.min(...some.map((sample) => sample[what]))
}

function countDescriptors(): number {
  return readdirSync(`/proc/${program.child.pid}/fd`).length
}

async function createKey(): Promise<string> {
  const store = openStore(storePath)
  const books = createBooks(store, Date.now)
  await books.createAccount('soak', parseCredits('1000000'))
  const { key } = await books.createKey('soak')
  store.close()
  return key
}

function configuration(): string {
  const model = (kind: string, wire: string, upstreamModel: string) =>
    `    - { id: ${kind}-${wire}, wire: ${wire}, upstream: sim, upstream_model: "${upstreamModel}", ` +
    'max_output_tokens: 8192, prices: { input: "3", output: "15" }, profile: simulator }'
  return [
    'listen: 127.0.0.1:0',
    'admin_listen: 127.0.0.1:0',
    'store: ./triwire.db',
    'limits: { requests_per_minute: 1000000 }',
    `upstreams: { sim: { base_url: "${simulator.url}", accounts: [{ name: a, key: one }, { name: b, key: two }] } }`,
    'catalog:',
    '  pinned: 2026-11-01',
    '  models:',
    ...Object.entries(kinds).flatMap(([kind, name]) => clientWireNames.map((wire) => model(kind, wire, name))),
    '',
  ].join('\n')
}

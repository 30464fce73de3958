/**
 * Kills a loaded gateway and starts it again, many times (fault F-P1). An answer that a client got completely, as JSON
 * or as a stream with its terminator, must be in the ledger exactly once. An answer that was cut may be there at most
 * once. With `--first-release` the store is from the first release, and the first start migrates it. At the end the
 * books and their chain must be right (C15). They must include all that a head from between the kills covers.
 *
 *     node bin/node.mjs scripts/kill-gateway.ts [kills: 200] [--first-release] [--streams 50] [--per-second 200]
 *
 * `--streams` run in addition to the twelve clients. `--per-second` sends further requests at this rate, even if others
 * are slow.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createBooks } from '../src/accounts/books.ts'
import { parseHead } from '../src/accounts/chain.ts'
import { parseCredits } from '../src/accounts/credit.ts'
import { createKey } from '../src/accounts/keys.ts'
import { priceNanos } from '../src/catalog/model.ts'
import { startSimulator } from '../src/simulator/simulator.ts'
import { openStore } from '../src/store/sqlite/store.ts'
import { createFirstRelease } from '../test/store/first-release.ts'
import { type Program, startProgram } from './support/program.ts'

const clients = 12
const { values: options, positionals } = parseArgs({
  options: {
    'first-release': { type: 'boolean', default: false },
    streams: { type: 'string', default: '0' },
    'per-second': { type: 'string', default: '0' },
  },
  allowPositionals: true,
})
const kills = Number(positionals[0] ?? 200)
const streams = Number(options.streams)
const perSecond = Number(options['per-second'])
const paceMs = 20

const paths = { messages: '/v1/messages', chat: '/v1/chat/completions', responses: '/v1/responses' }
const bodies = {
  messages: { max_tokens: 200, messages: [{ role: 'user', content: 'Hello there' }] },
  chat: { messages: [{ role: 'user', content: 'Hello there' }] },
  responses: { input: 'Hello there' },
}
const terminators = {
  messages: /event: message_stop\n.*\n\n$/,
  chat: /data: \[DONE\]\n\n$/,
  responses: /event: response\.completed\n.*\n\n$/,
}

const folder = mkdtempSync(join(tmpdir(), 'triwire-kill-'))
const storePath = join(folder, 'triwire.db')
const simulator = await startSimulator()
writeFileSync(join(folder, 'triwire.yaml'), configuration(), { mode: 0o600 })
const credit = parseCredits('1000000')
const key = options['first-release'] ? createOldStore() : await createStore()

const started = new Set<string>()
const completed = new Map<string, string>()
let [answers, doubled] = [0, 0]
const readyMs: number[] = []

/** A head that is taken after half of the kills. */
let head: string | undefined
for (let i = 0; i < kills; i++) {
  if (i === kills >> 1) head = await takeHead()
  const { child, url } = await startServer()
  let isAlive = true
  const running = Array.from({ length: clients }, () => askUntil(url, () => isAlive))
  for (let j = 0; j < streams; j++) running.push(askUntil(url, () => isAlive, { stream: true, pace: 'slow' }))
  let due = 0
  const paced = setInterval(() => {
    for (due += (perSecond * paceMs) / 1000; due >= 1; due--) running.push(ask(url, { pace: 'quick' }))
  }, paceMs)
  await pause(50 + Math.random() * 750)
  child.kill('SIGKILL')
  isAlive = false
  clearInterval(paced)
  await Promise.all(running)
  if (i % 50 === 49) console.error(`${i + 1} kills, ${completed.size} answers were whole`)
}
// A last start posts debits that the last kill left in the spool, and ends in an orderly way.
const { child } = await startServer()
const ended = new Promise((resolve) => child.once('exit', resolve))
child.kill('SIGINT')
await ended
await simulator.close()

const store = openStore(storePath, { create: false })
const findings = store.atOnce.verify({ priceNanos, against: head === undefined ? undefined : parseHead(head) })
const booked = new Map<string, number>()
for (const { bill } of store.atOnce.listEntries({ first: 'oldest', limit: Number.MAX_SAFE_INTEGER }))
  if (bill) booked.set(bill.requestId, (booked.get(bill.requestId) ?? 0) + 1)
store.close()
rmSync(folder, { recursive: true })

const lost = [...completed.keys()].filter((id) => !booked.has(id))
const double = [...booked.values()].filter((count) => count > 1).length
const kinds = Map.groupBy(completed.values(), (kind) => kind)
readyMs.sort((a, b) => a - b)
console.log(
  `${kills} kills${options['first-release'] ? ', on a store of the first release' : ''}: ${started.size} answers begun, ${completed.size} whole (` +
    `${[...kinds].map(([kind, all]) => `${all.length} ${kind}`).join(', ')}), ${booked.size} in the ledger\n` +
    `ready after ${ms(readyMs[readyMs.length >> 1])}, p99 ${ms(readyMs[Math.floor(readyMs.length * 0.99)])}, at most ${ms(readyMs.at(-1))}\n` +
    `${lost.length} lost, ${double} double, ${doubled} ids given twice, ${findings.length} findings of verify`,
)
for (const finding of findings.slice(0, 10)) console.log(finding)
if (lost.length || double || doubled || findings.length || !answers) process.exitCode = 1

async function createStore(): Promise<string> {
  const store = openStore(storePath)
  const books = createBooks(store, Date.now)
  await books.createAccount('one', credit)
  // The key has a budget, so that its spending is verified too (ruling R15).
  const { key } = await books.createKey('one', { budget: { nanos: credit, per: 'day' }, requestsPerMinute: 1_000_000 })
  store.close()
  return key
}

function createOldStore(): string {
  const { key, digest } = createKey()
  const [accountId, other] = ['acct_one', 'acct_two']
  const first = [accountId, other].map((id) => ({ accountId: id, creditNanos: credit, reference: `create:${id}` }))
  const debits = Array.from({ length: 1_000 }, (_, i) => ({
    accountId: i % 3 ? accountId : other,
    requestId: `req_before_${i}`,
    // The last one is recent, because a clock that is years past the newest entry must be confirmed (ruling Y15).
    atMs: Date.now() - (1_000 - i) * 1_000,
  }))
  createFirstRelease(storePath, { [accountId]: 'one', [other]: 'two' }, [...first, ...debits], { [accountId]: digest })
  return key
}

async function takeHead(): Promise<string> {
  const store = openStore(storePath, { create: false })
  const { findings, head } = await createBooks(store, Date.now).audit({ priceNanos })
  store.close()
  if (head === undefined) throw new Error(`between two kills: ${findings.slice(0, 10).join('; ')}`)
  return head
}

async function startServer(): Promise<Program> {
  const startedMs = performance.now()
  const program = await startProgram(join(folder, 'triwire.yaml'))
  readyMs.push(performance.now() - startedMs)
  return program
}

/** Sends requests as one client until the server has ended. */
async function askUntil(url: string, isAlive: () => boolean, wish: Wish = {}): Promise<void> {
  while (isAlive()) await ask(url, wish)
}

/** The kind of request. Missing fields are random. */
type Wish = { stream?: boolean; pace?: 'quick' | 'slow' }

async function ask(
  url: string,
  { stream = Math.random() < 0.5, pace = pick(['quick', 'slow'] as const) }: Wish,
): Promise<void> {
  const wire = pick(['messages', 'chat', 'responses'] as const)
  try {
    const response = await fetch(`${url}${paths[wire]}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ ...bodies[wire], model: `${pace}-${wire}`, stream }),
    })
    const id = response.headers.get('x-request-id')!
    if (started.has(id)) doubled++
    started.add(id)
    const text = await response.text()
    if (response.status !== 200) throw new Error(`status ${response.status}: ${text}`)
    const isWhole = stream ? terminators[wire].test(text) : JSON.parse(text) !== undefined
    if (isWhole) {
      answers++
      completed.set(id, `${wire} ${stream ? 'streams' : 'answers'}`)
    }
  } catch (error) {
    // Cut connections are expected. An error response is a failure.
    if ((error as Error).message.startsWith('status')) throw error
  }
}

function pick<T>(from: readonly T[]): T {
  return from[Math.floor(Math.random() * from.length)]!
}

function ms(value: number | undefined): string {
  return `${Math.round(value ?? 0)} ms`
}

function configuration(): string {
  const model = (name: string, wire: string, upstreamModel: string) =>
    `    - { id: ${name}-${wire}, wire: ${wire}, upstream: sim, upstream_model: "${upstreamModel}", ` +
    'max_output_tokens: 8192, prices: { input: "3", output: "15" } }'
  return [
    'listen: 127.0.0.1:0',
    'admin_listen: 127.0.0.1:0',
    'store: ./triwire.db',
    'limits: { requests_per_minute: 1000000 }',
    `upstreams: { sim: { base_url: "${simulator.url}", accounts: [{ name: a, key: any }] } }`,
    'catalog:',
    '  pinned: 2026-11-01',
    '  models:',
    ...Object.keys(paths).flatMap((wire) => [model('quick', wire, 'sim'), model('slow', wire, 'sim?delay_ms=5')]),
    '',
  ].join('\n')
}

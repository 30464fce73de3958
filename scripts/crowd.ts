import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { createBooks } from '../src/accounts/books.ts'
import { formatCredits, parseCredits } from '../src/accounts/credit.ts'
import { openStore } from '../src/store/sqlite/store.ts'
import { readRss, startProgram } from './support/program.ts'

// node bin/node.mjs scripts/crowd.ts [live,translated,stopped,slow-heads,drain,limiter,overdraft] [--streams 5000]
// [--seconds 300] [--readers 1000]
//
// Runs many concurrent clients of the real program. Measures the memory for each, and the effect on others.
//   live        streams at an event a second, all of which must end whole
//   translated  the same for clients of another wire, after requests of 200 KB
//   stopped     1,000 readers who stop before 10 MB each
//   slow-heads  10,000 connections whose heads never end, beside a client who pays
//   drain       SIGTERM with 1,000 streams, all of which must end whole
//   limiter     1,000 requests at once of an account that may make 300
//   overdraft   1,000 requests at once on a balance for 10
// The exit code is 1 if a figure exceeds its bound. Needs 20,000 descriptors (ulimit -n), here and in the gateway.

const { values: options, positionals } = parseArgs({
  options: {
    streams: { type: 'string', default: '5000' },
    seconds: { type: 'string', default: '300' },
    readers: { type: 'string', default: '1000' },
  },
  allowPositionals: true,
})
const streams = Number(options.streams)
const seconds = Number(options.seconds)
const readers = Number(options.readers)
const quickTokens = 1_000
/** The environment of the systemd unit and the image (docs/operating.md, Capacity). */
const env = { MALLOC_ARENA_MAX: '2' }

type Row = { what: string; is: number; most?: number; exactly?: number; unit: string }
const trials: Record<string, () => Promise<Row[]>> = {
  live: () => live('/v1/chat/completions', ''),
  translated: () => live('/v1/responses', 'x'.repeat(200_000)),
  stopped,
  'slow-heads': slowHeads,
  drain,
  limiter,
  overdraft,
}

const folder = mkdtempSync(join(tmpdir(), 'triwire-crowd-'))
const upstream = new Worker(new URL('./crowd/upstream.ts', import.meta.url))
const port = await new Promise<number>((resolve, reject) => upstream.once('message', resolve).once('error', reject))
let gateway!: { child: ChildProcess; url: URL; key: string; store: string }
const named = positionals.length > 0 ? positionals.flatMap((list) => list.split(',')) : Object.keys(trials)
console.log('| trial | what | figure | bound |\n|---|---|---|---|')
try {
  for (const name of named) {
    const trial = trials[name]
    if (!trial) throw new Error(`no such trial: ${name}; there are ${Object.keys(trials).join(', ')}`)
    for (const { what, is, most, exactly, unit } of await trial()) {
      const isOver = (most !== undefined && is > most) || (exactly !== undefined && is !== exactly)
      const bound = exactly === undefined ? (most === undefined ? '' : `≤ ${most}`) : `${exactly}`
      console.log(`| ${name} | ${what} | ${Number(is.toFixed(1))} ${unit} | ${bound}${isOver ? ' **FAIL**' : ''} |`)
      if (isOver) process.exitCode = 1
    }
    gateway.child.kill('SIGKILL')
  }
} finally {
  gateway?.child.kill('SIGKILL')
  await upstream.terminate()
  rmSync(folder, { recursive: true })
}

async function live(path: string, filler: string): Promise<Row[]> {
  await start()
  await warmUp()
  const before = rss()
  const crowd = await open(streams, path, askOf(path, 'tick', filler))
  await until(() => crowd.every(({ text }) => text.includes('word')), 120)
  const opened = rss()
  const started = performance.now()
  while (performance.now() - started < seconds * 1000) {
    await pause(5_000)
    process.stderr.write(`\r${Math.round((performance.now() - started) / 1000)} s, ${Math.round(rss())} MB  `)
  }
  const during = rss()
  upstream.postMessage('end')
  await until(() => crowd.every(({ isEnded }) => isEnded), 120)
  const whole = crowd.filter(({ text }) => /\[DONE\]|response\.completed/.test(text)).length
  process.stderr.write('\r')
  return [
    { what: `streams of ${streams} that ended whole after ${seconds} s`, is: whole, exactly: streams, unit: '' },
    { what: 'kept for each, once all are open', is: ((opened - before) / streams) * 1024, most: 80, unit: 'KB' },
    { what: 'kept for each at the end', is: ((during - before) / streams) * 1024, most: 80, unit: 'KB' },
  ]
}

async function stopped(): Promise<Row[]> {
  const rows: Row[] = []
  for (const path of ['/v1/chat/completions', '/v1/messages', '/v1/responses']) {
    await start()
    await warmUp()
    const before = rss()
    const crowd = await open(readers, path, askOf(path, 'flood', ''), true)
    await settled()
    rows.push({
      what: `${readers} readers stopped, ${path}`,
      is: rss() - before,
      most: (300 * readers) / 1_000,
      unit: 'MB more',
    })
    for (const { socket } of crowd) socket.destroy()
    // Free memory is returned to the system after a minute without requests (decision 61).
    await pause(75_000)
    rows.push({ what: `75 s after they left, ${path}`, is: rss() - before, most: 150, unit: 'MB more' })
    gateway.child.kill('SIGKILL')
  }
  return rows
}

async function slowHeads(): Promise<Row[]> {
  await start()
  await warmUp()
  const quiet = await p99(400)
  const crowd: Socket[] = []
  for (let i = 0; i < 10_000; i++) {
    const socket = connect(Number(gateway.url.port), gateway.url.hostname)
    socket.on('error', () => {}).resume()
    socket.write('POST /v1/messages HTTP/1.1\r\nhost: x\r\n')
    crowd.push(socket)
    if (i % 200 === 199) await pause(20)
  }
  // Sends a letter per second on each connection, in small groups, because the paying client is in the same process.
  let next = 0
  const letters = setInterval(() => {
    for (let i = 0; i < 100; i++) {
      const socket = crowd[next++ % crowd.length]!
      if (!socket.destroyed) socket.write('a')
    }
  }, 10)
  await pause(2_000)
  const beside = await p99(400)
  // Within one or two seconds the time limit for heads ends for all connections, and each gets a 408.
  await until(() => crowd.some(({ readyState }) => readyState !== 'open'), 30)
  const ending = await p99(400)
  const told = crowd.filter(({ bytesRead }) => bytesRead > 0).length
  clearInterval(letters)
  for (const socket of crowd) socket.destroy()
  return [
    { what: 'p99 of a client who pays, alone', is: quiet, unit: 'ms' },
    { what: 'p99 beside 10,000 slow heads', is: beside, most: Number((2 * quiet).toFixed(1)), unit: 'ms' },
    // Without a bound, because the paying client shares this process with ten thousand sockets that are being closed.
    { what: `p99 while they get a 408, ${told} by its end`, is: ending, unit: 'ms' },
  ]
}

async function drain(): Promise<Row[]> {
  await start()
  const crowd = await open(1_000, '/v1/chat/completions', askOf('/v1/chat/completions', 'tick', ''))
  await until(() => crowd.every(({ text }) => text.includes('word')), 60)
  const exited = new Promise<number | null>((resolve) => gateway.child.once('exit', resolve))
  gateway.child.kill('SIGTERM')
  await pause(7_000)
  upstream.postMessage('end')
  const code = await exited
  await until(() => crowd.every(({ isEnded }) => isEnded), 10)
  const whole = crowd.filter(({ text }) => text.includes('[DONE]')).length
  return [
    { what: 'streams of 1,000 that ended whole after SIGTERM', is: whole, exactly: 1_000, unit: '' },
    { what: 'debits in the ledger', is: debits().length, exactly: 1_000, unit: '' },
    { what: 'exit code', is: code ?? -1, exactly: 0, unit: '' },
  ]
}

async function limiter(): Promise<Row[]> {
  await start({ limit: 300 })
  const statuses = await statusesOf(1_000)
  return [
    { what: 'of 1,000 at once answered', is: statuses.get(200) ?? 0, exactly: 300, unit: '' },
    { what: 'refused with 429', is: statuses.get(429) ?? 0, exactly: 700, unit: '' },
  ]
}

async function overdraft(): Promise<Row[]> {
  // An answer of 1,000 tokens costs ten times its hold of 100 tokens.
  const cost = (BigInt(quickTokens) * parseCredits('15') + 9n * parseCredits('3')) / 1_000_000n
  await start({ credit: 10n * cost, holdTokens: 100 })
  const statuses = await statusesOf(1_000)
  const store = openStore(gateway.store, { create: false })
  const [account] = await createBooks(store, Date.now).listAccounts()
  store.close()
  const held = (100n * parseCredits('15')) / 1_000_000n
  const served = statuses.get(200) ?? 0
  // Each answer exceeds its hold by the difference, and a single nano-credit may admit the last request.
  const bound = BigInt(served) * (cost - held) + held
  const overdrawn = account!.balanceNanos < 0n ? -account!.balanceNanos : 0n
  return [
    {
      what: `of 1,000 at once on a balance for 10 answered; refused with 402: ${statuses.get(402) ?? 0}`,
      is: served,
      unit: '',
    },
    { what: 'overdraft', is: Number(formatCredits(overdrawn)), most: Number(formatCredits(bound)), unit: 'credits' },
  ]
}

function askOf(path: string, model: string, filler: string): object {
  const text = `Go on. ${filler}`
  const asked = path === '/v1/responses' ? { input: text } : { messages: [{ role: 'user', content: text }] }
  return { model, stream: model !== 'quick', ...(path === '/v1/messages' && { max_tokens: 4_096 }), ...asked }
}

type Client = { socket: Socket; text: string; isEnded: boolean }

/** Opens this number of requests, about 200 per second, and keeps only the last characters of each answer. */
async function open(count: number, path: string, ask: object, isStopped = false): Promise<Client[]> {
  const body = JSON.stringify(ask)
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${gateway.key}\r\ncontent-length: ${body.length}\r\n\r\n`
  const crowd: Client[] = []
  for (let i = 0; i < count; i++) {
    const socket = connect(Number(gateway.url.port), gateway.url.hostname)
    const client: Client = { socket, text: '', isEnded: false }
    socket.on('error', () => {})
    socket.on('close', () => {
      client.isEnded = true
    })
    if (isStopped) socket.pause()
    else
      socket.on('data', (piece) => {
        client.text = (client.text + piece.toString('latin1')).slice(-4_000)
        if (/0\r\n\r\n$/.test(client.text)) client.isEnded = true
      })
    socket.write(head + body)
    crowd.push(client)
    if (i % 20 === 19) await pause(50)
  }
  return crowd
}

async function statusesOf(count: number): Promise<Map<number, number>> {
  const answers = await Promise.all(Array.from({ length: count }, () => ask()))
  const statuses = new Map<number, number>()
  for (const status of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1)
  return statuses
}

async function ask(): Promise<number> {
  const response = await fetch(new URL('/v1/chat/completions', gateway.url), {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}` },
    body: JSON.stringify(askOf('/v1/chat/completions', 'quick', '')),
  })
  await response.arrayBuffer()
  return response.status
}

async function warmUp(): Promise<void> {
  for (let i = 0; i < 300; i++) await ask()
}

async function p99(count: number): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < count; i++) {
    const started = performance.now()
    if ((await ask()) !== 200) throw new Error('a client who pays was refused')
    times.push(performance.now() - started)
    await pause(5)
  }
  return times.sort((a, b) => a - b)[Math.floor(count * 0.99)]!
}

/** Waits until the resident memory has not changed for nine seconds. */
async function settled(): Promise<void> {
  let stillFor = 0
  for (let last = rss(); stillFor < 3; last = rss()) {
    await pause(3_000)
    stillFor = Math.abs(rss() - last) > 3 ? 0 : stillFor + 1
  }
}

async function until(isSo: () => boolean, limitSeconds: number): Promise<void> {
  const started = performance.now()
  while (!isSo() && performance.now() - started < limitSeconds * 1000) await pause(100)
}

/** Returns the resident memory of the gateway, in MB. */
function rss(): number {
  return readRss(gateway.child)
}

function debits() {
  const store = openStore(gateway.store, { create: false })
  const entries = store.atOnce
    .listEntries({ first: 'oldest', limit: Number.MAX_SAFE_INTEGER })
    .filter(({ kind }) => kind === 'debit')
  store.close()
  return entries
}

async function start(with_: { limit?: number; credit?: bigint; holdTokens?: number } = {}): Promise<void> {
  const own = mkdtempSync(join(folder, 'run-'))
  const store = join(own, 'triwire.db')
  const file = openStore(store)
  const books = createBooks(file, Date.now)
  await books.createAccount('crowd', with_.credit ?? parseCredits('1000000'))
  const { key } = await books.createKey('crowd')
  file.close()
  const model = (id: string) =>
    `    - { id: ${id}, wire: chat, upstream: up, max_output_tokens: 8192, prices: { input: "3", output: "15" } }`
  const lines = [
    'listen: 127.0.0.1:0',
    'admin_listen: 127.0.0.1:0',
    `limits: { requests_per_minute: ${with_.limit ?? 1_000_000} }`,
    `billing: { hold_output_tokens: ${with_.holdTokens ?? 1024} }`,
    `upstreams: { up: { base_url: "http://127.0.0.1:${port}", accounts: [{ name: a, key: any }] } }`,
    `store: ${store}`,
    'log: { level: error }',
    'catalog:',
    '  pinned: 2026-11-01',
    '  models:',
    ...['tick', 'flood', 'quick'].map(model),
  ]
  writeFileSync(join(own, 'triwire.yaml'), lines.join('\n'), { mode: 0o600 })
  const { child, url } = await startProgram(join(own, 'triwire.yaml'), 'inherit', { env })
  gateway = { child, url: new URL(url), key, store }
}

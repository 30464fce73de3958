/*
 * Moves a ledger of a million entries from the file of a loaded server to a real PostgreSQL, and back to another file.
 * Measures the time and the pause of the service, and checks that books and answers agree. Needs Debian's postgresql.
 *
 *     node bin/node.mjs scripts/copy-store.ts [entries, default 1000000] [--per-second 100] [--folder DIR]
 *
 * `--folder` is the folder of the filled store. If the store is there already, it is used again.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startPostgres } from '../test/support/postgres.ts'

const { values: options, positionals } = parseArgs({
  options: { 'per-second': { type: 'string', default: '100' }, folder: { type: 'string' } },
  allowPositionals: true,
})
const entries = Number(positionals[0] ?? 1_000_000)
const perSecond = Number(options['per-second'])
/** The longest acceptable pause of the service with a million entries, in ms. */
const pauseMaxMs = 10_000

const folder = mkdtempSync(join(tmpdir(), 'triwire-copy-'))
const program = resolve(import.meta.dirname, '../bin/triwire.mjs')
const store = join(folder, 'triwire.db')
const postgres = await startPostgres()
let server: ChildProcess | undefined
try {
  await fillStore()
  await run(['account', 'create', 'payer', '--credit', '1000'])
  const { key } = JSON.parse((await run(['key', 'create', 'payer', '--json'])).stdout)
  const url = await serve()
  let isOver = false
  let answered = 0
  const load = askSteadily()
  const there = await timed('into PostgreSQL', ['store', 'copy', '--to', postgres.createDatabase('copy'), '--json'])
  isOver = true
  await load
  console.log(`${answered} requests were answered meanwhile`)
  const booked = there.debits - entries
  if (booked !== answered) throw new Error(`${answered} requests were answered and ${booked} booked`)
  if (there.pause_ms > pauseMaxMs) throw new Error(`the pause took ${there.pause_ms} ms`)
  const from = ['--store', there.to]
  const back = await timed('back into a file', [...from, 'store', 'copy', '--to', join(folder, 'back.db'), '--json'])
  if (back.digest !== there.digest) throw new Error('the ledger that came back differs from the one that was copied')

  async function askSteadily(): Promise<void> {
    const running: Promise<void>[] = []
    while (!isOver) {
      running.push(askOnce())
      await sleep(1_000 / perSecond)
    }
    await Promise.all(running)
  }

  async function askOnce(): Promise<void> {
    try {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'sim-chat', messages: [{ role: 'user', content: 'Hello' }] }),
      })
      await response.text()
      if (response.status === 200) answered++
    } catch {
      // The server was stopped in the meantime.
    }
  }
} finally {
  server?.kill('SIGKILL')
  postgres.remove()
  rmSync(folder, { recursive: true, force: true })
}

async function fillStore(): Promise<void> {
  const kept = join(options.folder ?? folder, `filled-${entries}.db`)
  mkdirSync(options.folder ?? folder, { recursive: true })
  if (!existsSync(kept)) {
    const [fill, startedMs] = [resolve(import.meta.dirname, 'fill-store.ts'), performance.now()]
    const child = spawn(process.execPath, [fill, kept, String(entries), '1000'], { stdio: 'inherit' })
    await new Promise((done) => child.on('exit', done))
    console.log(`filled with ${entries} debits in ${seconds(startedMs)} s`)
  }
  copyFileSync(kept, store)
}

async function serve(): Promise<string> {
  const args = ['serve', '--json', '--store', store, '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0']
  const env = {
    ...process.env,
    TRIWIRE_CONFIG_YAML: 'limits: { requests_per_minute: 1000000 }\ntimeouts: { drain_delay: 0s }',
  }
  server = spawn(process.execPath, [program, ...args], { cwd: folder, env, stdio: ['ignore', 'pipe', 'ignore'] })
  let text = ''
  for await (const chunk of server.stdout!) {
    text += chunk
    if (text.includes('\n')) break
  }
  return JSON.parse(text).url
}

/** Runs a command. When the copy requests it, the server is stopped, as an operator would do. */
async function timed(what: string, args: readonly string[]) {
  const startedMs = performance.now()
  const { code, stdout } = await run(args, (line) => {
    if (!line.includes('stop the server')) return
    console.log(`${what}: all but the last entries after ${seconds(startedMs)} s`)
    server?.kill('SIGTERM')
  })
  if (code !== 0) throw new Error(`${what}: the copy has failed`)
  const proof = JSON.parse(stdout)
  console.log(`${what}: ${seconds(startedMs)} s in all, of them ${proof.pause_ms} ms of pause`)
  console.log(proof)
  return proof
}

function run(
  args: readonly string[],
  hear: (line: string) => void = () => {},
): Promise<{ code: number; stdout: string }> {
  const env = { ...process.env, TRIWIRE_STORE: store }
  const child = spawn(process.execPath, [program, ...args], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let stdout = ''
  child.stdout.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    process.stderr.write(chunk)
    hear(String(chunk))
  })
  return new Promise((done) => child.on('close', (code) => done({ code: code ?? 1, stdout })))
}

function seconds(sinceMs: number): string {
  return ((performance.now() - sinceMs) / 1_000).toFixed(1)
}

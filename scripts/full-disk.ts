/*
 * Fills the disk of the real server while answers are held back (B7, ruling C13). Store and spool are on a file system
 * of 3 MB. Three requests wait for their model, the disk is filled and kept full, and the model answers. When the
 * clients have their answers, the space is freed. In most cases the server is killed (kill -9) before, and started
 * again. In two cases it starts on the full disk, and must refuse to start or send nothing to a model.
 *
 * The debit of a client that got a 500 must not be in the ledger, or must be reversed. That of a client that got an
 * answer must be there. `ledger verify --log` must find nothing. Only on Linux, because it needs a mount namespace.
 *
 * With `syncs` the disk has space, but strace makes every sync fail; written data can still be read. With `writes`
 * every write at a position in a file fails.
 *
 *     node bin/node.mjs scripts/full-disk.ts [rounds of each moment, default 3] [syncs|writes]
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { parseCredits } from '../src/accounts/credit.ts'
import { priceNanos } from '../src/catalog/model.ts'
import { readLogLine } from '../src/cli/access-log.ts'
import { openStore } from '../test/support/operator.ts'

const settleMs = 400

/** The system calls that fail in trials on a disk with space. */
const failing: Record<string, string> = { syncs: 'fsync,fdatasync', writes: 'pwrite64,pwritev' }

const body = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_795_000_000,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1_000, completion_tokens: 500, total_tokens: 1_500 },
})

/** The moments at which the server is killed. `lateMs` counts from the end of the settle deadline. */
const moments = {
  never: undefined,
  'before the model answers': { lateMs: undefined, spread: 0 },
  'while debits wait': { lateMs: -settleMs / 2, spread: 100 },
  'about when the 500 is sent': { lateMs: 0, spread: 150 },
  'after the 500 was sent': { lateMs: 600, spread: 200 },
  'as space comes back': { lateMs: 900, spread: 100 },
  'before the model answers, started on it': { lateMs: undefined, spread: 0 },
  'after the 500 was sent, started on it': { lateMs: 600, spread: 200 },
} as const

/** Child processes. All are killed when this process ends. */
const children = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})

type Moment = keyof typeof moments
type Told = { id: string; status: number }
type Server = { child: ChildProcess; url: string }
type Sums = {
  refused: number
  answered: number
  cut: number
  booked: number
  returned: number
  lost: number
  /** Starts on the full disk after which the server served requests, and the requests that it sent to a model. */
  serving: number
  admitted: number
  findings: string[]
}

const [first = '3', second = 'space', mount, rounds] = process.argv.slice(2)
if (first === 'inside') await runAll(Number(rounds), mount!)
else {
  const folder = mkdtempSync(join(tmpdir(), 'triwire-full-'))
  const inside = `mount -t tmpfs -o size=3m none ${folder} && exec "$@"`
  const command = [process.execPath, import.meta.filename, 'inside', second, folder, first]
  const { status } = spawnSync('unshare', ['-rm', 'sh', '-c', inside, 'sh', ...command], { stdio: 'inherit' })
  rmSync(folder, { recursive: true })
  process.exitCode = status ?? 1
}

async function runAll(rounds: number, mount: string): Promise<void> {
  console.log(
    '| killed | got 500 | answered | cut off | of the 500s booked | of them returned | answered and not booked | serves when started on it | asked of a model then | findings of verify --log |',
  )
  console.log('|---|---|---|---|---|---|---|---|---|---|')
  for (const moment of Object.keys(moments) as Moment[]) {
    const sums: Sums = {
      refused: 0,
      answered: 0,
      cut: 0,
      booked: 0,
      returned: 0,
      lost: 0,
      serving: 0,
      admitted: 0,
      findings: [],
    }
    for (let round = 0; round < rounds; round++) await runRound(moment, join(mount, `${round}`), sums)
    const { refused, answered, cut, booked, returned, lost, serving, admitted, findings } = sums
    const cells = [moment, refused, answered, cut, booked, returned, lost, serving, admitted, findings.length]
    console.log(`| ${cells.join(' | ')} |`)
    for (const finding of findings.slice(0, 3)) console.log(`  ${finding}`)
    if (booked !== returned || lost || admitted || findings.length) process.exitCode = 1
  }
}

async function runRound(moment: Moment, folder: string, sums: Sums): Promise<void> {
  mkdirSync(folder, { mode: 0o700 })
  const upstream = await startUpstream()
  const key = configure(folder, upstream.url)
  const lines: string[] = []
  let { child, url } = await start(folder, lines)
  // A request comes first, because it makes the log file, which is synced while it is still empty.
  await ask(url, key)
  upstream.hold()
  const asks = Array.from({ length: 3 }, () => ask(url, key))
  while (upstream.held.length < 3) await pause(5)
  const calls = failing[second]
  const disk = calls ? await failCalls(child, calls) : fill(join(folder, 'filler'))
  const kill = moments[moment]
  if (kill && kill.lateMs === undefined) await end(child)
  upstream.letGo()
  if (kill?.lateMs !== undefined) {
    await pause(settleMs + kill.lateMs + Math.random() * kill.spread)
    if (moment === 'as space comes back') disk.free()
    await end(child)
  }
  const told = (await Promise.all(asks)).filter((one) => one !== undefined)
  const cut = 3 - told.length
  if (!kill) await pause(300)
  let isStarted = !kill
  if (moment.endsWith('started on it')) {
    const started = await disk.start((under) => start(folder, lines, under)).catch(() => undefined)
    if (started) {
      isStarted = true
      ;({ child, url } = started)
      sums.serving++
      const askedBefore = upstream.asked()
      for (let i = 0; i < 3; i++) told.push(...[await ask(url, key)].filter((one) => one !== undefined))
      sums.admitted += upstream.asked() - askedBefore
    }
  }
  disk.free()
  if (!isStarted) ({ child, url } = await start(folder, lines))
  while ((await ask(url, key))?.status !== 200) await pause(20)
  child.kill('SIGTERM')
  await new Promise((done) => child.once('exit', done))
  upstream.close()
  count(folder, lines, told, cut, sums)
  rmSync(folder, { recursive: true })
}

function count(folder: string, lines: readonly string[], told: readonly Told[], cut: number, sums: Sums): void {
  const store = openStore(join(folder, 'triwire.db'))
  const refused = told.filter(({ status }) => status === 500)
  const answered = told.filter(({ status }) => status === 200)
  const booked = refused.filter(({ id }) => store.findEntry(id))
  const returns = new Set([...store.eachEntry()].map(({ returned }) => returned?.requestId))
  sums.refused += refused.length
  sums.answered += answered.length
  sums.cut += cut
  sums.booked += booked.length
  sums.returned += booked.filter(({ id }) => returns.has(id)).length
  sums.lost += answered.filter(({ id }) => !store.findEntry(id)).length
  const log = lines.flatMap((line) => readLogLine(line) ?? [])
  // A request that a kill interrupted may be booked without a line in the log.
  const findings = store.verify({ priceNanos, log })
  sums.findings.push(...findings.filter((text) => !text.includes('in the ledger, not in the log')))
  store.close()
}

/** Starts an upstream that answers at once, except requests that arrive while it holds. */
async function startUpstream(): Promise<{
  url: string
  held: ServerResponse[]
  hold(): void
  letGo(): void
  /** The number of requests so far. */
  asked(): number
  close(): void
}> {
  let asked = 0
  const held: ServerResponse[] = []
  let isHeld = false
  const reply = (response: ServerResponse) => response.setHeader('content-type', 'application/json').end(body)
  const server = createServer((_request, response) => {
    asked++
    if (isHeld) held.push(response)
    else reply(response)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    held,
    hold() {
      isHeld = true
    },
    letGo() {
      isHeld = false
      for (const response of held) reply(response)
    },
    asked: () => asked,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

function configure(folder: string, upstreamUrl: string): string {
  const model = '{ id: m, wire: chat, upstream: up, max_output_tokens: 99, prices: { input: "3", output: "15" } }'
  const text = `listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
store: ./triwire.db
catalog: { pinned: 2026-11-01, models: [${model}] }
upstreams: { up: { base_url: "${upstreamUrl}", accounts: [{ name: a, key: k }] } }
timeouts: { drain_delay: 0ms, drain_deadline: 500ms, settle_deadline: ${settleMs}ms }
`
  writeFileSync(join(folder, 'triwire.yaml'), text, { mode: 0o600 })
  const store = openStore(join(folder, 'triwire.db'))
  store.createAccount('one', parseCredits('100'))
  const { key } = store.createKey('one')
  store.close()
  return key
}

async function start(folder: string, lines: string[], under: readonly string[] = []): Promise<Server> {
  const program = [process.execPath, join(import.meta.dirname, '../bin/triwire.mjs')]
  const [command, ...args] = [...under, ...program, 'serve', '--config', join(folder, 'triwire.yaml')]
  const child = spawn(command!, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  children.add(child)
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`the server ended by itself: ${lines.join('\n')}`)))
    createInterface({ input: child.stderr! }).on('line', (line) => {
      lines.push(line)
      const match = /"event":"listening".*"address":"([^"]+)"/.exec(line)
      if (match) resolve(`http://${match[1]}`)
    })
  })
  child.removeAllListeners('exit')
  return { child, url }
}

async function end(child: ChildProcess): Promise<void> {
  const ended = new Promise((done) => child.once('close', done))
  child.kill('SIGKILL')
  await ended
}

async function ask(url: string, key: string): Promise<Told | undefined> {
  try {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] }),
    })
    await response.text()
    return { id: response.headers.get('x-request-id')!, status: response.status }
  } catch {
    return undefined
  }
}

type Broken = {
  free(): void
  /** Starts a server while the disk is still full or broken. */
  start(start: (under?: string[]) => Promise<Server>): Promise<Server>
}

/** Fills the disk, and keeps it full until it is freed. */
function fill(path: string): Broken {
  const file = openSync(path, 'w')
  const more = () => {
    for (const size of [65_536, 4_096, 512, 1]) {
      try {
        while (writeSync(file, Buffer.alloc(size))) {}
      } catch {
        // The disk has no space for a piece of this size.
      }
    }
  }
  more()
  let timer = setInterval(more, 2)
  return {
    async start(start) {
      // A start may use the space that it frees in the index of the log, so the disk is not filled again meanwhile.
      clearInterval(timer)
      return start().finally(() => {
        timer = setInterval(more, 2)
        more()
      })
    },
    free() {
      clearInterval(timer)
      try {
        closeSync(file)
      } catch {
        // The file is closed already.
      }
      rmSync(path, { force: true })
    },
  }
}

/** Makes these system calls of a process fail until the disk is restored. */
async function failCalls(server: ChildProcess, calls: string): Promise<Broken> {
  const options = ['-f', '-qq', '-o', '/dev/null', '-e', `trace=${calls}`, '-e', `inject=${calls}:error=EIO`]
  const tracer = spawn('strace', [...options, '-p', `${server.pid}`], { stdio: 'ignore' })
  children.add(tracer)
  const tracerOf = ({ pid }: ChildProcess) =>
    Number(/TracerPid:\t(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1])
  while (tracerOf(server) === 0) await pause(5)
  // The tracer needs time to attach to the other threads.
  await pause(200)
  let end = () => void tracer.kill('SIGTERM')
  return {
    async start(start) {
      // The tracer runs as a grandchild, so that the child process is the server.
      const started = await start(['strace', '-D', '-I', '2', ...options])
      end = () => void process.kill(tracerOf(started.child), 'SIGTERM')
      tracer.kill('SIGTERM')
      return started
    },
    free: () => end(),
  }
}

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { parseCredits } from '../../src/accounts/credit.ts'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { createFirstRelease } from '../store/first-release.ts'
import { verifyOptions } from '../store/fixtures.ts'
import { createHeld } from '../support/held.ts'
import { listen } from '../support/listen.ts'
import { answers, asks, paths } from '../support/native.ts'
import { openStore } from '../support/operator.ts'
import { openRaw } from '../support/raw.ts'
import { type RawUpstream, startRawUpstream, whole } from '../support/raw-upstream.ts'
import { newFolder, type Served, type ServeOptions, serve } from '../support/serve.ts'
import { repeat, until } from '../support/waiting.ts'
import { openRows, terminators, ways } from './bench.ts'

/* The rows F-P and F-S of docs/faults.md that are about the program as it is started: a process of its own. */

const row = openRows()

const on = ways.slice(0, 3)
const once = { on: 'any', isBare: true, isSlow: true } as const
const each = { on, isBare: true, isSlow: true } as const

type Program = {
  folder: string
  storePath: string
  configPath: string
  key: string
  upstream: RawUpstream
  run: Served
  /** Lets the streams that wait go on. */
  letGo(): void
  start(options?: ServeOptions): Promise<Served>
  ask(more?: { wire?: ClientWire; stream?: boolean }): Promise<Got>
  /** Asks for a stream, and waits until something of it is shown. */
  begin(wire: ClientWire): Promise<Stream>
  /** What the ledger has of it; undefined: nothing. */
  sourceOf(id: string): string | undefined
  lines(): Record<string, unknown>[]
  lineOf(id: string): Promise<Record<string, unknown>>
}
type Got = { status: number; id: string; text: string; isBroken: boolean }
type Stream = { id: string; rest: Promise<Got> }

type ProgramOptions = {
  timeouts?: Record<string, string>
  credit?: string
  under?: string
  env?: Record<string, string>
}

/** A program with a model of each wire; asked for a stream it shows something of one and waits. */
async function startProgram(options: ProgramOptions = {}): Promise<Program> {
  const upstream = await startRawUpstream()
  const held = createHeld()
  upstream.play((socket, request) => {
    if (request.json()['stream'] === true) return held.answer(socket, request)
    const wire = clientWireNames.find((name) => request.path.endsWith(paths[name]))!
    return whole(answers[wire])(socket, request)
  })
  const folder = newFolder()
  const configPath = join(folder, 'triwire.yaml')
  const storePath = join(folder, 'triwire.db')
  writeFileSync(configPath, configOf(upstream.url, options), { mode: 0o600 })
  const store = openStore(storePath)
  store.createAccount('tester', parseCredits(options.credit ?? '100'))
  // What it has spent is verified behind each kill (ruling R15).
  const { key } = store.createKey('tester', { budget: { nanos: 10n ** 15n, per: undefined } })
  store.close()
  const runs: Served[] = []
  const program: Program = {
    folder,
    storePath,
    configPath,
    key,
    upstream,
    letGo: held.letGo,
    get run() {
      return runs.at(-1)!
    },
    async start(more = {}) {
      runs.push(serve(['--config', configPath], folder, { ...options, ...more }))
      await program.run.url()
      return program.run
    },
    async ask({ wire = 'chat', stream = false } = {}) {
      const response = await send(program, wire, stream)
      return read(response)
    },
    async begin(wire) {
      const response = await send(program, wire, true)
      return { id: response.headers.get('x-request-id')!, rest: read(response) }
    },
    sourceOf(id) {
      const store = openStore(storePath)
      try {
        return store.findEntry(id)?.bill?.usageSource
      } finally {
        store.close()
      }
    },
    lines: () =>
      runs
        .flatMap((run) =>
          run
            .stderr()
            .split('\n')
            .filter((line) => line.startsWith('{')),
        )
        .flatMap((line) => (line.endsWith('}') ? [JSON.parse(line) as Record<string, unknown>] : [])),
    async lineOf(id) {
      const find = () => program.lines().filter((line) => line['id'] === id && 'outcome' in line)
      await until(() => find().length > 0, `a line of ${id}`)
      assert.equal(find().length, 1, 'a request has one line in the log')
      return find()[0]!
    },
  }
  await program.start()
  return program
}

function configOf(upstreamUrl: string, { timeouts }: ProgramOptions): string {
  const models = clientWireNames.map(
    (wire) =>
      `    - { id: native-${wire}, wire: ${wire}, upstream: sim, upstream_model: up-${wire}, max_output_tokens: 999, prices: { input: "3", output: "15" } }`,
  )
  return `listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
store: ./triwire.db
catalog:
  pinned: 2026-11-01
  models:
${models.join('\n')}
upstreams: { sim: { base_url: "${upstreamUrl}", accounts: [{ name: a, key: k }] } }
timeouts: ${JSON.stringify({ drain_delay: '50ms', drain_deadline: '20s', settle_deadline: '1s', ...timeouts })}
limits: { requests_per_minute: 100000 }
`
}

async function send(program: Program, wire: ClientWire, stream: boolean): Promise<Response> {
  return fetch((await program.run.url()) + paths[wire], {
    method: 'POST',
    headers: { authorization: `Bearer ${program.key}` },
    body: JSON.stringify({ ...asks[wire], ...(stream ? { stream: true } : {}) }),
  })
}

async function read(response: Response): Promise<Got> {
  const got: Got = {
    status: response.status,
    id: response.headers.get('x-request-id') ?? '',
    text: '',
    isBroken: false,
  }
  const decoder = new TextDecoder()
  try {
    for await (const piece of response.body!) got.text += decoder.decode(piece, { stream: true })
  } catch {
    got.isBroken = true
  }
  return got
}

type Columns = { client: 'whole' | 'cut' | number; ledger: string | undefined; outcome: string }

/** The three columns of one request. */
async function check(program: Program, got: Got, wire: ClientWire, told: Columns): Promise<void> {
  const { client, ledger, outcome } = told
  const shown = `${got.status} ${got.text.slice(-300)}`
  assert.equal(got.status, typeof client === 'number' ? client : 200, shown)
  if (client === 'whole') assert.ok(!got.isBroken && got.text.includes('H\u00e9'), shown)
  if (client === 'cut') assert.ok(!got.text.includes(terminators[wire]), shown)
  assert.equal((await program.lineOf(got.id))['outcome'], outcome)
  assert.equal(program.sourceOf(got.id), ledger)
}

const ok: Columns = { client: 'whole', ledger: 'final', outcome: 'ok' }
const cutBy = (outcome: string): Columns => ({ client: 'cut', ledger: 'estimated', outcome })

/** All sums are right, of what the key has spent too. */
function verifyBooks({ storePath }: Program): void {
  const store = openStore(storePath)
  try {
    assert.deepEqual(store.verify(verifyOptions), [])
    assert.ok(store.listKeys()[0]!.spend!.spentNanos > 0n)
  } finally {
    store.close()
  }
}

async function stop(program: Program): Promise<void> {
  program.run.child.kill('SIGTERM')
  assert.equal(await program.run.exited, 0)
}

row(
  'F-P1',
  '`kill -9` under load: ready within 2 s; each answer whose end was seen has one entry, a cut one at most one',
  { ...each },
  async (_, { client: wire }) => {
    const program = await startProgram()
    const done = await Promise.all(Array.from({ length: 10 }, () => program.ask({ wire })))
    const streams = await Promise.all(Array.from({ length: 10 }, () => program.begin(wire)))
    // What of the log is not written yet goes with the process.
    for (const { id } of done) await program.lineOf(id)
    program.run.child.kill('SIGKILL')
    const cut = await Promise.all(streams.map(({ rest }) => rest))
    const start = performance.now()
    await program.start()
    assert.ok(performance.now() - start < 20_000)
    for (const got of done) await check(program, got, wire, ok)
    for (const [i, got] of cut.entries()) {
      assert.ok(got.isBroken && !got.text.includes(terminators[wire]))
      assert.equal(program.sourceOf(streams[i]!.id), undefined)
    }
    await check(program, await program.ask({ wire }), wire, ok)
    await stop(program)
    verifyBooks(program)
  },
)

row(
  'F-P2',
  'SIGTERM with live streams: all end normally, and new connections are taken for the drain delay',
  { ...each },
  async (_, { client: wire }) => {
    const program = await startProgram({ timeouts: { drain_delay: '2s' } })
    const streams = await Promise.all(Array.from({ length: 50 }, () => program.begin(wire)))
    program.run.child.kill('SIGTERM')
    await program.run.saw('"drain"')
    await check(program, await program.ask({ wire }), wire, ok)
    program.letGo()
    for (const { rest } of streams) await check(program, await rest, wire, ok)
    assert.equal(await program.run.exited, 0)
  },
)

for (const [id, says, deadline, again] of [
  ['F-P3', 'the drain’s deadline passes: the rest is cut and billed before the exit, with code 0', '300ms', false],
  ['F-P4', 'a second signal: the deadline is now', '1h', true],
] as const) {
  row(id, says, each, async (_, { client: wire }) => {
    const program = await startProgram({ timeouts: { drain_deadline: deadline } })
    const streams = await Promise.all(Array.from({ length: 10 }, () => program.begin(wire)))
    program.run.child.kill('SIGTERM')
    await program.run.saw('"drain"')
    // Close together two would be one signal that arrives two ways.
    if (again) await until(() => !program.run.child.kill('SIGTERM') || program.run.stderr().includes('"drain_cut"'))
    assert.equal(await program.run.exited, 0)
    for (const { rest } of streams) await check(program, await rest, wire, cutBy('shutdown'))
    assert.ok(program.run.stderr().includes('"drain_cut"'))
  })
}

row('F-P5', 'SIGTERM during the start: a clean exit, nothing half made', once, async () => {
  const program = await startProgram()
  await stop(program)
  for (const delay of [0, 20, 40, 80]) {
    const run = serve(['--config', program.configPath], program.folder)
    const start = performance.now()
    await until(() => performance.now() - start >= delay)
    run.child.kill('SIGTERM')
    // Before the launcher's first line nobody can catch it, and nothing is begun.
    const end = await run.exited
    assert.ok(end === 0 || (end === 'SIGTERM' && run.stderr() === ''), `${end} ${run.stderr()}`)
    assert.doesNotMatch(run.stderr(), /"(bug|uncaught)"|\n\s+at /)
  }
  await program.start()
  await check(program, await program.ask(), 'chat', ok)
  await stop(program)
})

row('F-P6', 'connections that wait unaccepted as the drain begins are served within its delay', once, async () => {
  const program = await startProgram({ timeouts: { drain_delay: '3s' } })
  const url = await program.run.url()
  // Stopped, it accepts nobody: all of them wait in the queue.
  program.run.child.kill('SIGSTOP')
  const opening = Array.from({ length: 100 }, () => openRaw(url))
  const connections = await Promise.all(opening)
  const body = JSON.stringify(asks.chat)
  const head = `POST ${paths.chat} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${program.key}\r\ncontent-length: ${body.length}\r\n\r\n`
  for (const { write } of connections) write(head + body)
  program.run.child.kill('SIGTERM')
  program.run.child.kill('SIGCONT')
  for (const { read, socket } of connections) {
    const { answers: told } = await read({ answers: 1 })
    assert.equal(told[0]?.status, 200)
    const id = told[0]!.headers.get('x-request-id')!
    assert.equal((await program.lineOf(id))['outcome'], 'ok')
    assert.equal(program.sourceOf(id), 'final')
    socket.destroy()
  }
  assert.equal(await program.run.exited, 0)
})

row(
  'F-P10',
  'an event loop that is late for seconds: new requests are 429, running streams stay',
  { ...each },
  async (_, { client: wire }) => {
    const program = await startProgram()
    const stream = await program.begin(wire)
    // Stopped for most of every half second, as a machine without a processor to spare is.
    let isStopped = false
    let next = 0
    const lag = repeat(() => {
      if (performance.now() < next) return
      program.run.child.kill(isStopped ? 'SIGCONT' : 'SIGSTOP')
      isStopped = !isStopped
      next = performance.now() + (isStopped ? 900 : 60)
    })
    let got = await program.ask({ wire })
    await until(async () => {
      got = await program.ask({ wire })
      return got.status === 429
    }, 'it sheds')
    lag.stop()
    program.run.child.kill('SIGCONT')
    await check(program, got, wire, { client: 429, ledger: undefined, outcome: 'refused' })
    program.letGo()
    await check(program, await stream.rest, wire, ok)
    await until(async () => (await program.ask({ wire })).status === 200, 'it is in time again')
    await stop(program)
  },
)

row(
  'F-P11',
  'no more file descriptors: accepting pauses, no crash; told when it begins and when it ends',
  once,
  async () => {
    const program = await startProgram({ under: 'ulimit -n 90' })
    const stream = await program.begin('chat')
    const url = await program.run.url()
    const connections = await Promise.all(Array.from({ length: 120 }, () => openRaw(url)))
    await program.run.saw('"descriptors_exhausted"')
    for (const { socket } of connections) socket.destroy()
    await until(async () => (await program.ask().catch(() => undefined))?.status === 200, 'it serves again')
    await program.run.saw('"descriptors_back"')
    program.letGo()
    await check(program, await stream.rest, 'chat', ok)
    await check(program, await program.ask(), 'chat', ok)
    await stop(program)
  },
)

row('F-P12', 'a log that takes nothing: no request waits, lines are dropped and counted', once, async () => {
  const program = await startProgram()
  const { child } = program.run
  child.stderr!.pause()
  const all: Got[] = []
  // Each line has some hundred bytes, and the pipe holds 64 KB.
  for (let i = 0; i < 12; i++) all.push(...(await Promise.all(Array.from({ length: 100 }, () => program.ask()))))
  assert.ok(all.every(({ status }) => status === 200))
  assert.equal(program.sourceOf(all.at(-1)!.id), 'final')
  child.stderr!.resume()
  await check(program, all[0]!, 'chat', ok)
  await check(program, await program.ask(), 'chat', ok)
  await stop(program)
})

row(
  'F-P13',
  'a reload with a mistake in the file: the old configuration stays, loudly; `check` exits 1',
  once,
  async () => {
    const program = await startProgram()
    const good = readFileSync(program.configPath, 'utf8')
    writeFileSync(program.configPath, good.replace('wire: chat', 'wire: carrier-pigeon'), { mode: 0o600 })
    program.run.child.kill('SIGHUP')
    await program.run.saw('"config_rejected"')
    await check(program, await program.ask(), 'chat', ok)
    const bin = join(import.meta.dirname, '../../bin/triwire.mjs')
    assert.throws(() =>
      execFileSync(process.execPath, [bin, 'config', 'check', '--config', program.configPath], { stdio: 'ignore' }),
    )
    await stop(program)
  },
)

row('F-P16', 'a second server on the same file refuses to start; the first is untouched', once, async () => {
  const program = await startProgram()
  const second = serve(['--config', program.configPath], program.folder)
  assert.equal(await second.exited, 1)
  assert.match(second.stderr(), /server/)
  await check(program, await program.ask(), 'chat', ok)
  await stop(program)
})

row('F-P17', 'hardly any CPU: slower, and nothing else', { ...each }, async (_, { client: wire }) => {
  const program = await startProgram()
  let isStopped = false
  let next = 0
  // A fifth of the time, in slices that are shorter than what counts as an overloaded loop.
  const starve = repeat(() => {
    if (performance.now() < next) return
    program.run.child.kill(isStopped ? 'SIGCONT' : 'SIGSTOP')
    isStopped = !isStopped
    next = performance.now() + (isStopped ? 80 : 20)
  })
  const stream = await program.begin(wire)
  const all = [await program.ask({ wire }), await program.ask({ wire }), await program.ask({ wire })]
  program.letGo()
  const last = await stream.rest
  starve.stop()
  program.run.child.kill('SIGCONT')
  for (const got of [...all, last]) await check(program, got, wire, ok)
  await stop(program)
})

row('F-P18', 'a port that is taken, or not allowed: a clear message, exit code 1', once, async () => {
  const program = await startProgram()
  const taken = await listen(createServer())
  const run = serve(
    ['--config', program.configPath, '--listen', `127.0.0.1:${taken}`, '--store', './other.db'],
    program.folder,
  )
  assert.equal(await run.exited, 1)
  assert.match(run.stderr(), /address already in use 127\.0\.0\.1:\d+: stop what listens there/)
  assert.doesNotMatch(run.stderr(), /\n\s+at /)
  await check(program, await program.ask(), 'chat', ok)
  await stop(program)
})

row(
  'F-P19',
  'the machine sleeps: live streams are cut, and no time is negative',
  { ...each },
  async (_, { client: wire }) => {
    // Stopped for longer than a stream may be silent: deadlines scaled, and a machine's sleep as a process sees it.
    const program = await startProgram({ timeouts: { idle: '1s' } })
    const stream = await program.begin(wire)
    program.run.child.kill('SIGSTOP')
    const start = performance.now()
    await until(() => performance.now() - start > 1_600)
    program.run.child.kill('SIGCONT')
    await check(program, await stream.rest, wire, cutBy('upstream_stall'))
    const line = await program.lineOf(stream.id)
    assert.ok((line['first_byte_ms'] as number) >= 0 && (line['end_ms'] as number) >= 1_000)
    await check(program, await program.ask({ wire }), wire, ok)
    await stop(program)
  },
)

row('F-P20', 'debuggers, heap snapshots, core dumps: none of them by signal', once, async () => {
  const program = await startProgram()
  const before = readdirSync(program.folder)
  program.run.child.kill('SIGUSR1')
  await check(program, await program.ask(), 'chat', ok)
  assert.doesNotMatch(program.run.stderr(), /Debugger listening/)
  assert.deepEqual(
    readdirSync(program.folder).filter((name) => !before.includes(name)),
    [],
  )
  await stop(program)
})

for (const what of ['deleted', 'replaced'] as const) {
  row('F-S5', `the store is ${what} under the server: not ready, no more requests, then the end`, once, async () => {
    const program = await startProgram()
    await check(program, await program.ask(), 'chat', ok)
    const admin = await program.run.adminUrl()
    rmSync(program.storePath)
    if (what === 'replaced') closeSync(openSync(program.storePath, 'w', 0o600))
    assert.equal(await program.run.exited, 1)
    assert.ok(program.run.stderr().includes('"ledger_lost"'))
    await assert.rejects(fetch(`${admin}/readyz`))
  })
}

row('F-S6', 'a damaged page refuses the start in clear words', once, async () => {
  const program = await startProgram()
  const got = await program.ask()
  await check(program, got, 'chat', ok)
  await stop(program)
  const bytes = readFileSync(program.storePath)
  const damaged = Buffer.from(bytes)
  damaged.fill(0x5a, 4_096, 4_096 * 3)
  writeFileSync(program.storePath, damaged, { mode: 0o600 })
  const run = serve(['--config', program.configPath], program.folder)
  assert.equal(await run.exited, 1)
  assert.match(run.stderr(), /is damaged.*: restore a backup/)
  writeFileSync(program.storePath, bytes, { mode: 0o600 })
  await program.start()
  assert.equal(program.sourceOf(got.id), 'final')
  await stop(program)
})

row('F-S6', 'a torn end of the log costs only what was never acknowledged', once, async () => {
  const program = await startProgram()
  const all = [await program.ask(), await program.ask(), await program.ask()]
  for (const got of all) await program.lineOf(got.id)
  program.run.child.kill('SIGKILL')
  await program.run.exited
  const wal = `${program.storePath}-wal`
  assert.ok(existsSync(wal))
  // A commit that a loss of power has torn stands behind all that were acknowledged.
  writeFileSync(wal, Buffer.concat([readFileSync(wal), Buffer.alloc(3_000, 0x5a)]), { mode: 0o600 })
  await program.start()
  for (const got of all) await check(program, got, 'chat', ok)
  await check(program, await program.ask(), 'chat', ok)
  await stop(program)
  verifyBooks(program)
})

row('F-S7', 'no store is made, an older one migrated, a newer one refused', once, async () => {
  const program = await startProgram()
  await check(program, await program.ask(), 'chat', ok)
  await stop(program)
  const old = join(program.folder, 'old.db')
  createFirstRelease(old, { acct_1: 'one' }, [])
  const run = serve(['--config', program.configPath, '--store', old], program.folder)
  await run.url()
  run.child.kill('SIGTERM')
  assert.equal(await run.exited, 0)
  const none = serve(['--config', program.configPath, '--store', join(program.folder, 'none.db')], program.folder)
  await none.url()
  none.child.kill('SIGTERM')
  assert.equal(await none.exited, 0)
  assert.ok(existsSync(join(program.folder, 'none.db')))
  const { DatabaseSync } = await import('node:sqlite')
  const db = new DatabaseSync(program.storePath)
  db.exec('PRAGMA user_version = 99')
  db.close()
  const newer = serve(['--config', program.configPath], program.folder)
  assert.equal(await newer.exited, 1)
  assert.match(newer.stderr(), /schema version 99/)
})

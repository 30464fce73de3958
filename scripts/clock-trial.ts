/*
 * Runs the real program on both stores with a clock that is years or days ahead (ruling Y15). The trial makes a credit,
 * a verify and a start, and runs a server. With SQLite the program's clock is moved, with PostgreSQL the database's. A
 * step that would date entries ahead must be refused, or reported at once. No head may be dated after its entries. With
 * the right clock, everything must work as before. Needs Linux, Debian's libfaketime, and Debian's PostgreSQL for that
 * store.
 *
 *     node bin/node.mjs scripts/clock-trial.ts [sqlite|postgres]
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { startSimulator } from '../src/simulator/simulator.ts'
import { freePort } from '../test/support/listen.ts'
import { startPostgres } from '../test/support/postgres.ts'

const library = ['x86_64', 'aarch64']
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketimeMT.so.1`)
  .find((path) => existsSync(path))
if (!library) throw new Error('no libfaketime is installed: apt-get install faketime')
const program = join(import.meta.dirname, '../bin/triwire.mjs')
const cli = join(import.meta.dirname, '../src/cli/cli.ts')

const folder = mkdtempSync(join(tmpdir(), 'triwire-clock-'))
const timePath = join(folder, 'time')
/** Variables with which a process has the clock in the file. Its monotonic clock stays right. */
const faked = {
  LD_PRELOAD: library,
  FAKETIME_TIMESTAMP_FILE: timePath,
  FAKETIME_NO_CACHE: '1',
  FAKETIME_DONT_FAKE_MONOTONIC: '1',
}
const [years, days] = [2 * 365, 2]
const children = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

let failures = 0
function expect(what: string, isSo: boolean, told: unknown): void {
  if (!isSo) failures++
  console.log(`${isSo ? 'ok  ' : 'FAIL'} ${what}${isSo ? '' : `: ${JSON.stringify(told)}`}`)
}

/** Moves the faked clock this many days ahead of the right one. */
function turn(aheadDays: number): void {
  writeFileSync(timePath, aheadDays === 0 ? '+0' : `+${aheadDays}d`, { mode: 0o644 })
}

type Ran = { code: number; stdout: string; stderr: string }

const simulator = await startSimulator()
const wish = process.argv[2]
for (const engine of ['sqlite', 'postgres'] as const) if (wish === undefined || wish === engine) await tryStore(engine)
await simulator.close()
console.log(failures === 0 ? 'all as it must be' : `${failures} failures`)
process.exit(failures === 0 ? 0 : 1)

async function tryStore(engine: 'sqlite' | 'postgres'): Promise<void> {
  console.log(`\n${engine}`)
  turn(0)
  const postgres = engine === 'postgres' ? await startTurnable() : undefined
  const store = postgres?.createDatabase('clock') ?? join(folder, 'triwire.db')
  const scene = await createScene(engine, store)
  await tryCommands(scene)
  await tryMove(scene)
  await tryStart(scene)
  await tryDays(scene)
  turn(0)
  postgres?.remove()
}

/** Creates a store with two accounts, and functions that run the commands of a person on it. */
async function createScene(engine: 'sqlite' | 'postgres', store: string) {
  // With SQLite the program's clock dates entries, with PostgreSQL the database's does.
  const env = { ...process.env, ...(engine === 'sqlite' && faked), NODE_NO_WARNINGS: '1' }
  const run = (...args: string[]) =>
    new Promise<Ran>((done) => {
      execFile(process.execPath, [cli, ...args, '--store', store], { env }, (error, stdout, stderr) =>
        done({ code: error ? Number(error.code) : 0, stdout, stderr }),
      )
    })
  const read = async (...args: string[]) => [JSON.parse((await run(...args, '--json')).stdout)].flat()[0]
  const made = await run('account', 'create', 'one', '--credit', '100')
  expect('an empty store asks for no confirmation', made.code === 0, made)
  await run('account', 'create', 'two', '--credit', '100')
  const { key } = await read('key', 'create', 'one')
  const admin = await freePort()
  const config = join(folder, `${engine}.yaml`)
  writeFileSync(config, configuration(store, admin), { mode: 0o600 })
  return {
    run,
    credit: (account: string, reference: string) => run('account', 'credit', account, '5', '--reference', reference),
    verify: (...args: string[]) => run('ledger', 'verify', ...args),
    /** Returns the time at which the newest entry of an account was posted. */
    newest: async (account: string): Promise<string> =>
      (await read('ledger', 'list', '--account', account, '--limit', '1')).posted,
    count: async (): Promise<number> => (await read('ledger', 'totals')).requests,
    probe: () => probeOf(admin),
    serve: () => serve(config, env),
    async ask({ url }: Server): Promise<number> {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] })
      const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
      await answer.text()
      return answer.status
    },
    untilReady: () => until(async () => (await probeOf(admin)).status === 200),
    untilDoubt: () => until(async () => isDoubtful(await probeOf(admin))),
  }
}

type Scene = Awaited<ReturnType<typeof createScene>>

async function tryCommands({ credit, verify, newest }: Scene): Promise<void> {
  turn(years)
  const refused = await credit('one', 'ahead')
  const isNamed = /triwire clock confirm/.test(refused.stderr)
  expect('two years ahead: a credit is refused with its cure', refused.code === 1 && isNamed, refused)
  const ahead = await verify()
  const head = /^head (\S+)$/m.exec(ahead.stdout)?.[1] ?? ''
  expect('two years ahead: no head is ahead of its entries', ahead.code === 0 && isToday(head.split('/')[1]!), ahead)
  turn(0)
  await credit('two', 'after')
  expect('with the right clock an entry is of today', isToday(await newest('two')), await newest('two'))
  const against = await verify('--against', head)
  expect('and the books are right', against.code === 0, against)
}

async function tryMove({ serve, ask, probe, count, newest, verify, untilReady, untilDoubt }: Scene): Promise<void> {
  const server = await serve()
  await untilReady()
  expect('by the right clock a request is answered', (await ask(server)) === 200, await probe())
  const before = await count()
  turn(years)
  const status = await ask(server)
  const told = { status, before, after: await count() }
  expect('two years ahead: what is asked in that moment is not dated by that clock', told.after === before, told)
  expect('two years ahead: a running server says so within seconds', (await untilDoubt()) === true, await probe())
  expect('two years ahead: a request is refused', (await ask(server)) === 500, await probe())
  turn(0)
  await untilReady()
  expect('with the right clock it goes on by itself', (await ask(server)) === 200, await probe())
  expect('and all is dated today', isToday(await newest('one')), await newest('one'))
  const right = await verify()
  expect('and the books are right', right.code === 0, right)
  await server.stop()
}

async function tryStart({ serve, ask, probe, untilReady, untilDoubt }: Scene): Promise<void> {
  turn(years)
  const server = await serve()
  await untilDoubt()
  const told = { ...(await probe()), asked: await ask(server) }
  expect('two years ahead at a start: nothing is taken', isDoubtful(told) && told.asked === 500, told)
  turn(0)
  await untilReady()
  expect('set right, it serves', (await ask(server)) === 200, await probe())
  await server.stop()
}

async function tryDays({
  run,
  credit,
  verify,
  newest,
  serve,
  ask,
  probe,
  untilReady,
  untilDoubt,
}: Scene): Promise<void> {
  turn(days)
  const booked = await credit('one', 'two days ahead')
  expect('two days ahead: a credit is booked, for some days of rest are no doubt', booked.code === 0, booked)
  turn(0)
  const found = await verify()
  const isReported = found.code === 1 && /that is to come/.test(found.stdout)
  expect('by the right clock the first verify reports it', isReported, found)
  await credit('two', 'beside')
  expect('and nobody else is dated ahead', isToday(await newest('two')), await newest('two'))
  const server = await serve()
  await untilReady()
  expect(
    'a server serves, and its probe has a note',
    /ahead of the clock/.test((await probe()).note ?? ''),
    await probe(),
  )
  turn(days)
  await untilDoubt()
  const confirmed = await run('clock', 'confirm')
  await untilReady()
  const isOver = confirmed.code === 0 && (await ask(server)) === 200
  expect('a doubt ends with triwire clock confirm', isOver, { confirmed, ...(await probe()) })
  await server.stop()
}

type Server = { url: string; stop(): Promise<void> }

async function serve(config: string, env: NodeJS.ProcessEnv): Promise<Server> {
  const child = spawn(process.execPath, [program, 'serve', '--config', config], {
    env: { ...env, TRIWIRE_STATE_DIR: join(folder, 'state') },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  children.add(child)
  let told = ''
  child.stdout.on('data', (text) => {
    told += text
  })
  const url = await until(() => /listens on (\S+)/.exec(told)?.[1])
  if (url === undefined) throw new Error(`the server does not start: ${told}`)
  return { url, stop: () => stop(child) }
}

function isDoubtful({ status, why = '' }: Probe): boolean {
  return status === 503 && why.includes('clock')
}

function isToday(time: string): boolean {
  return Math.abs(Date.parse(time) - Date.now()) < 3_600_000
}

async function startTurnable() {
  // The user of the cluster must be able to read the file with the clock.
  chmodSync(folder, 0o755)
  const postgres = await startPostgres({ settings: ['fsync = off'] })
  postgres.stop()
  Object.assign(process.env, faked)
  postgres.start()
  for (const name of Object.keys(faked)) delete process.env[name]
  return postgres
}

type Probe = { status: number; why?: string; note?: string }

async function probeOf(port: number): Promise<Probe> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`)
    return { ...((await answer.json()) as object), status: answer.status }
  } catch {
    return { status: 0 }
  }
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await ended
  children.delete(child)
}

/** Waits for a truthy value. @returns the value, or undefined after a minute */
async function until<T>(find: () => T | Promise<T>): Promise<T | undefined> {
  for (let n = 0; n < 600; n++) {
    const found = await find()
    if (found) return found
    await pause(100)
  }
  return undefined
}

function configuration(store: string, admin: number): string {
  return `
listen: 127.0.0.1:0
admin_listen: 127.0.0.1:${admin}
store: ${store}
seal_key: ${Buffer.from('a seal key of thirty-two bytes..').toString('base64')}
timeouts: { drain_delay: 0, settle_deadline: 500 }
upstreams:
  sim: { base_url: '${simulator.url}', accounts: [{ name: a, key: k }] }
catalog:
  pinned: 2026-11-01
  owner: triwire
  models:
    - { id: m, wire: chat, upstream: sim, upstream_model: up, max_output_tokens: 100,
        prices: { input: 3, cache_read: 0.3, cache_write: 3.75, output: 15 } }
`
}

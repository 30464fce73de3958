import assert from 'node:assert/strict'
import { closeSync, fstatSync, openSync, readSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { parseCredits } from '../../src/accounts/credit.ts'
import { digestKey } from '../../src/accounts/keys.ts'
import { createOperator } from '../../src/accounts/operators.ts'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createRecents } from '../../src/live/recents.ts'
import { createLog } from '../../src/log/log.ts'
import { startServer } from '../../src/process/server.ts'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'
import { openLedger } from '../../src/store/sqlite/ledger-client.ts'
import { createPoolMemory } from '../../src/upstream/pool-memory.ts'
import { atEnd } from './at-end.ts'
import { testFolder } from './folder.ts'
import { type Operator, openStore } from './operator.ts'
import { pathOf } from './store-place.ts'
import { openTap, type TappedAnswer } from './tap.ts'
import { patienceMs, until } from './waiting.ts'

export type TestGateway = {
  /** The URL without a trailing slash, e.g. `http://127.0.0.1:41234`. */
  url: string
  adminUrl: string
  /** The recording upstream of all models, unless `upstreamUrl` was given. */
  simulator: Simulator
  /** A key of the account `tester`, which starts with 100 credits. */
  key: string
  /** A separate connection to the same store, as the command line has one. */
  store: Operator
  storePath: string
  configPath: string
  server: Awaited<ReturnType<typeof startServer>>
  ledger: Awaited<ReturnType<typeof openLedger>>
  /** The gateway's clock, which stands still. */
  nowMs(): number
  /** Moves the gateway's clock forward, then lets it check every deadline. */
  advance(ms: number): void
  /** Lets ten seconds pass for idle connections to upstreams, after which they are used again (ruling Y14). */
  rest(): void
  /** Moves only the wall clock, as if somebody had set it, and not the monotonic clock. */
  jump(ms: number): void
  /** The lines of the log so far: access lines and process events. */
  logLines(): Promise<Record<string, unknown>[]>
  /** Waits for the access line of a request. @returns the line */
  logOf(requestId: string): Promise<Record<string, unknown>>
  /** Waits for a log line with these fields. @returns the first one */
  logWith(fields: Record<string, unknown>): Promise<Record<string, unknown>>
  /** The number of requests that the gateway has begun to read. */
  begun(): number
  /** The number of unfinished requests: the answer is not complete, or the client has not read all of it. */
  unended(): number
  /** Applies the same configuration with these changes, like a SIGHUP. */
  reload(more: Record<string, unknown>): void
  /** Waits until the gateway knows a new key in the store, and the state of its account. */
  untilKnown(key: string): Promise<void>
  /** Sends a GET to the admin listener, with an operator's token. */
  askAdmin(path: string): Promise<Response>
  /** Posts JSON with the key. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>
  /** Returns the answers so far that do not match the types of a client, each once. If any is left, `close` throws. */
  takeViolations(): string[]
  /** The answers so far, if `keepsAnswers` is set. */
  answers: readonly TappedAnswer[]
  close(): Promise<void>
}

export type TestOptions = {
  /** Entries of `catalog.models`. Default: native-messages, native-chat and native-responses, on the simulator. */
  models?: Record<string, unknown>[]
  /** Whether the simulator's prompt caches have the minimum lengths of the vendors. */
  promptCache?: 'vendors'
  /** The address of the models' upstream `sim`, instead of the simulator. */
  upstreamUrl?: string
  /** Parts of the configuration that need the simulator's address. */
  upstream?: (simulatorUrl: string) => Record<string, unknown>
  /** Further keys of the configuration, merged at the top level (e.g. `timeouts`, `limits`, `billing`). */
  config?: Record<string, unknown>
  /** The credit of the account `tester`. */
  credit?: string
  /** Whether to keep all answers in `answers`. */
  keepsAnswers?: boolean
  /** Whether failed upstream accounts cool down by the gateway's clock. Otherwise the next request uses them again. */
  cools?: boolean
  /** The most bytes of request bodies in memory. */
  bodiesBytesMax?: number
  /** How long the start waits for commands that print keys, in ms. */
  keysMs?: number
  /** The environment with the variables of clouds. Default: an empty one. */
  env?: Record<string, string>
  /** The interval of checks for changes of the store by others, in ms. */
  pollMs?: number
  /** The number of finished requests to keep in memory. Default: 500. */
  requestsKept?: number
  /** The time limit of a webhook, in ms. */
  webhookMs?: number
  /** Offsets of the clock that dates entries, and of the monotonic one that it is compared with (ruling Y15). */
  turned?: Float64Array
}

const prices = { input: '3', cache_read: '0.3', cache_write: '3.75', output: '15' }

export function testModel(id: string, wire: 'messages' | 'chat' | 'responses', more: Record<string, unknown> = {}) {
  return { id, wire, upstream: 'sim', upstream_model: `up-${wire}`, max_output_tokens: 8192, prices, ...more }
}

export const nativeModels = [
  testModel('native-messages', 'messages'),
  testModel('native-chat', 'chat'),
  testModel('native-responses', 'responses'),
]

/** Starts a gateway in this process: a real listener, a real store in a new folder, the simulator as upstream. */
export async function startTestGateway(options: TestOptions = {}): Promise<TestGateway> {
  const folder = testFolder('gateway')
  const simulator = await startSimulator({
    record: true,
    ...(options.promptCache && { promptCache: options.promptCache }),
  })
  const started: (() => unknown)[] = [simulator.close]
  let closing: Promise<void> | undefined
  // Also closes everything if the start fails half way. If the test closed the gateway itself, it has got the errors of
  // that.
  atEnd(() => {
    if (closing) return closing.catch(() => {})
    closing = closeAll()
    return closing
  })
  const configPath = join(folder, 'triwire.yaml')
  const file = {
    listen: '127.0.0.1:0',
    admin_listen: '127.0.0.1:0',
    store: './triwire.db',
    catalog: { pinned: '2026-11-01', owner: 'triwire', models: options.models ?? nativeModels },
    upstreams: {
      sim: { base_url: options.upstreamUrl ?? simulator.url, accounts: [{ name: 'a', key: 'upstream-key-1' }] },
    },
    ...options.upstream?.(simulator.url),
    ...options.config,
    // Short, so that no test waits long while the rest of a refused request is read.
    timeouts: { linger: 500, ...(options.config?.['timeouts'] as object | undefined) },
  }
  writeFileSync(configPath, stringify(file), { mode: 0o600 })
  const config = loadConfig({ config: configPath }, {}, folder)

  const logPath = join(folder, 'access.log')
  // Time stands still until a test moves it, so that a busy machine changes no result. It runs during the close.
  const startedMs = Date.now()
  let turnedMs = 0
  let jumpedMs = 0
  let closingMs: number | undefined
  const clockMs = () => turnedMs + (closingMs === undefined ? 0 : performance.now() - closingMs)
  const nowMs = () => startedMs + clockMs() + jumpedMs
  const log = createLog({ level: 'info', isPretty: false, descriptor: openSync(logPath, 'a'), nowMs })
  const storePath = pathOf(config.store)
  const store = openStore(storePath, { zone: config.reporting })
  store.createAccount('tester', parseCredits(options.credit ?? '100'))
  const { key } = store.createKey('tester')
  started.unshift(() => store.close())
  const ledger = await openLedger({
    path: storePath,
    settleDeadlineMs: config.timeouts.settleDeadlineMs,
    clockMs: () => performance.now(),
    onFatal: (error) => log.event('error', 'ledger_lost', { error: error.message }),
    log: log.event,
    reporting: config.reporting,
    pollMs: options.pollMs ?? 50,
    ...(options.turned && { turned: options.turned }),
  })
  started.unshift(ledger.close)
  // On a busy machine, a commit may take longer than the settle deadline of a test, so the first commit is awaited.
  await until(() => ledger.ledger.whyBlocked() === undefined, 'a first commit has worked')
  // The pool's time jumps ahead at each look, so that every cooldown has ended.
  let leapingMs = 0
  const leap = () => {
    leapingMs += 3_600_000
    return leapingMs
  }
  const memory = createPoolMemory(options.cools ? clockMs : leap)
  // The clock of the books is the test's, and so is the steady clock that it is compared with.
  const { clock } = ledger
  const [expectedMs, openedMs] = [clock.expectedMs.bind(clock), performance.now()]
  clock.expectedMs = () => {
    const ms = expectedMs()
    return ms === undefined ? ms : ms - (performance.now() - openedMs) + clockMs()
  }
  // Memory for the 11,000 requests of production would take 5 ms to allocate, for many hundreds of gateways.
  const { bodiesBytesMax, requestsKept = 500, keysMs, webhookMs, env = {} } = options
  let restedMs = 0
  const connectionsClockMs = () => performance.now() + restedMs
  const load = { isShedding: false, isStrained: false, stop() {} }
  const recents = createRecents({ requestsMax: requestsKept, namelessMax: requestsKept })
  const own = { log, nowMs, clockMs, connectionsClockMs, load, memory, recents, bodiesBytesMax, keysMs, webhookMs, env }
  const server = await startServer({ config, store: ledger, ...own })
  started.unshift(() => server.drain(0, 1_000))
  const tap = openTap(
    server.address.port,
    (model) => server.gateway.snapshots.current.config.catalog.models.get(model)?.wire as ClientWire | undefined,
    options.keepsAnswers,
  )
  started.push(() => {
    tap.close()
    assert.deepEqual(tap.takeViolations(), [], 'every answer is as the types of its wire say')
  })
  const url = `${config.tls ? 'https' : 'http'}://127.0.0.1:${server.address.port}`

  const adminUrl = `http://127.0.0.1:${server.adminAddress.port}`
  let operator: string | undefined

  // Each line is read once, because a test with many requests needs the line of each.
  const read = { bytes: 0, lines: [] as Record<string, unknown>[] }
  const logLines = async () => {
    // All lines must be written first, even on a slow disk.
    await log.flush(patienceMs)
    const file = openSync(logPath, 'r')
    const more = Buffer.alloc(fstatSync(file).size - read.bytes)
    const text = more.subarray(0, readSync(file, more, 0, more.length, read.bytes))
    closeSync(file)
    const whole = text.subarray(0, text.lastIndexOf('\n') + 1)
    read.bytes += whole.length
    for (const line of whole.toString().split('\n').filter(Boolean))
      read.lines.push(JSON.parse(line) as Record<string, unknown>)
    return [...read.lines]
  }
  return {
    url,
    adminUrl,
    simulator,
    key,
    store,
    storePath,
    configPath,
    server,
    ledger,
    nowMs,
    advance(ms) {
      turnedMs += ms
      server.tick()
    },
    jump(ms) {
      jumpedMs += ms
    },
    rest() {
      restedMs += 10_000
    },
    logLines,
    logOf: (id) => logWith({ id }),
    logWith,
    begun: tap.begun,
    unended: tap.unended,
    reload(more) {
      writeFileSync(configPath, stringify({ ...file, ...more }), { mode: 0o600 })
      server.reload(loadConfig({ config: configPath }, {}, folder))
    },
    untilKnown: (key) =>
      until(() => {
        const account = ledger.directory.findKnownKey(digestKey(key))?.account
        return account && account.state === store.findAccount(account.id).state
      }, 'the gateway knows a new key'),
    askAdmin(path) {
      operator ??= store.change(createOperator('tester', 'admin', nowMs() + 86_400_000, nowMs())).token
      return fetch(adminUrl + path, { headers: { authorization: `Bearer ${operator}` } })
    },
    post: (path, body, headers = {}) =>
      fetch(url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    takeViolations: tap.takeViolations,
    answers: tap.answers,
    close: () => (closing ??= closeAll()),
  }

  async function logWith(fields: Record<string, unknown>): Promise<Record<string, unknown>> {
    const wanted = Object.entries(fields)
    let line: Record<string, unknown> | undefined
    const isThere = async () => {
      line = (await logLines()).find((candidate) => wanted.every(([name, value]) => candidate[name] === value))
      return line
    }
    await until(isThere, `a line in the log with ${JSON.stringify(fields)}`)
    return line!
  }

  async function closeAll(): Promise<void> {
    closingMs = performance.now()
    for (const close of started) await close()
  }
}

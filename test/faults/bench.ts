import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { dirname, join } from 'node:path'
import test, { after, before } from 'node:test'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { verifyOptions } from '../store/fixtures.ts'
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts'
import { startTestGateway, type TestGateway, type TestOptions, testModel } from '../support/gateway.ts'
import { answers, asks, frames, paths } from '../support/native.ts'
import { isConnected } from '../support/peer.ts'
import { assertQuiet } from '../support/quiet.ts'
import { type RawAnswer, type RawResult, raw } from '../support/raw.ts'
import { type Answer, head, type RawUpstream, startRawUpstream, stream, whole } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'

/*
 * What the fault matrix is made of (docs/faults.md). A cell is one fault on one way through the gateway; it is a test, and
 * says of each of its requests what the client, the ledger and the log must show. scripts/fault-matrix.ts runs all cells
 * and prints them; the tests have those that are quick.
 */

/** A client's wire, and the wire of the model behind the gateway. */
export type Way = { name: string; client: ClientWire; model: ClientWire }

export const ways: readonly Way[] = [
  ...clientWireNames.map((wire) => ({ name: wire, client: wire, model: wire })),
  { name: 'messages→chat', client: 'messages', model: 'chat' },
]

/** Of rows that no wire has a part in. */
const anyWay: Way = { name: 'any', client: 'chat', model: 'chat' }

export type RowOptions = {
  /** Which ways it is tried on; default: all. */
  on?: readonly Way[] | 'any'
  /** It is for the whole matrix alone: it takes seconds. */
  isSlow?: boolean
  /** A gateway of its own for each cell, with this in its configuration. */
  own?: TestOptions
  /** Without a gateway: the cell starts what it needs. */
  isBare?: boolean
}

const isWhole = process.env['TRIWIRE_MATRIX'] === 'all'

type Play = (bench: Bench, way: Way) => Promise<void>

/**
 * The rows of one file. Cells without wishes have one gateway, which is opened and closed with their file: files may share
 * a process, and another's is closed.
 * @returns what registers the cells of a row; the tests run a quick row on one way, another one for each row
 */
export function openRows(): (id: string, says: string, options: RowOptions, play: Play) => void {
  let shared: Bench | undefined
  /** A cell has failed on it: nobody knows what it has left. */
  let isSpoiled = false
  let isPrepared = false
  return (id, says, options, play) => {
    const on = options.on === 'any' ? [anyWay] : (options.on ?? ways)
    const number = Number(/\d+/.exec(id)![0])
    const chosen = isWhole ? on : options.isSlow ? [] : [on[number % on.length]!]
    if (chosen.length > 0 && !isPrepared && !options.own && !options.isBare) {
      isPrepared = true
      before(async () => {
        shared = await openBench()
      })
      after(() => shared?.close())
    }
    for (const way of chosen) test(`${id} ${way.name}: ${says}`, () => playCell(way, options, play))
  }

  async function playCell(way: Way, options: RowOptions, play: Play): Promise<void> {
    if (options.isBare) return play(undefined as never, way)
    const isOwn = options.own !== undefined || isSpoiled
    const bench = isOwn ? await openBench(options.own) : shared!
    try {
      await bench.cell(way, () => play(bench, way))
    } catch (error) {
      isSpoiled ||= !isOwn
      throw error
    }
    if (isOwn) await bench.close()
  }
}

/** What one request must come to. */
export type Told = {
  client:
    | 'whole'
    | 'cut'
    /** It left, or was closed upon, and no answer is to be looked at. */
    | 'gone'
    /** An ordinary error in the envelope of the client's wire. */
    | number
  /** `evidence`: partial usage or an estimate, of more than nothing. */
  ledger: 'none' | 'final' | 'evidence'
  /** Fields of the access line. */
  log: Record<string, unknown> & { outcome: string }
}

/** What a client got. */
export type Got = {
  id: string
  status: number
  headers: IncomingMessage['headers']
  text: string
  /** The connection ended before the answer did. */
  isBroken: boolean
  wire: ClientWire
}

export type Client = {
  /** Resolves when this much of the answer is there. */
  saw(text: string): Promise<void>
  got: Promise<Got>
  /** Leaves by a reset. */
  reset(): void
  /** Leaves by an orderly end. */
  end(): void
  /** Takes nothing more from its connection. */
  pause(): void
}

export type AskOptions = {
  stream?: boolean
  /** Which upstream: `native` is straight behind the gateway, `far` behind the bad network. */
  to?: string
  more?: Record<string, unknown>
  headers?: Record<string, string>
  /** Another address of the gateway's, such as a proxy's. */
  url?: string
}

export type Bench = {
  /** Of the cell that runs. */
  readonly way: Way
  /** The part `upstreams` of the configuration, for reloads. */
  upstreams: Record<string, unknown>
  gateway: TestGateway
  upstream: RawUpstream
  /** Between the gateway and the upstream of the `far` models. */
  network: FaultProxy
  /** Asks and reads to the end. */
  ask(options?: AskOptions): Promise<Got>
  /** Asks, and may do something else before the end. */
  client(options?: AskOptions): Client
  /** Bytes on a connection of their own, with the key where the text says `KEY`. */
  raw(text: string | Buffer, options?: Parameters<typeof raw>[2]): Promise<RawResult>
  /** Waits until the request is over, and compares all three columns. */
  check(got: Got | RawAnswer | { id: string }, told: Told): Promise<Record<string, unknown>>
  /** The same for a request whose client was told no id: the next access line that no check has taken yet. */
  checkNext(told: Told): Promise<Record<string, unknown>>
  /** The upstream's good answers, as this way's model gives them. */
  good: { whole: Answer; stream: Answer }
  /** Frames of that stream until something of its text is shown, and the rest. */
  shown: string[]
  rest: string[]
  isAsked(requests?: number): Promise<void>
  cell(way: Way, play: () => Promise<void>): Promise<void>
  close(): Promise<void>
}

export const terminators = { messages: 'message_stop', chat: '[DONE]', responses: 'response.completed' }
const errorFrames = { messages: 'event: error\n', chat: 'data: {"error":', responses: 'event: response.failed\n' }
const half = { messages: 3, chat: 2, responses: 4 }

/** Words that stand in every prompt, and in errors of upstreams: no log has them. */
export const canary = 'canary-fault'

export async function openBench(options: TestOptions = {}): Promise<Bench> {
  const upstream = await startRawUpstream()
  const network = await startFaultProxy(upstream.url)
  const account = (name: string) => ({ name, key: `upstream-key-${name}` })
  const upstreams = {
    sim: { base_url: upstream.url, accounts: [account('a')] },
    net: { base_url: network.url, accounts: [account('a')] },
    trio: { base_url: upstream.url, accounts: [account('a'), account('b'), account('c')] },
    farTrio: { base_url: network.url, accounts: [account('a'), account('b'), account('c')] },
  }
  const to = { native: 'sim', far: 'net', trio: 'trio', 'far-trio': 'farTrio' }
  const models = clientWireNames.flatMap((wire) =>
    Object.entries(to).map(([name, upstream]) => testModel(`${name}-${wire}`, wire, { upstream })),
  )
  const { upstreams: more, ...config } = options.config ?? {}
  const gateway = await startTestGateway({
    ...options,
    models: [...models, ...(options.models ?? [])],
    config: {
      limits: { requests_per_minute: 1_000_000 },
      ...config,
      upstreams: { ...upstreams, ...(more as object | undefined) },
    },
  })
  return createBench(gateway, upstream, network, { ...upstreams, ...(more as object | undefined) })
}

function createBench(
  gateway: TestGateway,
  upstream: RawUpstream,
  network: FaultProxy,
  upstreams: Record<string, unknown>,
): Bench {
  let way: Way = anyWay
  let checks = 0
  const seen = new Set<string>()
  const logPath = join(dirname(gateway.configPath), 'access.log')
  const bench: Bench = {
    get way() {
      return way
    },
    upstreams,
    gateway,
    upstream,
    network,
    ask: (options) => bench.client(options).got,
    client: (options = {}) => startClient(gateway, way, options),
    raw(text, options) {
      const bytes = typeof text === 'string' ? text.replaceAll('KEY', gateway.key) : text
      return raw(gateway.url, bytes, options)
    },
    async check(got, told) {
      checks++
      const id = 'id' in got ? got.id : got.headers.get('x-request-id')!
      if (typeof told.client === 'number') assertError(got as Got | RawAnswer, told.client)
      else if (told.client !== 'gone') assertStream(got as Got, told.client)
      const line = await lineOf(id)
      seen.add(id)
      for (const [name, value] of Object.entries(told.log)) {
        if (value instanceof RegExp) assert.match(String(line[name]), value, `log ${name}`)
        else assert.deepEqual(line[name], value, `log ${name} of ${JSON.stringify(line)}`)
      }
      assertLedger(gateway, id, told.ledger)
      return line
    },
    async checkNext(told) {
      let line: Record<string, unknown> | undefined
      await until(async () => {
        line = (await accessLines()).find((one) => !seen.has(one['id'] as string))
        return line
      }, 'another line in the log')
      return bench.check({ id: line!['id'] as string }, told)
    },
    get good() {
      return { whole: whole(answers[way.model]), stream: stream(frames[way.model]) }
    },
    get shown() {
      return frames[way.model].slice(0, half[way.model])
    },
    get rest() {
      return frames[way.model].slice(half[way.model])
    },
    isAsked: (requests = 1) => until(() => upstream.requests.length >= requests, 'the upstream is asked'),
    async cell(next, play) {
      way = next
      checks = 0
      await begin()
      await play()
      assert.ok(checks > 0, 'a cell says what client, ledger and log must show')
      await end()
    },
    close: () => gateway.close(),
  }
  return bench

  /** Connections that an earlier cell has left are gone, so that this one's faults are met. */
  async function begin(): Promise<void> {
    network.play()
    upstream.play()
    // The gateway has heard of it too: else it might take one of them for a good one.
    await until(() => {
      network.drop()
      return network.open === 0 && !isConnected(Number(new URL(network.url).port))
    }, 'the network is empty')
    for (const line of await accessLines()) seen.add(line['id'] as string)
  }

  /** What holds behind every fault: one line a request, nothing held, nothing under way, no key and no text in the log. */
  async function end(): Promise<void> {
    await assertQuiet(gateway)
    const log = readFileSync(logPath, 'utf8')
    for (const word of [gateway.key.slice(20), 'upstream-key', canary])
      assert.ok(!log.includes(word), `${word} is logged`)
    assert.deepEqual(gateway.store.verify(verifyOptions), [])
    assert.deepEqual(gateway.takeViolations(), [], 'every answer is as the types of its wire say')
  }

  async function accessLines(): Promise<Record<string, unknown>[]> {
    return (await gateway.logLines()).filter((line) => 'outcome' in line)
  }

  async function lineOf(id: string): Promise<Record<string, unknown>> {
    await gateway.logOf(id)
    const lines = (await accessLines()).filter((line) => line['id'] === id)
    assert.equal(lines.length, 1, 'a request has one line in the log')
    return lines[0]!
  }
}

function assertLedger(gateway: TestGateway, id: string, told: Told['ledger']): void {
  const entry = gateway.store.findEntry(id)
  if (told === 'none') {
    assert.equal(entry, undefined, 'ledger: no entry')
    return
  }
  assert.ok(entry?.bill, 'ledger: an entry')
  const { usageSource } = entry.bill
  if (told === 'final') assert.equal(usageSource, 'final', 'ledger: billed by the final usage')
  else assert.notEqual(usageSource, 'final', 'ledger: billed by evidence')
  assert.ok(entry.amountNanos > 0n, 'ledger: an amount')
}

function assertStream({ status, text, isBroken, wire }: Got, told: 'whole' | 'cut'): void {
  const shown = `${status} ${text.slice(-600)}`
  assert.equal(status, 200, shown)
  assert.match(text, /H(é|\\u00e9) ?/, shown)
  const isStream = /^(event|data|:)/.test(text)
  const ends = text.split(terminators[wire]).length - 1
  if (told === 'whole') {
    assert.ok(!isBroken, shown)
    assert.ok(!text.includes(errorFrames[wire]), shown)
    // The messages wire says the word twice: as the event's name and as its type.
    if (isStream) assert.equal(ends, wire === 'chat' ? 1 : 2, shown)
    return
  }
  assert.equal(ends, 0, `a terminator behind a cut: ${shown}`)
  if (!isBroken) assert.ok(text.trimEnd().split('\n\n').at(-1)!.startsWith(errorFrames[wire]), shown)
}

/** The status, a request id, and an envelope that no text of the upstream shows through. */
function assertError(got: Got | RawAnswer, status: number): void {
  const text = 'text' in got ? got.text : got.body
  assert.equal(got.status, status, text.slice(0, 400))
  const { headers } = got
  const id = headers instanceof Map ? headers.get('x-request-id') : headers['x-request-id']
  assert.match(String(id), /^req_[0-9a-f]{32}$/)
  const read = JSON.parse(text) as { type?: string; error: { type: string; message: string } }
  assert.ok(read.error.type && read.error.message, text)
  if ('wire' in got) assert.equal(read.type === 'error', got.wire === 'messages', text)
  assert.doesNotMatch(text, new RegExp(`${canary}|upstream-key|127\\.0\\.0\\.1`))
}

function startClient(gateway: TestGateway, way: Way, options: AskOptions): Client {
  const { stream: isStream = false, to = 'native', more = {}, headers = {}, url = gateway.url } = options
  let text = ''
  let wake = () => {}
  const started = request(url + paths[way.client], {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, ...headers },
    agent: false,
  })
  let response: IncomingMessage | undefined
  const got = new Promise<Got>((resolve) => {
    const done = (isBroken: boolean) =>
      resolve({
        id: String(response?.headers['x-request-id'] ?? ''),
        status: response?.statusCode ?? 0,
        headers: response?.headers ?? {},
        text,
        isBroken,
        wire: way.client,
      })
    started.on('error', () => done(true))
    started.on('response', (answered) => {
      response = answered
      const decoder = new TextDecoder()
      answered.on('data', (piece: Buffer) => {
        text += decoder.decode(piece, { stream: true })
        wake()
      })
      answered.on('error', () => {})
      answered.on('close', () => done(!answered.complete))
    })
  })
  const asked = { ...asks[way.client], model: `${to}-${way.model}`, ...prompts[way.client] }
  // Node writes headers in the encoding of a body that is a text.
  started.end(Buffer.from(JSON.stringify({ ...asked, ...(isStream ? { stream: true } : {}), ...more })))
  return {
    got,
    async saw(words) {
      while (!text.includes(words)) {
        await new Promise<void>((resolve) => {
          wake = resolve
          void got.then(() => resolve())
        })
        if (!text.includes(words) && response?.closed) throw new Error(`${words} does not come: ${text}`)
      }
    },
    reset: () => void started.socket!.resetAndDestroy(),
    end: () => void started.socket!.end(),
    pause: () => void (response?.pause() ?? started.socket!.pause()),
  }
}

const turns = [{ role: 'user', content: `Hi ${canary}` }]
const prompts = { messages: { messages: turns }, chat: { messages: turns }, responses: { input: `Hi ${canary}` } }

export { head, stream, whole }

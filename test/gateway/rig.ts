import assert from 'node:assert/strict'
import type { ApiKey } from '../../src/accounts/account.ts'
import type { Debit } from '../../src/accounts/ledger.ts'
import { createCatalog, type Model } from '../../src/catalog/model.ts'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { type Config, Secret, type Upstream } from '../../src/config/config.ts'
import type { Call, CallListener } from '../../src/gateway/call.ts'
import type { ChainWalk } from '../../src/gateway/chain.ts'
import { Delivery } from '../../src/gateway/delivery.ts'
import { type Exchange, exchangeNatively, translate } from '../../src/gateway/exchange.ts'
import { Bodies, Flow, Readers } from '../../src/gateway/fairness/places.ts'
import { createTurns } from '../../src/gateway/fairness/turns.ts'
import { type Gateway, type Snapshot, tick } from '../../src/gateway/gateway.ts'
import type { CallRecord } from '../../src/gateway/record.ts'
import { Roster } from '../../src/registers.ts'
import { fixedKey } from '../../src/upstream/keyring.ts'
import type { KeyFinder } from '../../src/upstream/live-key.ts'
import { createPool, type Pool } from '../../src/upstream/pool.ts'
import { createPoolMemory, type PoolMemory } from '../../src/upstream/pool-memory.ts'
import type { Target, UpstreamListener, UpstreamRequest } from '../../src/upstream/target.ts'
import { ClientBody } from '../../src/wires/requests/client-body.ts'
import { modelOf } from '../native/models.ts'
import { asks } from '../support/native.ts'
import { upstreamAt } from '../support/upstream.ts'
import { turn } from '../support/waiting.ts'

/** One request as it was sent, and the hand that answers it. */
export type Sent = UpstreamRequest & {
  target: Target
  listener: UpstreamListener
  isAborted: boolean
  isPaused: boolean
  /** What the next call on the flight throws: a bug of ours, as a delivery meets it. */
  bug: Error | undefined
}

export type RigOptions = {
  /** The model's wire. */
  wire?: ClientWire
  /** The client's; default: the same. */
  client?: ClientWire
  stream?: boolean
  /** More of the request. */
  ask?: Record<string, unknown>
  model?: Partial<Model>
  timeouts?: Partial<Config['timeouts']>
  cutAnswers?: 'bill' | 'waive'
  /** Default: as in the configuration. */
  readOnMs?: number
  /** The client has left before its request is sent. */
  isGone?: boolean
  accounts?: Upstream['accounts']
  /** More upstreams beside `sim`, which they are like. */
  upstreams?: readonly (Partial<Upstream> & { name: string })[]
  /** Who chooses the targets; by default the pool of production. */
  pool?: Pool
  /** The keys of the accounts; default: those of the configuration. */
  keyOf?: KeyFinder
  /** What the pool of production remembers. */
  memory?: PoolMemory
  affinity?: string
  /** The further entries of a chain. */
  chain?: ChainWalk
  /** False: the targets of the model take its requests in different ways. */
  isServedAlike?: boolean
}

export type Rig = {
  gateway: Gateway
  snapshot: Snapshot
  record: CallRecord
  exchange: Exchange
  sent: Sent[]
  /** What the client was told, and what it does. */
  client: {
    reply: { status: number; body: string } | undefined
    isBegun: boolean
    text: string
    isEnded: boolean
    isDestroyed: boolean
    /** False: it does not take what is written. */
    isReading: boolean
    /** It takes what was written, and is not ready for more. */
    isTaking: boolean
    /** What the end of an answer throws. */
    bug: Error | undefined
    leave(): void
    catchUp(): void
  }
  debits: Debit[]
  /** Answers the debits that wait; later ones at once. */
  ledger: { isHeld: boolean; release(): void; refuse(error: Error): void }
  bugs: Error[]
  released: number
  /** What giving the hold back throws. */
  releaseBug: Error | undefined
  /** What `run` came to: undefined while it is under way. */
  end: { error: Error | undefined } | undefined
  advance(ms: number): void
  /** Lets promises settle. */
  turn(): Promise<void>
}

const timeouts: Config['timeouts'] = {
  headersMs: 15_000,
  bodyMs: 60_000,
  bodyGapMs: 20_000,
  lingerMs: 5_000,
  keepAliveMs: 65_000,
  writeStallMs: 60_000,
  connectMs: 5_000,
  firstByteStreamMs: 300_000,
  firstByteJsonMs: 600_000,
  idleMs: 120_000,
  progressMs: 300_000,
  totalMs: 3_600_000,
  settleWindowMs: 30_000,
  settleDeadlineMs: 2_000,
  drainDelayMs: 0,
  drainDeadlineMs: 0,
  pingMs: 10_000,
}

/**
 * A delivery between two hands: the client's and the upstream's. Everything in between is what runs in production; clock,
 * sockets and the disk are the test's.
 */
export function startRig(options: RigOptions = {}): Rig {
  const wire = options.wire ?? 'chat'
  const client = options.client ?? wire
  const model = modelOf(wire, options.model)
  let nowMs = 1_000_000
  const sent: Sent[] = []
  const waiting: { resolve: () => void; reject: (error: Error) => void }[] = []
  const accounts = options.accounts ?? [{ name: 'a', key: new Secret('upstream-key-1'), isEnabled: true }]
  const upstream = upstreamAt('http://sim', { accounts })
  const config = {
    catalog: createCatalog([model], 0, 'triwire'),
    upstreams: new Map([upstream, ...(options.upstreams ?? [])].map((one) => [one.name, { ...upstream, ...one }])),
    timeouts: { ...timeouts, ...options.timeouts },
    billing: {
      cutAnswers: options.cutAnswers ?? 'bill',
      readOnMs: options.readOnMs ?? 10_000,
      holdOutputTokens: 1_024,
    },
  } as unknown as Config
  const { keyOf = fixedKey } = options
  const snapshot: Snapshot = {
    config,
    pool:
      options.pool ??
      createPool(
        config.upstreams,
        options.memory ??
          createPoolMemory(
            () => nowMs,
            () => 0.5,
          ),
        keyOf,
      ),
    keyOf,
    upstreams: {
      send(target, request, listener) {
        const one: Sent = { ...request, target, listener, isAborted: false, isPaused: false, bug: undefined }
        sent.push(one)
        const act = (change: Partial<Sent>) => {
          const { bug } = one
          one.bug = undefined
          if (bug) throw bug
          Object.assign(one, change)
        }
        return {
          abort: () => act({ isAborted: true }),
          pause: () => act({ isPaused: true }),
          resume: () => act({ isPaused: false }),
          isSent: () => false,
          wasWritten: () => true,
        }
      },
      async retire() {},
      async close() {},
    },
  }
  const person: Rig['client'] = {
    reply: undefined,
    isBegun: false,
    text: '',
    isEnded: false,
    isDestroyed: false,
    isReading: true,
    isTaking: false,
    bug: undefined,
    leave() {
      call.isGone = true
      call.listener?.clientGone()
    },
    catchUp() {
      person.isReading = true
      call.listener?.clientReady()
    },
  }
  const call: Omit<Call, 'isGone'> & { isGone: boolean; listener: CallListener | undefined } = {
    requestId: 'req_1',
    wire: client,
    ip: '192.0.2.1',
    isGone: options.isGone ?? false,
    listener: undefined,
    header: () => undefined,
    readBody: () => Promise.reject(new Error('the body is read already')),
    reply(status, _type, body) {
      if (person.bug) throw person.bug
      assert.deepEqual([person.reply, person.isBegun], [undefined, false], 'one whole answer, or a stream')
      person.reply = { status, body: Buffer.from(body as string).toString() }
    },
    begin() {
      assert.deepEqual([person.reply, person.isBegun], [undefined, false], 'a stream begins once')
      person.isBegun = true
    },
    write(text, encoding) {
      assert.deepEqual([person.isBegun, person.isEnded], [true, false], 'pieces come behind the head, before the end')
      person.text += Buffer.from(text, encoding).toString()
      return person.isReading
    },
    end(text, encoding) {
      if (person.bug) throw person.bug
      assert.deepEqual([person.isBegun, person.isEnded], [true, false], 'a stream that has begun ends once')
      person.text += Buffer.from(text, encoding).toString()
      person.isEnded = true
    },
    isTaking: () => person.isTaking,
    destroy() {
      person.isDestroyed = true
    },
  }
  const record: CallRecord = { id: 'req_1', startedMs: nowMs, method: 'POST', path: '/', ip: call.ip }
  const gateway = {
    ledger: {
      debit(debit: Debit) {
        rig.debits.push(debit)
        if (!rig.ledger.isHeld) return Promise.resolve('posted')
        return new Promise<void>((resolve, reject) => waiting.push({ resolve, reject }))
      },
      whyBlocked: () => undefined,
    },
    deliveries: new Roster(),
    lingering: new Roster(),
    readers: new Readers(),
    flow: new Flow(),
    turns: createTurns({ clockMs: () => 0, soon: (act) => void setImmediate(act), after: () => {} }),
    snapshots: { current: snapshot },
    nowMs: () => nowMs,
    aheadMs: () => 0,
    clockMs: () => nowMs,
    sealer: { isOurs: () => false, seal: () => '', unseal: () => undefined },
    reportBug: (bug: Error) => void rig.bugs.push(bug),
  } as unknown as Gateway
  const body = new ClientBody(
    Buffer.from(JSON.stringify({ ...asks[client], model: 'm', stream: options.stream ?? false, ...options.ask })),
  )
  const account = { id: 'acct_1', name: 'tester', state: 'active' }
  const key = { id: 'key_1', prefix: 'sk-tri-12345678', account, expiresMs: undefined } as unknown as ApiKey
  const connect = client === wire ? exchangeNatively : translate
  const exchangeFor = (served: Model) =>
    connect({ gateway, call, accountId: account.id, model: served, body, at: nowMs, scopedKey: undefined })
  const exchange = exchangeFor(model)
  const rig: Rig = {
    gateway,
    snapshot,
    record,
    exchange,
    sent,
    client: person,
    debits: [],
    ledger: {
      isHeld: false,
      release: () => waiting.splice(0).forEach(({ resolve }) => void resolve()),
      refuse: (error) => waiting.splice(0).forEach(({ reject }) => void reject(error)),
    },
    bugs: [],
    released: 0,
    releaseBug: undefined,
    end: undefined,
    advance(ms) {
      nowMs += ms
      tick(gateway, nowMs)
    },
    turn,
  }
  const release = () => {
    rig.released++
    if (rig.releaseBug) throw rig.releaseBug
  }
  const share = new Bodies(1_000_000).enter(account.id)
  const { affinity, chain } = options
  const parts = { gateway, snapshot, call, record, key, model, affinity, chain, release, share }
  new Delivery(parts, { exchange, exchangeFor: options.isServedAlike === false ? exchangeFor : undefined }).run().then(
    () => {
      rig.end = { error: undefined }
    },
    (error: Error) => {
      rig.end = { error }
    },
  )
  return rig
}

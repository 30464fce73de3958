import type { ApiKey } from '../accounts/account.ts'
import type { Debit } from '../accounts/ledger.ts'
import type { Sealer } from '../accounts/seal.ts'
import type { Model } from '../catalog/model.ts'
import type { ClientWire } from '../catalog/wire-names.ts'
import type { Config, UpstreamAccount } from '../config/config.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import { Roster } from '../registers.ts'
import type { LiveKey } from '../upstream/live-key.ts'
import { createPool } from '../upstream/pool.ts'
import { createPoolMemory } from '../upstream/pool-memory.ts'
import { headersOf, pathFor, type UpstreamListener, type Upstreams } from '../upstream/target.ts'
import { wires } from '../wires/wires.ts'
import { Delivery, type DeliveryGateway, type DeliveryParts } from './delivery.ts'
import { Bodies, Flow, Readers, tooLarge } from './fairness/places.ts'
import { createSnapshots } from './gateway.ts'
import { type ReadRequest, type ReadRequestParts, readRequest } from './infer.ts'
import type { CallRecord } from './record.ts'

/** A request that runs without an account that pays and without an upstream that receives it. */
type Rehearsal = {
  config: Config
  wire: ClientWire
  /** The client's headers, by lower-case name. */
  header: (name: string) => string | undefined
  /** The account whose conversation keys and envelopes are used. */
  accountId: string
  sealer: Sealer
  scopeKey: ReadRequestParts['gateway']['scopeKey']
  /** The name of the model's upstream to use; undefined for the first. */
  upstream: string | undefined
  /** The upstream answer to use in the rehearsal. If undefined, the rehearsal ends with the request. */
  answer: PlayedAnswer | undefined
  /** Unix milliseconds. */
  nowMs: () => number
}

export type PlayedAnswer = { status: number; contentType: string; body: Buffer }

/**
 * The result of a rehearsal. `refused`: a check failed before anything was sent. `sent`: the request that the upstream
 * would get. It has an `answer` if an upstream answer was given to play.
 */
export type Rehearsed =
  | { state: 'refused'; refusal: ToldError }
  | { state: 'sent'; model: Model; sent: SentRequest; record: CallRecord; answer: ClientAnswer | undefined }

/** An error response as the client gets it. */
export type ToldError = { status: number; code: ErrorCode; param: string | null; message: string; body: string }

type SentRequest = {
  /** The upstream's name in the configuration. */
  upstream: string
  path: string
  /** All headers except the credential: names and values in turn. */
  headers: readonly string[]
  body: Buffer
}

export type ClientAnswer = {
  status: number
  contentType: string
  body: Buffer
  /** Whether the connection would close before the end of the answer. */
  isCut: boolean
  /** The debit that would be made; undefined if nothing is billed. */
  debit: Debit | undefined
}

/**
 * Runs a request as the gateway does, from the checks to the bill. Keys, credit and rate limits are not checked. No
 * upstream is contacted, nothing is stored, and the clock stands still.
 * @param bytes the client's body
 * @param received the size of the body as the client sent it, in bytes
 */
export async function rehearse(rehearsal: Rehearsal, bytes: Buffer, received = bytes.length): Promise<Rehearsed> {
  const { config, wire, accountId } = rehearsal
  const { path } = wires[wire].client
  const record: CallRecord = { id: requestId, startedMs: rehearsal.nowMs(), method: 'POST', path, ip: '', wire }
  const { header } = rehearsal
  const stage = openStage(wire, rehearsal.answer)
  const { upstream, call } = stage
  let model: Model | undefined
  try {
    if (received > config.limits.bodyBytesMax) throw tooLarge(config.limits.bodyBytesMax)
    const read = readRequest(
      { gateway: rehearsal, config, call: { ...call, header }, record, at: record.startedMs, accountId },
      bytes,
    )
    model = read.model
    await deliver(rehearsal, stage, record, read)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const refusal = tell(error, wire)
    if (upstream.sent === undefined) return { state: 'refused', refusal }
    call.reply(refusal.status, 'application/json', refusal.body)
  }
  const answer = rehearsal.answer && { ...stage.shown(), debit: stage.ledger.debited }
  return { state: 'sent', model: model!, sent: upstream.sent!, record, answer }
}

/** A text in the form of a request id. No real request has this id. */
const requestId = `req_${'0'.repeat(20)}`

function tell(error: GatewayError, wire: ClientWire): ToldError {
  const { status, code, param, message } = error
  const body = wires[wire].client.envelope(error, requestId)
  return { status, code, param, message, body }
}

/**
 * Sends the request to an invented upstream, and delivers its answer. @throws GatewayError that the client would get
 */
async function deliver(
  rehearsal: Rehearsal,
  stage: RehearsalStage,
  record: CallRecord,
  read: ReadRequest,
): Promise<void> {
  const { affinity, asking } = read
  const { config, model } = narrow(rehearsal, read.model)
  const snapshot = {
    config,
    pool: createPool(config.upstreams, createPoolMemory(standing), keyOf),
    upstreams: stage.upstream,
    keyOf,
  }
  let bug: Error | undefined
  const gateway: DeliveryGateway = {
    snapshots: createSnapshots(snapshot),
    ledger: stage.ledger,
    nowMs: rehearsal.nowMs,
    clockMs: standing,
    deliveries: new Roster(),
    aheadMs: () => 0,
    lingering: new Roster(),
    readers: new Readers(),
    flow: new Flow(),
    reportBug(found) {
      bug ??= found
    },
  }
  const account = { id: rehearsal.accountId, name: '', state: 'active' as const }
  const key: ApiKey = { id: '', prefix: '', account, expiresMs: undefined }
  const share = new Bodies(Number.POSITIVE_INFINITY).enter(account.id)
  const parts = { gateway, snapshot, call: stage.call, record, key, model, affinity, release() {}, share }
  await new Delivery(parts, asking).run()
  if (bug) throw bug
}

const standing = () => 0

/** Narrows the configuration and the model to one upstream with its first account, which then counts as enabled. */
function narrow({ config, upstream: name }: Rehearsal, model: Model): { config: Config; model: Model } {
  const route = model.routes.find(({ upstream }) => upstream === name) ?? model.routes[0]!
  const upstream = config.upstreams.get(route.upstream)!
  const accounts = upstream.accounts
    .slice(0, 1)
    .map(({ isolation: _, ...account }) => ({ ...account, isEnabled: true }))
  const upstreams = new Map(config.upstreams).set(upstream.name, { ...upstream, accounts })
  return { config: { ...config, upstreams }, model: { ...model, routes: [route] } }
}

/**
 * Returns the key for a rehearsal. The request gets an empty key. The real key is in `known`, so it is removed from an
 * answer that repeats it.
 */
function keyOf({ key }: UpstreamAccount): LiveKey {
  return { value: '', version: 0, known: [key.reveal()], doubt() {} }
}

type RehearsalStage = ReturnType<typeof openStage>

/** Makes stand-ins for client, upstream and ledger. They keep what they receive. The upstream answers immediately. */
function openStage(wire: ClientWire, answer: PlayedAnswer | undefined) {
  let status = 0
  let contentType = ''
  let isEnded = false
  const pieces: Buffer[] = []
  const upstream: Upstreams & { sent: SentRequest | undefined } = {
    sent: undefined,
    send(target, request, listener) {
      const { upstream: asked } = target
      const path = pathFor(target, request)
      let isAborted = false
      this.sent ??= { upstream: asked.name, path, headers: headersOf(target, request), body: request.body }
      if (answer === undefined) listener.onError({ cause: 'upstream_connect', isReuseRace: false })
      else {
        listener.onHead(answer.status, answer.contentType, new Map())
        void feed(answer.body, listener, () => isAborted)
      }
      return {
        abort() {
          isAborted = true
        },
        pause() {},
        resume() {},
        isSent: () => false,
        wasWritten: () => true,
      }
    },
    async retire() {},
    async close() {},
  }
  const call: DeliveryParts['call'] = {
    requestId,
    wire,
    isGone: false,
    listener: undefined,
    reply(code, type, body) {
      status = code
      contentType = type
      isEnded = true
      pieces.push(Buffer.from(body))
    },
    begin() {
      status = 200
      contentType = 'text/event-stream'
    },
    write(text, encoding) {
      pieces.push(Buffer.from(text, encoding))
      return true
    },
    end(text, encoding) {
      isEnded = true
      pieces.push(Buffer.from(text, encoding))
    },
    isTaking: () => true,
    destroy() {},
  }
  const ledger: DeliveryGateway['ledger'] & { debited: Debit | undefined } = {
    debited: undefined,
    async debit(debit) {
      this.debited = debit
      return 'posted'
    },
  }
  return {
    upstream,
    call,
    ledger,
    shown: () => ({ status, contentType, isCut: !isEnded, body: Buffer.concat(pieces) }),
  }
}

/** Feeds an answer to the listener in pieces, as a network would. Other work may run between two pieces. */
async function feed(body: Buffer, listener: UpstreamListener, isAborted: () => boolean): Promise<void> {
  for (let at = 0; at < body.length; at += pieceBytes) {
    if (at > 0) await new Promise((resolve) => setImmediate(resolve))
    if (isAborted()) return
    listener.onData(body.subarray(at, at + pieceBytes))
  }
  if (!isAborted()) listener.onEnd()
}

const pieceBytes = 65_536

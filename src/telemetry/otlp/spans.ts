import type { CallRecord, Try } from '../../gateway/record.ts'
import { newSpanId, newTraceId } from '../trace-context.ts'
import { chatOperation, finishWords, genAi, http, own } from './conventions.ts'
import { type Attribute, arrayOf, attribute } from './encode.ts'
import type { ServerNames } from './places.ts'

/** The most losses that are kept for one request. A limit is needed because a client can cause any number. */
const lossesMax = 20

export function keep(record: CallRecord) {
  const { losses } = record
  return {
    id: record.id,
    trace: record.trace,
    startedMs: record.startedMs,
    beganMs: record.beganMs,
    method: record.method.length <= 16 ? record.method : '',
    // The path is kept only if the gateway serves it.
    path: record.walk === undefined ? '' : record.path,
    walk: record.walk,
    accountId: record.accountId,
    keyId: record.keyId,
    wire: record.wire,
    model: record.model,
    alias: record.alias,
    modelWire: record.modelWire,
    stream: record.stream,
    outputTokensCap: record.outputTokensCap,
    holdNanos: record.holdNanos,
    upstream: record.upstream,
    attempts: record.attempts,
    tries: record.tries,
    status: record.status,
    code: record.code,
    cause: record.cause,
    firstByteMs: record.firstByteMs,
    endMs: record.endMs,
    usage: record.usage,
    usageSource: record.usageSource,
    costNanos: record.costNanos,
    outcome: record.outcome,
    finishReason: record.finishReason,
    lost: losses?.slice(0, lossesMax).map(({ field }) => field.slice(0, 64)),
  }
}

/** The facts of a request that are kept until its span is sent. A client cannot influence their size. */
export type SpanSource = ReturnType<typeof keep>

/** A span in OTLP's JSON: ids in hex, times in ns as text. */
type Span = {
  traceId: string
  spanId: string
  parentSpanId?: string
  flags?: number
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: Attribute[]
  status?: { code: number }
}

const serverKind = 2
const clientKind = 3
const errorStatus = { code: 2 }

const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'])

/**
 * Makes the spans of one request. The outer span is the client's request. It contains the model operation, which
 * contains each attempt. Spans contain no content, no headers and no conversation ids (ruling U5).
 */
export function spansOf(record: SpanSource, places: ServerNames): Span[] {
  const { trace, tries = [], beganMs = 0 } = record
  const traceId = trace?.id ?? newTraceId()
  const wallMs = (clockMs: number) => record.startedMs + (clockMs - beganMs)
  const endMs = wallMs(beganMs + (record.endMs ?? 0))
  const server: Span = {
    traceId,
    spanId: newSpanId(),
    ...(trace?.parentId !== undefined && { parentSpanId: trace.parentId }),
    name: serverName(record),
    kind: serverKind,
    startTimeUnixNano: nanos(record.startedMs),
    endTimeUnixNano: nanos(endMs),
    attributes: serverAttributes(record),
    ...(serverFailureOf(record) !== undefined && { status: errorStatus }),
  }
  const [first] = tries
  if (first === undefined) return [server]
  const failure = failureOf(record)
  const chat: Span = {
    traceId,
    spanId: newSpanId(),
    parentSpanId: server.spanId,
    name: `${chatOperation} ${record.alias ?? record.model}`,
    kind: clientKind,
    startTimeUnixNano: nanos(wallMs(first.startedMs)),
    endTimeUnixNano: nanos(endMs),
    attributes: chatAttributes(record, places, failure, first),
    ...(failure !== undefined && { status: errorStatus }),
  }
  return [server, chat, ...tries.map((tried, index) => attemptSpan(tried, index, { chat, endMs, wallMs, places }))]
}

type Around = { chat: Span; endMs: number; wallMs: (clockMs: number) => number; places: ServerNames }

function attemptSpan(tried: Try, index: number, { chat, endMs, wallMs, places }: Around): Span {
  const { cause, status } = tried
  const place = places.upstream(tried.upstream)
  return {
    traceId: chat.traceId,
    // The upstream may have received this span id in the trace header.
    spanId: tried.spanId ?? newSpanId(),
    parentSpanId: chat.spanId,
    name: 'POST',
    kind: clientKind,
    startTimeUnixNano: nanos(wallMs(tried.startedMs)),
    endTimeUnixNano: nanos(tried.endMs === undefined ? endMs : wallMs(tried.endMs)),
    attributes: attributes([
      [http.method, 'POST'],
      [http.serverAddress, place?.address],
      [http.serverPort, place?.port],
      [http.status, status],
      [http.errorType, cause],
      [http.resendCount, index > 0 ? index : undefined],
      [own.upstream, tried.upstream],
      [own.upstreamAccount, tried.account],
    ]),
    ...(cause !== undefined && { status: errorStatus }),
  }
}

function serverName({ method, walk, path }: SpanSource): string {
  const known = knownMethods.has(method) ? method : 'HTTP'
  return walk === undefined ? known : `${known} ${path}`
}

function serverAttributes(record: SpanSource): Attribute[] {
  const { method, walk, path, status } = record
  return attributes([
    [http.method, knownMethods.has(method) ? method : http.otherMethod],
    // A path that the gateway does not serve is a text of the client, so it is left out.
    [http.route, walk === undefined ? undefined : path],
    [http.path, walk === undefined ? undefined : path],
    [http.status, status],
    [http.errorType, serverFailureOf(record)],
    [own.requestId, record.id],
    [own.accountId, record.accountId],
    [own.keyId, record.keyId],
    [own.clientWire, record.wire],
    [own.outcome, record.outcome ?? 'ok'],
  ])
}

function chatAttributes(record: SpanSource, places: ServerNames, failure: string | undefined, first: Try): Attribute[] {
  const { usage, upstream = '', model = '' } = record
  const place = places.upstream(upstream)
  const isStreamed = record.stream && record.firstByteMs !== undefined && record.status === 200
  const beforeMs = first.startedMs - (record.beganMs ?? first.startedMs)
  return attributes([
    [genAi.operation, chatOperation],
    [genAi.provider, place?.provider],
    [genAi.requestModel, record.alias ?? model],
    [genAi.requestStream, record.stream],
    [genAi.requestMaxTokens, record.outputTokensCap],
    [genAi.responseModel, places.modelName(model, upstream)],
    [genAi.finishReasons, record.finishReason && arrayOf([finishWords[record.finishReason]])],
    [genAi.timeToFirstChunk, isStreamed ? (record.firstByteMs! - beforeMs) / 1_000 : undefined],
    // The convention counts cached tokens as input. Our three counters do not overlap, so they are added up.
    [genAi.inputTokens, usage && usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens],
    [genAi.cacheReadTokens, usage?.cacheReadTokens],
    [genAi.cacheWriteTokens, usage?.cacheWriteTokens],
    [genAi.outputTokens, usage?.outputTokens],
    [genAi.reasoningTokens, usage?.reasoningTokens],
    [http.serverAddress, place?.address],
    [http.serverPort, place?.port],
    [http.errorType, failure],
    [own.requestId, record.id],
    [own.modelWire, record.modelWire],
    [own.upstream, upstream],
    [own.attempts, record.attempts],
    [own.outcome, record.outcome ?? 'ok'],
    [own.cost, record.costNanos === undefined ? undefined : Number(record.costNanos) / 1e9],
    [own.hold, record.holdNanos === undefined ? undefined : Number(record.holdNanos) / 1e9],
    [own.usageSource, record.usageSource],
    [own.losses, record.lost && arrayOf(record.lost)],
  ])
}

/**
 * Returns the failure of the server. A client's mistake does not count. An answer that broke off counts, whatever its
 * status.
 */
function serverFailureOf(record: SpanSource): string | undefined {
  const { status } = record
  return status !== undefined && status >= 400 && status < 500 ? undefined : failureOf(record)
}

/** Returns the failure of the model operation. A client that disconnects does not make the operation fail. */
export function failureOf({ outcome = 'ok', cause, code }: Pick<CallRecord, 'outcome' | 'cause' | 'code'>) {
  if (outcome === 'ok' || outcome.startsWith('client_')) return undefined
  return cause ?? code ?? outcome
}

type Given = readonly (readonly [key: string, value: Parameters<typeof attribute>[1] | undefined])[]

function attributes(given: Given): Attribute[] {
  return given.flatMap(([key, value]) => (value === undefined ? [] : [attribute(key, value)]))
}

/** Converts ms to ns as text, rounded to whole µs because further digits are not exact. */
export function nanos(unixMs: number): string {
  return `${Math.round(unixMs * 1_000)}000`
}

import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config, OtlpTarget } from '../../config/config.ts'
import type { CallRecord, Tracing, Try } from '../../gateway/record.ts'
import { families } from '../families.ts'
import { Counter, type Family, type Sample } from '../instruments.ts'
import { newSpanId, newTraceId, readTraceparent, writeTraceparent } from '../trace-context.ts'
import { chatOperation, genAi, genAiMetrics, http, resource, schemaUrl, unknownModality } from './conventions.ts'
import { type Attribute, type AttributesOf, attribute, encodeFamily, plainAttributes } from './encode.ts'
import { ship } from './export.ts'
import { createGenAiFigures } from './gen-ai-figures.ts'
import { createPlaces, type ServerNames } from './places.ts'
import { keep, nanos, type SpanSource, spansOf } from './spans.ts'

/** The most requests in one message, and the most that are encoded in one turn of the event loop (at most 0.25 ms). */
const messageMax = 256
const turnMax = 16

/** How long `close` waits for the last message, in ms. */
const closeMs = 2_000

/** The shortest time between two log lines about lost messages, in ms. */
const tellEveryMs = 60_000

type OtlpParts = {
  settings: Config['telemetry']
  version: string
  /** Returns further families of metrics to send, besides the figures of the GenAI conventions. */
  others: () => readonly Family[]
  /** Returns the configuration in force. */
  config: () => Config
  log: (event: string, fields: Record<string, unknown>) => void
}

export type Otlp = {
  note(record: CallRecord): void
  /** Undefined if only metrics are sent. */
  tracing: Tracing | undefined
  /** Metrics of exported and lost messages. */
  families: readonly Family[]
  /** Sends the waiting messages. Takes a limited time. */
  close(): Promise<void>
}

/**
 * Sends spans and metrics to a collector (OTLP over HTTP, JSON). While a request runs, only its ids and its
 * `traceparent` are made. When the request ends, its record is queued. Encoding and sending happen in later turns of
 * the event loop. Failures there are counted and logged.
 */
export function startOtlp({ settings, version, others, config, log }: OtlpParts): Otlp {
  const { traces, metrics, sampleShare, propagate } = settings
  const exported = new Counter(families.telemetryExported)
  const dropped = new Counter(families.telemetryDropped)
  // An alert on the growth of a count misses the first case if the count does not begin with 0.
  for (const signal of ['traces', 'metrics'] as const) if (settings[signal]) dropped.add(0, signal)
  const places = createPlaces(config)
  const figures = createGenAiFigures(settings.genai === 'compat')
  const described = JSON.stringify({ attributes: describeProcess(settings, version) })
  const scope = JSON.stringify({ name: 'triwire', version })
  const startNanos = nanos(Date.now())
  const attributesOf = genAiAttributes(places)
  const ending = new AbortController()
  const over = new AbortController()
  let toldMs = Number.NEGATIVE_INFINITY
  const queue = new SpanQueue<SpanSource>(
    settings.queueMax,
    () => setImmediate(spansNow),
    (count) => lose('traces', count, 'the queue is full'),
  )
  const spansNow = oneAtATime(sendSpans)
  const metricsNow = oneAtATime(sendMetrics)
  const timers = [
    ...(traces ? [setInterval(spansNow, settings.spansEveryMs)] : []),
    ...(metrics ? [setInterval(metricsNow, settings.metricsEveryMs)] : []),
  ]
  for (const timer of timers) timer.unref()
  return {
    note(record) {
      if (metrics) figures.note(record)
      if (traces && isSampled(record)) queue.push(keep(record))
    },
    tracing: traces && { begin, enter },
    families: [exported, dropped],
    async close() {
      for (const timer of timers) clearInterval(timer)
      ending.abort()
      await Promise.race([Promise.all([spansNow(), metricsNow()]), sleep(closeMs, undefined, { ref: false })])
      const left = queue.take(Number.POSITIVE_INFINITY).length
      if (left > 0) lose('traces', left, 'the server has ended')
      over.abort()
    },
  }

  function begin(traceparent: string | string[] | undefined) {
    const parent = traceparent === undefined ? undefined : readTraceparent(traceparent)
    if (parent) return { id: parent.traceId, parentId: parent.spanId, isSampled: parent.isSampled }
    if (!propagate && sampleShare === 1) return undefined
    return { id: newTraceId(), parentId: undefined, isSampled: Math.random() < sampleShare }
  }

  function enter({ trace }: CallRecord, tried: Try): string | undefined {
    if (!propagate || trace === undefined) return undefined
    tried.spanId = newSpanId()
    return writeTraceparent({ traceId: trace.id, spanId: tried.spanId, isSampled: trace.isSampled })
  }

  /** Whether a request is exported. A request whose trace header says "not sampled" is left out. */
  function isSampled({ trace }: CallRecord): boolean {
    return trace === undefined || trace.isSampled
  }

  async function sendSpans(): Promise<void> {
    while (traces && queue.size > 0) {
      const kept = queue.take(messageMax)
      const spans = await encodeInTurns(kept, turnMax, (record) => spansOf(record, places))
      const scoped = `{"scope":${scope},"spans":[${spans.join()}],"schemaUrl":"${schemaUrl}"}`
      const body = `{"resourceSpans":[{"resource":${described},"scopeSpans":[${scoped}],"schemaUrl":"${schemaUrl}"}]}`
      await deliver('traces', traces, body, kept.length)
    }
  }

  async function sendMetrics(): Promise<void> {
    if (!metrics) return
    const isLast = ending.signal.aborted
    const times = { startNanos, nowNanos: nanos(Date.now()) }
    const own = await encodeInTurns(figures.families, 1, (family) => encodeFamily(family, times, attributesOf))
    const rest = await encodeInTurns(others(), 1, (family) => encodeFamily(family, times, plainAttributes))
    const all = [...own, ...rest]
    const scoped = `{"scope":${scope},"metrics":[${all.join()}],"schemaUrl":"${schemaUrl}"}`
    const body = `{"resourceMetrics":[{"resource":${described},"scopeMetrics":[${scoped}],"schemaUrl":"${schemaUrl}"}]}`
    await deliver('metrics', metrics, body, all.length)
    // The server began to end meanwhile, so the last figures are not sent yet.
    if (!isLast && ending.signal.aborted && !over.signal.aborted) await sendMetrics()
  }

  async function deliver(signal: 'traces' | 'metrics', target: OtlpTarget, body: string, count: number): Promise<void> {
    const isHurried = () => ending.signal.aborted
    // The wait does not keep the process alive. It ends at once when the process ends.
    const wait = (ms: number) => sleep(ms, undefined, { ref: false, signal: ending.signal }).catch(() => {})
    const failure = await ship({ target, body, wait, isHurried, aborted: over.signal })
    if (failure === undefined) exported.add(count, signal)
    else lose(signal, count, failure)
  }

  function lose(signal: string, count: number, why: string): void {
    dropped.add(count, signal)
    const nowMs = performance.now()
    if (nowMs - toldMs < tellEveryMs) return
    toldMs = nowMs
    log('telemetry_lost', { signal, lost: count, why })
  }

  /** Wraps a function so that its calls never overlap. If a bug makes it throw, only the current message is lost. */
  function oneAtATime(act: () => Promise<void>): () => Promise<void> {
    let running: Promise<void> | undefined
    return () => {
      running ??= act()
        .catch((bug: Error) => log('bug', { error: bug.stack }))
        .finally(() => {
          running = undefined
        })
      return running
    }
  }
}

/**
 * Encodes a few items in each turn of the event loop, so that other work can run in between. @returns each item as JSON
 */
async function encodeInTurns<Item>(
  items: readonly Item[],
  each: number,
  encode: (item: Item) => readonly object[],
): Promise<string[]> {
  const texts: string[] = []
  for (const [index, item] of items.entries()) {
    if (index > 0 && index % each === 0) await new Promise((resolve) => setImmediate(resolve))
    for (const one of encode(item)) texts.push(JSON.stringify(one))
  }
  return texts
}

function describeProcess({ resource: said }: Config['telemetry'], version: string): Attribute[] {
  const described = new Map<string, string | number>([
    [resource.serviceName, 'triwire'],
    [resource.serviceVersion, version],
    [resource.instance, randomUUID()],
    [resource.host, hostname()],
    [resource.pid, process.pid],
    ...said,
  ])
  return Array.from(described, ([key, value]) => attribute(key, value))
}

const tokenCounters: ReadonlySet<string> = new Set(
  [
    genAiMetrics.input,
    genAiMetrics.cacheRead,
    genAiMetrics.cacheWrite,
    genAiMetrics.output,
    genAiMetrics.reasoning,
  ].map(({ name }) => name),
)

/** Returns a function that makes a sample's attributes. The sample's third label, if any, is an error or token type. */
function genAiAttributes(places: ServerNames): AttributesOf {
  return ({ facts: { name, labels } }: Family, { values }: Sample) => {
    const [model = '', upstream = '', third = ''] = values
    const place = places.upstream(upstream)
    const served = places.modelName(model, upstream)
    return [
      attribute(genAi.operation, chatOperation),
      attribute(genAi.provider, place?.provider ?? upstream),
      attribute(genAi.requestModel, model),
      ...(served === undefined ? [] : [attribute(genAi.responseModel, served)]),
      ...(place ? [attribute(http.serverAddress, place.address), attribute(http.serverPort, place.port)] : []),
      ...(labels.includes('error') && third !== '' ? [attribute(http.errorType, third)] : []),
      ...(labels.includes('tokenType') ? [attribute(genAi.tokenType, third)] : []),
      ...(tokenCounters.has(name) ? [attribute(genAi.modality, unknownModality)] : []),
    ]
  }
}

/** If this many requests wait, they are sent at once, without waiting for the interval. */
const enough = 512

/** Requests that wait to be exported. If the queue is full, further requests are dropped and counted. */
export class SpanQueue<Item> {
  readonly #max: number
  readonly #hurry: () => void
  readonly #drop: (count: number) => void
  #items: Item[] = []

  /** @param hurry called when many requests wait. @param drop called with the number of dropped requests */
  constructor(max: number, hurry: () => void, drop: (count: number) => void) {
    this.#max = max
    this.#hurry = hurry
    this.#drop = drop
  }

  get size(): number {
    return this.#items.length
  }

  push(item: Item): void {
    if (this.#items.length >= this.#max) {
      this.#drop(1)
      return
    }
    this.#items.push(item)
    if (this.#items.length === Math.min(enough, this.#max)) this.#hurry()
  }

  /** Removes and returns the oldest items, at most `most`. */
  take(most: number): Item[] {
    return this.#items.splice(0, most)
  }
}

import { randomBytes } from 'node:crypto'
import { asObject } from '../../bytes/json.ts'
import { createSseReader } from '../../bytes/sse.ts'
import { type WireName, wireNames } from '../../catalog/model.ts'
import { cureFor } from './cures.ts'
import { type Dialect, dialects, type Json, type Question, type Reply } from './dialects.ts'
import { type Seen, send } from './send.ts'
import { findDisorder } from './stream-order.ts'

/** @param origin of a gateway, without a path. */
export type Target = { origin: string; key: string; timeoutMs: number }

export type Finding = {
  /** Null for what holds for every model. */
  model: string | null
  wire: WireName | null
  probe: string
  /** `none`: not wrong, but not shown either, such as reasoning by a model that has none. */
  result: 'ok' | 'none' | 'failed'
  /** In ms, of the probe's last request; null when no answer came. */
  firstByteMs: number | null
  totalMs: number | null
  /** Of all its requests, in and out. */
  tokens: number
  note: string
}

/** One row of the table: what is asked, and what must hold of the answer. */
export type Probe = {
  model: string | null
  wire: WireName | null
  name: string
  /** @throws Error that says what a client would stumble over. */
  run(asker: Asker): Promise<Verdict>
}

/** The gateway refuses the key itself: nothing else can be found out. */
export class KeyRefused extends Error {}

type Verdict = { result: 'ok' | 'none'; note: string }

/** What a probe does with the gateway. */
type Asker = {
  /** @throws Error for anything but a whole answer that counts its tokens. */
  ask(question: Partial<Question>): Promise<Reply>
  request(path: string, headers: Record<string, string>, body?: string): Promise<Seen>
  /** What a client of the wire sends with its key. */
  keyHeaders(key?: string): Record<string, string>
}

/** Enough for the upstreams that cache prefixes from 1,024 tokens on, in any tokenizer. */
const longText = 'The lighthouse keeper wrote down the weather, the ships and the tides of the day. '.repeat(100)

const noSuchKey = 'sk-triwire-doctor-no-such-key'
const noSuchModel = 'triwire-doctor-no-such-model'
const noteLengthMax = 240

/** All that is asked about the models: the gateway's own answers, each model on each wire, then the refusals of each wire. */
export function planProbes(models: readonly string[]): Probe[] {
  return [
    { model: null, wire: null, name: 'models', run: probeList },
    ...models.map((model): Probe => ({ model, wire: 'messages', name: 'count tokens', run: probeCount(model) })),
    ...models.flatMap((model) =>
      wireNames.flatMap((wire) =>
        Object.entries(modelProbes).map(
          ([name, run]): Probe => ({ model, wire, name, run: ({ ask }) => run(withModel(ask, model)) }),
        ),
      ),
    ),
    ...wireNames.flatMap((wire) =>
      Object.entries(refusalProbes).map(([name, refusal]): Probe => {
        return {
          model: null,
          wire,
          name,
          run: (asker) => probeRefusal(dialects[wire], refusal, models[0] ?? noSuchModel, asker),
        }
      }),
    ),
  ]
}

type Ask = Asker['ask']

/** Asked of each model on each wire. */
const modelProbes: Readonly<Record<string, (ask: Ask) => Promise<Verdict>>> = {
  text: async (ask) => isText(await ask({})),
  stream: async (ask) => isText(await ask({ stream: true })),
  'tool call': async (ask) => {
    const question = { stream: true, text: 'Report that all is well.' }
    const called = await ask({ ...question, isCall: true })
    const [call] = called.calls
    if (call === undefined) throw new Error('the tool was not called')
    if (!objectOf(call.arguments)) throw new Error(`the arguments are not a JSON object: ${call.arguments}`)
    const after = await ask({ ...question, called })
    if (after.text === '' && after.calls.length === 0) throw new Error('nothing came after the result of the call')
    return ok(call.arguments)
  },
  reasoning: async (ask) => {
    const { reasoning } = await ask({ stream: true, isReasoning: true, text: 'Is 91 a prime number? One word.' })
    return reasoning ? ok(`${reasoning.length} characters`) : none('this model shows none here')
  },
  'cache hit': async (ask) => {
    // A fresh text: what an earlier run has left in a cache proves nothing about this one.
    const key = `doctor-${randomBytes(6).toString('hex')}`
    const cached = { text: `${key}. ${longText}`, key }
    await ask({ cached })
    const { cachedTokens, inputTokens } = await ask({ cached })
    if (cachedTokens === undefined) throw new Error('the count of cached tokens is missing')
    return cachedTokens > 0
      ? ok(`${cachedTokens} of ${inputTokens} tokens read from cache`)
      : none('this model read nothing from cache')
  },
}

type Refusal = { status: number; change: Partial<Question>; key?: string; isBroken?: boolean }

/** Asked once of each wire; the body of the answer is the dialect's to judge. The wrong keys come last: they are throttled. */
const refusalProbes: Readonly<Record<string, Refusal>> = {
  'unknown model': { status: 404, change: { model: noSuchModel } },
  'malformed body': { status: 400, change: {}, isBroken: true },
  'wrong key': { status: 401, change: {}, key: noSuchKey },
}

/** Asks, and judges what came back. @throws KeyRefused */
export async function runProbe({ model, wire, name, run }: Probe, target: Target): Promise<Finding> {
  let last: Seen | undefined
  let tokens = 0
  const dialect = dialects[wire ?? 'chat']
  const keyHeaders = (key = target.key) => dialect.keyHeaders(key)
  const request: Asker['request'] = async (path, headers, body) => {
    last = undefined
    const { origin, timeoutMs } = target
    last = await send({ url: origin + path, headers, timeoutMs, ...(body === undefined ? {} : { body }) })
    return last
  }
  const ask: Ask = async (change) => {
    const question = { model: '', text: 'Say hello in one short sentence.', stream: false, ...change }
    const headers = { ...keyHeaders(), ...dialect.cacheHeaders(question) }
    const seen = await request(dialect.path, headers, JSON.stringify(dialect.body(question)))
    const reply = readAnswer(wire ?? 'chat', question.stream, seen)
    tokens += (reply.inputTokens ?? 0) + (reply.outputTokens ?? 0)
    if (reply.inputTokens === undefined || !reply.outputTokens) throw new Error('the answer does not count its tokens')
    return reply
  }
  const finish = (result: Finding['result'], note: string): Finding => {
    const { firstByteMs = null, totalMs = null } = last ?? {}
    return { model, wire, probe: name, result, firstByteMs, totalMs, tokens, note: tidy(note, target.key) }
  }
  try {
    const { result, note } = await run({ ask, request, keyHeaders })
    return finish(result, note)
  } catch (error) {
    const { message } = error as Error
    if (error instanceof KeyRefused) throw new KeyRefused(tidy(message, target.key))
    return finish('failed', message)
  }
}

async function probeList({ request }: Asker): Promise<Verdict> {
  const seen = await request('/v1/models', {})
  const body = bodyOf(seen)
  const rows = Array.isArray(body['data']) ? body['data'].map(asObject) : []
  if (body['object'] !== 'list' || rows.length === 0) throw new Error('it is not a list of models')
  const fields = ['created', 'id', 'object', 'owned_by']
  const odd = rows.findIndex(
    (row) =>
      Object.keys(row ?? {})
        .sort()
        .join() !== fields.join(),
  )
  if (odd >= 0) throw new Error(`entry ${odd} has not exactly the fields ${fields.join(', ')}`)
  needRequestId(seen)
  return ok(`models: ${rows.length}`)
}

function probeCount(model: string): Probe['run'] {
  return async ({ request, keyHeaders }) => {
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'How many tokens are these?' }] })
    const count = bodyOf(await request('/v1/messages/count_tokens', keyHeaders(), body))['input_tokens']
    if (!Number.isInteger(count) || (count as number) <= 0) throw new Error('input_tokens is not a positive integer')
    return ok(`${count} tokens`)
  }
}

async function probeRefusal(dialect: Dialect, refusal: Refusal, model: string, asker: Asker): Promise<Verdict> {
  const question = { model, text: 'Hello.', stream: false, ...refusal.change }
  const whole = JSON.stringify(dialect.body(question))
  const sent = refusal.isBroken ? whole.slice(0, -1) : whole
  const seen = await asker.request(dialect.path, asker.keyHeaders(refusal.key), sent)
  const { status, headers, text } = seen
  const body = objectOf(text)
  if (refusal.key && status === 429) return none('too many failed authentications from here: ask again in a minute')
  if (!refusal.key) needKey(seen)
  if (status !== refusal.status) throw new Error(`status ${status} and not ${refusal.status}: ${messageOf(text)}`)
  const mistake = body ? dialect.findMistake(body, status, headers.get('x-request-id')) : 'it is not JSON'
  if (mistake) throw new Error(`the error has not the shape of the wire: ${mistake}`)
  needRequestId(seen)
  return ok(messageOf(text))
}

function withModel(ask: Ask, model: string): Ask {
  return (question) => ask({ model, ...question })
}

function readAnswer(wire: WireName, isStream: boolean, seen: Seen): Reply {
  if (seen.status !== 200 || !isStream) return dialects[wire].read(bodyOf(seen))
  const type = seen.headers.get('content-type')
  if (!type?.startsWith('text/event-stream')) throw new Error(`a stream was asked for, and the answer is ${type}`)
  const reader = createSseReader()
  const read = [...reader.push(new TextEncoder().encode(seen.text)), ...reader.end()]
  const frames = read.filter(({ data }) => data !== '')
  const disorder = findDisorder[wire](frames.map(({ data }) => data))
  if (disorder) throw new Error(`the stream is out of order: ${disorder}`)
  const whole = dialects[wire].collect(frames)
  if (whole) return dialects[wire].read(whole)
  const failures = frames.map(({ data }) => failureOf(objectOf(data))).filter((failure) => failure !== undefined)
  throw new Error(['the stream ended without its terminator', ...failures].join(': '))
}

/** @throws Error unless the status is 200 and the body an object. */
function bodyOf(seen: Seen): Json {
  const { status, headers, text } = seen
  needKey(seen)
  if (status !== 200) {
    const requestId = headers.get('x-request-id')
    const message = messageOf(text).slice(0, 160).replace(/\.$/, '')
    throw new Error(`status ${status}: ${message}; ${cureFor(status, requestId)}`)
  }
  const body = objectOf(text)
  if (!body) throw new Error('the answer is not a JSON object: is this base URL a gateway?')
  return body
}

function needKey({ status, text }: Seen): void {
  if (status !== 401) return
  throw new KeyRefused(
    `the gateway refuses the key: ${messageOf(text).slice(0, 160)} Check --key or TRIWIRE_KEY; triwire key create makes a key`,
  )
}

function needRequestId({ headers }: Seen): void {
  if (!headers.get('x-request-id')) throw new Error('the answer has no x-request-id')
}

function isText({ text, inputTokens, outputTokens }: Reply): Verdict {
  if (text === '') throw new Error(`the answer has no text, but ${outputTokens} tokens`)
  return ok(`${inputTokens} tokens in, ${outputTokens} out`)
}

/** The message of a failure, of a whole body or of an event in a stream. */
function failureOf(body: Json | undefined): string | undefined {
  const error = asObject(body?.['error']) ?? asObject(asObject(body?.['response'])?.['error'])
  return typeof error?.['message'] === 'string' ? error['message'] : undefined
}

function messageOf(text: string): string {
  return failureOf(objectOf(text)) ?? text
}

function objectOf(text: string): Json | undefined {
  try {
    return asObject(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** One line for a terminal, without the key: a server may echo it, and anything else. */
function tidy(note: string, key: string): string {
  const line = note
    .replaceAll(key, '…')
    .replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .trim()
  return line.length > noteLengthMax ? `${line.slice(0, noteLengthMax)}…` : line
}

const ok = (note: string): Verdict => ({ result: 'ok', note })
const none = (note: string): Verdict => ({ result: 'none', note })

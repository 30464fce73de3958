import { randomBytes } from 'node:crypto'
import type { WireName } from '../catalog/model.ts'
import { asObject } from '../json.ts'
import { createSseReader, type SseFrame } from '../sse.ts'
import { type Dialect, dialects, type Json, type Question, type Reply } from './dialects.ts'

/** @param origin of a gateway, without a path. */
export type Target = { origin: string; key: string; model: string }

/** `note`: not wrong, but worth knowing, such as a model that shows no reasoning. */
export type Finding = {
  wire: WireName
  probe: string
  result: 'ok' | 'note' | 'failed'
  /** Until the first byte of the body, and until the last, in ms. */
  firstByteMs: number
  totalMs: number
  detail: string
}

type Verdict = { result: 'ok' | 'note'; detail: string }
type Seen = { status: number; headers: Headers; text: string; firstByteMs: number; totalMs: number }

const timeoutMs = 120_000

/** Enough for the upstreams that cache prefixes from 1,024 tokens on, in any tokenizer. */
const longText = 'The lighthouse keeper wrote down the weather, the ships and the tides of the day. '.repeat(150)

const hello = 'Say hello in one short sentence.'

/** Asks as a client would, one wire after the other. Costs a few thousand tokens per wire. */
export async function* probe(target: Target): AsyncGenerator<Finding> {
  for (const wire of ['messages', 'chat', 'responses'] as const) {
    const dialect = dialects[wire]
    const ask = (question: Partial<Question>) => send(target, dialect, { ...plain(target), ...question })
    const probes: Record<string, () => Promise<[Seen, Verdict]>> = {
      text: async () => {
        const seen = await ask({})
        return [seen, isText(readAnswer(dialect, seen))]
      },
      stream: async () => {
        const seen = await ask({ stream: true })
        return [seen, isText(readAnswer(dialect, seen))]
      },
      'tool call': async () => {
        const seen = await ask({ stream: true, isCall: true, text: 'Report that all is well.' })
        return [seen, isCall(readAnswer(dialect, seen))]
      },
      reasoning: async () => {
        const seen = await ask({ stream: true, isReasoning: true, text: 'Is 91 a prime number? One word.' })
        const { reasoning } = readAnswer(dialect, seen)
        return [seen, reasoning ? ok(`${reasoning.length} characters`) : note('this model shows none here')]
      },
      'cache hit': async () => {
        // A fresh text: what an earlier run has left in a cache proves nothing about this one.
        const key = `doctor-${randomBytes(6).toString('hex')}`
        const cached = { text: `${key}. ${longText}`, key }
        readAnswer(dialect, await ask({ cached }))
        const seen = await ask({ cached })
        const { cachedTokens } = readAnswer(dialect, seen)
        if (cachedTokens === undefined) throw new Error('the count of cached tokens is missing')
        return [seen, cachedTokens > 0 ? ok(`${cachedTokens} tokens`) : note('this model read nothing from cache')]
      },
      'unknown model': async () => {
        const seen = await ask({ model: 'triwire-doctor-no-such-model' })
        return [seen, isRefusal(dialect, seen, 404)]
      },
      'wrong key': async () => {
        const seen = await send({ ...target, key: 'sk-triwire-doctor-no-such-key' }, dialect, plain(target))
        return [seen, isRefusal(dialect, seen, 401)]
      },
    }
    for (const [name, run] of Object.entries(probes)) yield await judge(wire, name, run)
  }
}

function plain({ model }: Target): Question {
  return { model, text: hello, stream: false }
}

async function judge(wire: WireName, name: string, run: () => Promise<[Seen, Verdict]>): Promise<Finding> {
  const started = performance.now()
  try {
    const [{ firstByteMs, totalMs }, verdict] = await run()
    return { wire, probe: name, ...verdict, firstByteMs, totalMs }
  } catch (error) {
    const totalMs = Math.round(performance.now() - started)
    return { wire, probe: name, result: 'failed', firstByteMs: totalMs, totalMs, detail: explain(error) }
  }
}

async function send({ origin, key }: Target, dialect: Dialect, question: Question): Promise<Seen> {
  const started = performance.now()
  const response = await fetch(origin + dialect.path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...dialect.headers(question) },
    body: JSON.stringify(dialect.body(question)),
    signal: AbortSignal.timeout(timeoutMs),
  })
  let [text, firstByteMs] = ['', 0]
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    if (firstByteMs === 0) firstByteMs = Math.round(performance.now() - started)
    text += decoder.decode(chunk, { stream: true })
  }
  const { status, headers } = response
  return { status, headers, text, firstByteMs, totalMs: Math.round(performance.now() - started) }
}

/** @throws Error that says what a client would stumble over. */
function readAnswer(dialect: Dialect, { status, headers, text }: Seen): Reply {
  if (status !== 200) throw new Error(`status ${status}: ${messageOf(text)}`)
  const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true
  const whole = isStream ? dialect.collect(framesOf(text)) : objectOf(text)
  if (!whole) throw new Error(isStream ? 'the stream ended without its terminator' : 'the answer is not a JSON object')
  const reply = dialect.read(whole)
  const { inputTokens, outputTokens } = reply
  if (inputTokens === undefined || !outputTokens) throw new Error('the answer does not count its tokens')
  return reply
}

function isText({ text, inputTokens, outputTokens }: Reply): Verdict {
  if (text === '') throw new Error('the answer has no text')
  return ok(`${inputTokens} tokens in, ${outputTokens} out`)
}

function isCall({ calls }: Reply): Verdict {
  const [call] = calls
  if (call === undefined) throw new Error('the tool was not called')
  if (!objectOf(call)) throw new Error(`the arguments are not a JSON object: ${call.slice(0, 80)}`)
  return ok(call.slice(0, 80))
}

function isRefusal(dialect: Dialect, { status, headers, text }: Seen, expected: number): Verdict {
  if (status !== expected) throw new Error(`status ${status} and not ${expected}`)
  const body = objectOf(text)
  const mistake = body ? dialect.findMistake(body, status) : 'it is not JSON'
  if (mistake) throw new Error(`the error has not the shape of the wire: ${mistake}`)
  if (!headers.get('x-request-id')) throw new Error('the error has no x-request-id')
  return ok(messageOf(text))
}

function framesOf(text: string): SseFrame[] {
  const reader = createSseReader()
  return [...reader.push(new TextEncoder().encode(text)), ...reader.end()]
}

function messageOf(text: string): string {
  const message = asObject(objectOf(text)?.['error'])?.['message']
  return String(message ?? text).slice(0, 160)
}

function objectOf(text: string): Json | undefined {
  try {
    return asObject(JSON.parse(text))
  } catch {
    return undefined
  }
}

function explain(error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}

const ok = (detail: string): Verdict => ({ result: 'ok', detail })
const note = (detail: string): Verdict => ({ result: 'note', detail })

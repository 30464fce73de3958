import assert from 'node:assert/strict'
import { createSseReader, cutFrame } from '../../src/bytes/sse.ts'
import type { Profile } from '../../src/catalog/profile.ts'
import { resolveProfile } from '../../src/catalog/profiles.ts'
import type { AnswerEvent } from '../../src/inference/answer.ts'
import { composeFilters, type FilterOptions } from '../../src/inference/filters/index.ts'
import { createFold, type Folded } from '../../src/inference/fold.ts'
import { createMeter } from '../../src/inference/meter.ts'
import { type Usage, weighUsage } from '../../src/inference/usage.ts'
import * as chatAnswer from '../../src/wires/chat/answer.ts'
import * as chatStream from '../../src/wires/chat/stream.ts'
import * as messagesAnswer from '../../src/wires/messages/answer.ts'
import * as messagesStream from '../../src/wires/messages/stream.ts'
import * as responsesAnswer from '../../src/wires/responses/answer.ts'
import * as responsesStream from '../../src/wires/responses/stream.ts'
import type { AnswerHead } from '../../src/wires/wire.ts'
import { wires as spoken } from '../../src/wires/wires.ts'
import { checkAnswer } from '../schemas/check-answer.ts'
import { checkChatStream, checkMessagesStream, checkResponsesStream } from './grammar.ts'

export type WireName = 'messages' | 'chat' | 'responses'

export const wires = {
  messages: { ...messagesAnswer, ...messagesStream, check: checks('messages', checkMessagesStream) },
  chat: { ...chatAnswer, ...chatStream, check: checks('chat', checkChatStream) },
  responses: { ...responsesAnswer, ...responsesStream, check: checks('responses', checkResponsesStream) },
}

/** The order of a stream's events and what each of them holds. */
function checks(wire: WireName, checkOrder: (text: string) => string[]): (text: string) => string[] {
  return (text) => [...checkOrder(text), ...checkAnswer(wire, 'translated', 'text/event-stream', text)]
}

export type Options = Partial<Omit<FilterOptions, 'profile' | 'callIdPrefix'>> & {
  profile?: Partial<Profile>
  echo?: Record<string, unknown>
  seal?: AnswerHead['seal']
  inputTokensEstimate?: number
}

export type Told = {
  /** What the client is sent; the pump itself would have answered a failure without output by HTTP status. */
  text: string
  outcome: Folded
  /** The whole JSON answer for the same events; undefined after a failure. */
  json: string | undefined
  usage: Usage | undefined
  /** The upstream was hung up before it had ended. */
  isCancelled: boolean
  /** No visible event came before the failure: the client gets an HTTP error. */
  failedFirst: boolean
  /** Every event behind the filters. */
  events: AnswerEvent[]
}

/** How the upstream's bytes arrive, and how they end. */
export type Arrival = { cut?: 'whole' | 'bytes' | number[]; end?: 'clean' | 'reset' }

/** The gateway's pump in small: an upstream's text, through decoder, meter, filters and encoder. */
export function pump(
  client: WireName,
  upstream: WireName,
  script: string,
  options: Options = {},
  { cut = 'whole', end = 'clean' }: Arrival = {},
): Told {
  const profile = { ...resolveProfile(upstream), ...options.profile }
  const run = createRun(client, options, profile)
  const decoder = wires[upstream].createDecoder(profile)
  const reader = createSseReader()
  for (const chunk of chunksOf(script, cut)) {
    for (const frame of reader.push(chunk)) run.take(decoder.push(frame))
    if (run.isOver()) break
  }
  if (!run.isOver()) {
    for (const frame of reader.end()) run.take(decoder.push(frame))
    run.take(end === 'clean' ? decoder.end() : decoder.push(cutFrame))
  }
  return run.told()
}

/** The same for an upstream that answers with one JSON body. */
export function pumpJson(client: WireName, upstream: WireName, body: string, options: Options = {}): Told {
  const profile = { ...resolveProfile(upstream), ...options.profile }
  const run = createRun(client, options, profile)
  run.take(wires[upstream].decodeAnswer(body, profile))
  return run.told()
}

export function createRun(client: WireName, options: Options, profile: Profile) {
  const filters = composeFilters({
    profile,
    showsReasoning: options.showsReasoning ?? false,
    wantsSealed: options.seal !== undefined,
    stops: options.stops ?? [],
    localStops: options.localStops ?? [],
    names: options.names ?? new Map(),
    requestId: options.requestId ?? 'req_1',
    callIdPrefix: spoken[client].callIdPrefix,
  })
  const meter = createMeter()
  let weighed: Usage | undefined
  let weighings = 0
  const head: AnswerHead = {
    requestId: options.requestId ?? 'req_1',
    modelId: 'catalog/model',
    createdSeconds: 1_795_000_000,
    inputTokensEstimate: options.inputTokensEstimate ?? 11,
    echo: options.echo ?? {},
    weigh(report) {
      weighings++
      weighed = weighUsage({
        report,
        isComplete: meter.isComplete(),
        estimateInput: () => options.inputTokensEstimate ?? 11,
        estimateOutput: meter.estimateTokens,
        outputTokensCap: 4096,
      }).usage
      return weighed
    },
    ...(options.seal && { seal: options.seal }),
  }
  const encoder = wires[client].createEncoder(head)
  const folding = createFold()
  const events: AnswerEvent[] = []
  let text = ''
  let isOver = false
  let failedFirst = false
  return { take, push, told, isOver: () => isOver }

  function take(decoded: Iterable<AnswerEvent>): void {
    for (const event of decoded) {
      // A decoder's own signs of life stay here: what a client sees of silence is the pump's timer (ruling U4).
      if (event.type === 'alive') continue
      // Hung up: a local stop sequence has finished the answer (ruling T15).
      if (isOver) return
      meter.push(event)
      for (const filtered of filters.push(event)) push(filtered)
    }
  }

  function push(event: AnswerEvent): void {
    if (isOver) throw new Error(`${event.type} after the end`)
    if (event.type === 'fail' && text === '') failedFirst = true
    events.push(event)
    folding.push(event)
    for (const piece of encoder.push(event)) text += piece
    if (event.type === 'finish' || event.type === 'fail') {
      isOver = true
      if (weighings !== 1) throw new Error(`weighed ${weighings} times`)
    }
  }

  function told(): Told {
    const outcome = folding.outcome()
    const isWhole = outcome !== 'none' && 'answer' in outcome
    const json = isWhole ? wires[client].encodeAnswer(outcome.answer, { ...head, weigh: () => weighed! }) : undefined
    if (json !== undefined) assert.deepEqual(checkAnswer(client, 'translated', 'application/json', json), [], json)
    return {
      text,
      outcome,
      json,
      usage: weighed,
      isCancelled: isOver && isWhole && !meter.isComplete(),
      failedFirst,
      events,
    }
  }
}

function chunksOf(script: string, cut: NonNullable<Arrival['cut']>): Uint8Array[] {
  const bytes = Buffer.from(script)
  if (cut === 'whole') return [bytes]
  if (cut === 'bytes') return [...bytes].map((byte) => Uint8Array.of(byte))
  const chunks: Uint8Array[] = []
  let at = 0
  for (const size of cut) {
    chunks.push(bytes.subarray(at, at + size))
    at += size
  }
  chunks.push(bytes.subarray(at))
  return chunks
}

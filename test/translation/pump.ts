import assert from 'node:assert/strict'
import type { Profile } from '../../src/catalog/profile.ts'
import { resolveProfile } from '../../src/catalog/profiles.ts'
import { type AnswerPlan, TranslatedStream, TranslatedWhole } from '../../src/gateway/translated-answer.ts'
import type { Answer, AnswerEvent, BilledEvent, Fault } from '../../src/inference/answer.ts'
import type { FilterOptions } from '../../src/inference/filters/index.ts'
import { createFold } from '../../src/inference/fold.ts'
import { type Usage, weighUsage } from '../../src/inference/usage.ts'
import { refusalOf } from '../../src/upstream/refusal.ts'
import { judge } from '../../src/upstream/verdict.ts'
import type { ErrorFacts } from '../../src/wires/answers/faults.ts'
import { echoOf } from '../../src/wires/responses/echo.ts'
import type { AnswerHead, ClientHalf, ModelHalf } from '../../src/wires/wire.ts'
import { wires as spoken } from '../../src/wires/wires.ts'
import { checkAnswer } from '../schemas/check-answer.ts'
import { checkChatStream, checkMessagesStream, checkResponsesStream } from './grammar.ts'

/*
 * An upstream's bytes through the gateway's own `TranslatedStream` and `TranslatedWhole`. What is here is what stands
 * around them in a delivery: pieces are pushed until the answer is over, the evidence is weighed, the end is asked for.
 */

export type ClientWire = 'messages' | 'chat' | 'responses'

export const wires = {
  messages: { ...spoken.messages.client, ...spoken.messages.model, check: checks('messages', checkMessagesStream) },
  chat: { ...spoken.chat.client, ...spoken.chat.model, check: checks('chat', checkChatStream) },
  responses: {
    ...spoken.responses.client,
    ...spoken.responses.model,
    check: checks('responses', checkResponsesStream),
  },
}

/** The order of a stream's events and what each of them holds. */
function checks(wire: ClientWire, checkOrder: (text: string) => string[]): (text: string) => string[] {
  return (text) => [...checkOrder(text), ...checkAnswer(wire, 'translated', 'text/event-stream', text)]
}

export type Options = Partial<Omit<FilterOptions, 'profile' | 'callIdPrefix'>> & {
  profile?: Partial<Profile>
  /** The request's members that a response repeats. */
  echo?: Record<string, unknown>
  seal?: AnswerHead['seal']
  inputTokensEstimate?: number
  /** The tools that were declared. */
  toolNames?: ReadonlySet<string>
}

export type Told = {
  /** What a client of a stream is sent. */
  text: string
  outcome: { answer: Answer } | { fault: Fault } | 'none'
  /** The whole JSON answer to the same bytes; undefined after a failure. */
  json: string | undefined
  /** What is billed. */
  usage: Usage
  /** A stop of ours has ended the answer, and the model has not told its figures. */
  isCancelled: boolean
  /** What the client hears of a failure before anything was shown, as an ordinary error response. */
  refusal: ErrorFacts | undefined
}

/** How the upstream's bytes arrive, and how they end. */
export type Arrival = { cut?: 'whole' | 'bytes' | number[]; end?: 'clean' | 'reset' }

/** A stream of the upstream. */
export function pump(
  client: ClientWire,
  upstream: ClientWire,
  script: string,
  options: Options = {},
  { cut = 'whole', end = 'clean' }: Arrival = {},
): Told {
  const setting = settingOf(client, spoken[upstream].model, resolveProfile(upstream), options)
  return play(setting, chunksOf(script, cut), end)
}

/** The same for an upstream that answers with one JSON body. */
export function pumpJson(client: ClientWire, upstream: ClientWire, body: string, options: Options = {}): Told {
  const setting = settingOf(client, spoken[upstream].model, resolveProfile(upstream), options)
  const relay = new TranslatedStream(setting.plan, setting.target, setting.head)
  const whole = wholeOf(setting)
  whole.pushWhole(Buffer.from(body))
  return tell(setting, relay, relay.pushWhole(Buffer.from(body)), whole)
}

/** An upstream of no wire: its decoder tells these events, whatever they are. */
export function pumpEvents(client: ClientWire, events: readonly AnswerEvent[], options: Options = {}): Told {
  const frames = events.map((event) => Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
  return play(settingOf(client, eventSource, resolveProfile('chat'), options), frames, 'clean')
}

/** The same, to be pushed by hand. */
export function openEvents(client: ClientWire, options: Options = {}) {
  const { plan, target, head } = settingOf(client, eventSource, resolveProfile('chat'), options)
  const relay = new TranslatedStream(plan, target, head)
  const push = (event: AnswerEvent) => relay.push(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))
  return { relay, push }
}

/** A stream that is pushed by hand. */
export function openStream(client: ClientWire, upstream: ClientWire, options: Options = {}): TranslatedStream {
  const { plan, target, head } = settingOf(client, spoken[upstream].model, resolveProfile(upstream), options)
  return new TranslatedStream(plan, target, head)
}

/** A stream for a client that wants JSON, pushed by hand. */
export function openWhole(client: ClientWire, upstream: ClientWire, options: Options = {}): TranslatedWhole {
  return wholeOf(settingOf(client, spoken[upstream].model, resolveProfile(upstream), options))
}

/** What is asked for as JSON has no need of whole calls. */
function wholeOf({ plan, target, head }: Setting): TranslatedWhole {
  const filters = { ...plan.filters, wantsWholeCalls: false }
  return new TranslatedWhole({ ...plan, filters }, target, head)
}

type Setting = {
  client: ClientWire
  plan: AnswerPlan
  head: AnswerHead
  /** The client's wire, overheard. */
  target: ClientHalf
  heard: BilledEvent[]
}

function settingOf(client: ClientWire, source: ModelHalf, own: Profile, options: Options): Setting {
  const { requestId = 'req_1', showsReasoning = false, inputTokensEstimate = 11 } = options
  const { stops = [], localStops = [], names = new Map() } = options
  const wantsSealed = options.seal !== undefined
  const heard: BilledEvent[] = []
  return {
    client,
    plan: {
      source,
      wire: client,
      profile: { ...own, ...options.profile },
      ...(options.toolNames && { toolNames: options.toolNames }),
      filters: {
        showsReasoning,
        wantsSealed,
        stops,
        localStops,
        names,
        requestId,
        callIdPrefix: spoken[client].client.callIdPrefix,
        wantsWholeCalls: spoken[client].client.streamsObjects === true,
      },
    },
    head: {
      requestId,
      modelId: 'catalog/model',
      createdSeconds: 1_795_000_000,
      inputTokensEstimate,
      echo: client === 'responses' ? JSON.stringify(echoOf(options.echo ?? {})).slice(1, -1) : '',
      ...(options.seal && { seal: options.seal }),
    },
    target: {
      ...spoken[client].client,
      createEncoder(head) {
        const encoder = spoken[client].client.createEncoder(head)
        return {
          write(event) {
            heard.push(event)
            return encoder.write(event)
          },
          compact: () => encoder.compact?.(),
        }
      },
    },
    heard,
  }
}

function play(setting: Setting, chunks: readonly Uint8Array[], end: 'clean' | 'reset'): Told {
  const relay = new TranslatedStream(setting.plan, setting.target, setting.head)
  const whole = wholeOf(setting)
  let text = ''
  for (const chunk of chunks) {
    if (!isOver(relay)) text += relay.push(chunk)
    if (!isOver(whole)) whole.push(chunk)
  }
  if (!isOver(relay)) text += end === 'clean' ? relay.end() : relay.breakOff()
  if (!isOver(whole)) {
    if (end === 'clean') whole.end()
    else whole.breakOff()
  }
  return tell(setting, relay, text, whole)
}

/** Behind a stop of ours it is read on for its figures (ruling C12). */
const isOver = ({ isSpent }: { isSpent: boolean }) => isSpent

/** What a delivery makes of an answer that is over, or that nothing more will come of. */
function tell({ client, head, heard }: Setting, relay: TranslatedStream, text: string, folded: TranslatedWhole): Told {
  const isWhole = relay.state === 'finished' || relay.state === 'stopped'
  const { usage } = weighUsage({
    report: relay.report,
    isComplete: relay.state === 'finished',
    estimateInput: () => head.inputTokensEstimate,
    estimateOutput: () => relay.estimateOutput(),
    outputTokensCap: 4096,
    bounds: { inputTokensMax: 2 ** 40, isOutputCapped: true },
  })
  const whole = folded.whole()
  const told = { usage, isCancelled: relay.state === 'stopped' }
  if (isWhole) {
    const shown = text + relay.finish(usage)
    const outcome = foldOf(heard)
    assert.ok(outcome !== 'none' && 'answer' in outcome && whole.state !== 'failed')
    assert.deepEqual(whole.report, relay.report)
    const json = `${whole.encode(usage)}`
    assert.deepEqual(checkAnswer(client, 'translated', 'application/json', json), [], json)
    return { ...told, text: shown, outcome, json, refusal: undefined }
  }
  const fault = relay.fault ?? { kind: 'truncated', text: '' }
  const upstreamModel = 'name-upstream'
  const failure = { fault, cause: 'upstream_error_event' }
  const verdict = judge(failure, { upstreamModel, profile: { refusals: [], accountFaults: [], requestFaults: [] } })
  const { status, code, message, param } = refusalOf(verdict.tell, failure, () => ({
    modelId: head.modelId,
    upstreamModels: [upstreamModel],
    hidden: [],
    ownPaths: [],
    isSent: () => false,
  }))
  const facts = { status, code, message, param }
  // Only what a failure in a started stream adds is told the client; the state is known before.
  const { hasShown } = relay
  const shown = text + relay.failure(facts, usage)
  // A broken call fails the stream alone (ruling Y5).
  if (fault.text !== 'The model sent a broken call.') assert.equal(whole.state, 'failed')
  const outcome = { fault: relay.fault ?? fault }
  return { ...told, text: shown, outcome, json: undefined, refusal: hasShown ? undefined : facts }
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

/** A model that speaks in events of ours, so that a law can be tried on any run of them. */
const eventSource: ModelHalf = {
  ...spoken.chat.model,
  createDecoder: () => ({
    isEnough: false,
    push: (frame) => [JSON.parse(frame.data) as AnswerEvent],
    end: () => [],
    whole: () => [],
  }),
}

function foldOf(events: readonly BilledEvent[]): { answer: Answer } | { fault: Fault } | 'none' {
  const fold = createFold()
  for (const event of events) fold.push(event)
  return fold.outcome()
}

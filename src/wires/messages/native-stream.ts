import {
  dataOf,
  decodeUtf8,
  encodeLatin1,
  eventOf,
  type RawFrame,
  stringBehind,
  withData,
} from '../../bytes/frame-cutter.ts'
import { asObject } from '../../bytes/json.ts'
import { parseUpstreamJson } from '../../bytes/scan.ts'
import { requireWholeCalls } from '../../inference/filters/whole-calls.ts'
import type { Usage } from '../../inference/usage.ts'
import type { ErrorFacts } from '../answers/envelope.ts'
import { brokenFault, faultOfError } from '../answers/faults.ts'
import { JsonPatch } from '../answers/json-patch.ts'
import { headValues, isBelieved, renameInUsage } from '../answers/native-answer.ts'
import { NativeStream } from '../answers/native-stream.ts'
import { decodeString } from '../answers/produced-text.ts'
import { argumentsText } from '../answers/read-answer.ts'
import { withoutTelling } from '../answers/telling-members.ts'
import { BlockOrder } from './block-order.ts'
import { envelope } from './envelope.ts'
import { calledBy, mintedMessageId, producedTexts, zeroUsage } from './native-json.ts'
import { decodeStopReason } from './stop-reasons.ts'
import { decodeStartUsage, decodeUsage, encodeUsage, plainUsage } from './usage.ts'

/**
 * A messages model's stream for a messages client: bytes as they came (ruling P2). Edited are the head (model, id,
 * counters) and the counters of `message_delta`, the last of which waits for the bill as `message_stop` does (ruling P10).
 */
export class MessagesNativeStream extends NativeStream {
  readonly #order = new BlockOrder()
  #hasReason = false
  #hasStarted = false
  /** Arguments that stand in the start of a call: deltas replace them. */
  #input = ''
  /** Judges the calls, which are given to it as events. */
  readonly #calls = requireWholeCalls(decodeString)
  /** Stops that it withholds. */
  #stops: RawFrame = ''
  /** The last `message_delta`, after the one with the reason of the end: its counters are the billed ones. */
  #last: { frame: RawFrame; data: string } | undefined
  #tail: RawFrame = ''

  finish(usage: Usage): string {
    const last = this.#last ? this.#counted(this.#last, usage) : ''
    return last + (this.#tail || 'event: message_stop\ndata: {"type":"message_stop"}\n\n')
  }

  keepAlive(): string {
    return 'event: ping\ndata: {"type":"ping"}\n\n'
  }

  failure(facts: ErrorFacts): string {
    return `event: error\ndata: ${encodeLatin1(envelope(facts, this.head.requestId))}\n\n`
  }

  protected isEnough(): boolean {
    return this.#hasStarted && this.#hasReason
  }

  protected take(frame: RawFrame): string {
    let name = eventOf(frame)
    if (name === 'content_block_delta' && !this.#order.concernsDeltas) {
      this.events++
      this.show()
      this.#countDelta(frame)
      return frame
    }
    const data = dataOf(frame)
    // Comments of the upstream name its host; nobody needs them.
    if (data === undefined || data === '') return ''
    let event: Record<string, unknown> | undefined
    try {
      event = asObject(parseUpstreamJson(decodeUtf8(data)))
      if (event === undefined) throw new TypeError('an event is an object')
    } catch {
      this.break('an event is not JSON')
      return ''
    }
    const type = event['type']
    let named = frame
    if (name === undefined && typeof type === 'string') {
      // SDKs pass over a frame without its event line.
      name = type
      named = `event: ${type}\n${frame}`
    }
    if (name !== 'ping') this.events++
    switch (name) {
      case 'message_start':
        return this.#start(named, data)
      case 'content_block_delta':
        this.show()
        this.#countDelta(frame)
        return this.#order.concernsDeltas ? this.#order.delta(named, data, event) : named
      case 'content_block_start': {
        const block = asObject(event['content_block'])
        const kind = block?.['type']
        this.enter(kind === 'thinking' || kind === 'redacted_thinking' ? 'reasoning' : 'speaking')
        if (block) this.#countStart(block)
        if (this.#order.isFull) {
          this.fail(brokenFault('too many blocks', 'oversize'))
          return ''
        }
        // An empty text or thinking block shows nothing yet: the model may still turn out to be overloaded.
        if (kind !== 'text' && kind !== 'thinking') this.show()
        return this.#startCall(Number(event['index']), block) ? this.#order.start(named, data, event) : ''
      }
      case 'content_block_stop':
        this.#countInput()
        this.enter('speaking')
        return this.#stopCall(Number(event['index']), this.#order.stop(named, data, event))
      case 'message_delta':
        return this.#delta(named, data, event)
      case 'message_stop':
        if (!this.#hasReason) this.#endCalls(undefined)
        if (this.#hasStarted) this.complete()
        else this.break('message_stop without message_start')
        this.#tail = this.#plain(named, data, event)
        return ''
      case 'error':
        this.fail(faultOfError(event['error']))
        return ''
      default:
        return named
    }
  }

  /** @returns false if the answer has failed: no block follows a broken call, and a start has no place for arguments that are a text */
  #startCall(index: number, block: Record<string, unknown> | undefined): boolean {
    const kind = block?.['type'] === 'text' || block?.['type'] === 'thinking' ? 'text' : 'tool_call'
    const isFree = this.#calls.push({ type: 'block_stop', index, cut: true }).length > 0
    this.#calls.push({ type: 'block_start', index, block: { kind, callId: '', name: '' } })
    const input = asObject(block?.['input']) ? '' : argumentsText(block?.['input']).trim()
    if (isFree && this.#stops === '' && ['', '{}', '[]'].includes(input)) return true
    this.break('a call cannot be read')
    return false
  }

  #stopCall(index: number, stop: RawFrame): RawFrame {
    if (this.#calls.push({ type: 'block_stop', index, cut: true }).length > 0) return stop
    this.#stops += stop
    return ''
  }

  /** @returns the stops that were withheld, if the answer may end so */
  #endCalls(stopReason: unknown): RawFrame {
    const reason = decodeStopReason(`${stopReason}`)
    const end = this.#calls.push({ type: 'finish', reason, report: {} }).at(-1)
    if (end?.type !== 'fail') return this.#stops
    this.fail(end.fault)
    return ''
  }

  /** Without what tells how its model is served (ruling P9). */
  #plain(frame: RawFrame, data: string, event: Record<string, unknown>): string {
    const telling = withoutTelling(event)
    if (telling.size === 0) return frame
    const patch = new JsonPatch(Buffer.from(data, 'latin1'))
    patch.set([], telling)
    return withData(frame, patch.result().toString('latin1'))
  }

  #countDelta(frame: RawFrame): void {
    const words = stringBehind(frame, '"text":') || stringBehind(frame, '"thinking":')
    if (words !== '') {
      this.produced.addRaw(words)
      return
    }
    const input = stringBehind(frame, '"partial_json":')
    if (input !== '') this.#takeInput(frame, input)
  }

  #takeInput(frame: RawFrame, input: string): void {
    this.#input = ''
    this.produced.addRaw(input)
    const at = frame.indexOf('"index":') + 8
    const index = Number.parseInt(frame.slice(at, at + 8), 10)
    this.#calls.push({ type: 'block_delta', index, text: input })
  }

  #countStart(block: Record<string, unknown>): void {
    this.#countInput()
    const kind = calledBy(block)
    if (kind !== undefined) this.see(kind)
    const [first = '', input = ''] = producedTexts(block, JSON.stringify)
    this.produced.add(first)
    this.#input = input
  }

  #countInput(): void {
    this.produced.add(this.#input)
    this.#input = ''
  }

  #start(frame: RawFrame, data: string): string {
    const patch = new JsonPatch(Buffer.from(data, 'latin1'))
    const message = asObject(patch.value['message'])
    if (message === undefined) {
      this.break('message_start without a message')
      return ''
    }
    this.#hasStarted = true
    this.noteAnswer(message)
    this.learn(decodeStartUsage(message['usage'], this.head.model.profile.usageQuirk))
    patch.set([], withoutTelling(patch.value))
    patch.set(['message'], headValues(this.head, message, 'msg_', mintedMessageId))
    patch.setMissing(['message', 'usage'], zeroUsage)
    renameInUsage(patch, ['message', 'usage'], message['usage'], this.head)
    return patch.isEdited ? withData(frame, patch.result().toString('latin1')) : frame
  }

  #delta(frame: RawFrame, data: string, event: Record<string, unknown>): string {
    const before = this.#last ? this.#underWay(this.#last) : ''
    this.#last = undefined
    this.learn(decodeUsage(event['usage'], this.head.model.profile.usageQuirk))
    const reason = asObject(event['delta'])?.['stop_reason']
    if (!this.#hasReason && reason == null) return before + this.#underWay({ frame, data })
    const stops = this.#hasReason ? '' : this.#endCalls(reason)
    this.#hasReason = true
    this.show()
    this.#last = { frame, data }
    return stops + before
  }

  /** The four counters are in every message_delta (spec 6.1): what this one leaves out was said before, or is estimated as the bill is. */
  #underWay(delta: { frame: RawFrame; data: string }): string {
    const { outputTokens: said, isOutputPartial, inputTokens = this.head.inputTokensEstimate } = this.report
    const outputTokens = said === undefined || isOutputPartial ? Math.max(said ?? 0, this.estimateOutput()) : said
    return this.#counted(delta, { ...this.known(), inputTokens, outputTokens })
  }

  /** With counters where they are missing, or not what is billed (ruling P10). */
  #counted({ frame, data }: { frame: RawFrame; data: string }, usage: Usage): string {
    const patch = new JsonPatch(Buffer.from(data, 'latin1'))
    const wanted = encodeUsage(usage)
    patch.set([], withoutTelling(patch.value))
    const told = plainUsage(asObject(patch.value['usage']))
    patch.setMissing(['usage'], wanted, isBelieved(this.report, usage, told, wanted))
    renameInUsage(patch, ['usage'], patch.value['usage'], this.head)
    return patch.isEdited ? withData(frame, patch.result().toString('latin1')) : frame
  }
}

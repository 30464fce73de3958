import type { Fault } from '../../inference/answer.ts'
import { mergeUsage, type Usage, type UsageReport } from '../../inference/usage.ts'
import { asObject } from '../../json.ts'
import { type ErrorFacts, messagesEnvelope } from '../envelope.ts'
import {
  dataOf,
  decodeUtf8,
  deltaCharacters,
  encodeLatin1,
  eventOf,
  FrameCutter,
  type RawFrame,
  withData,
} from '../frame-cutter.ts'
import { headValues, JsonPatch, type NativeHead, readErrorBody, tokensOfCharacters } from '../native-answer.ts'
import type { StreamRelay } from '../relay.ts'
import { faultOfError } from '../stream-fault.ts'
import { mintedMessageId, zeroUsage } from './native-json.ts'
import { decodeUsage, encodeUsage } from './usage.ts'

/** Where a delta's text is. */
const textNeedles = ['"text":', '"thinking":', '"partial_json":']

/**
 * A messages model's stream for a messages client: bytes as they came (ruling P2). Edited are the head (model, id,
 * counters) and the counters of `message_delta` where some are missing; `message_stop` waits for the bill.
 */
export class MessagesNativeStream implements StreamRelay {
  readonly encoding = 'latin1'
  isVisible = false
  isFinished = false
  readonly isCutByUs = false
  fault: Fault | undefined
  events = 0
  report: UsageReport = {}
  readonly #head: NativeHead
  readonly #cutter = new FrameCutter()
  #producedCharacters = 0
  #hasReason = false
  #hasStarted = false
  #tail: RawFrame = ''

  constructor(head: NativeHead) {
    this.#head = head
  }

  push(chunk: Uint8Array): string {
    let out = ''
    for (const frame of this.#cutter.push(
      Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString('latin1'),
    )) {
      if (this.isFinished || this.fault) break
      out += this.#take(frame)
    }
    if (this.#cutter.isOversize) this.fault ??= { kind: 'broken', text: 'one event is too large' }
    return out
  }

  end(): string {
    const rest = this.#cutter.end()
    const out = rest !== undefined && !this.isFinished && !this.fault ? this.#take(rest) : ''
    if (this.isFinished || this.fault) return out
    if (this.#hasReason) this.isFinished = true
    else this.fault = { kind: 'truncated', text: 'the stream ended early' }
    return out
  }

  pushWhole(body: Buffer): string {
    const error = readErrorBody(body)
    this.fault = error ?? { kind: 'broken', text: 'JSON where a stream was asked for' }
    return ''
  }

  estimateOutput(): number {
    return tokensOfCharacters(this.#producedCharacters)
  }

  finish(_usage: Usage): string {
    return this.#tail || 'event: message_stop\ndata: {"type":"message_stop"}\n\n'
  }

  keepAlive(): string {
    return 'event: ping\ndata: {"type":"ping"}\n\n'
  }

  failure(facts: ErrorFacts): string {
    return `event: error\ndata: ${encodeLatin1(messagesEnvelope(facts, this.#head.requestId))}\n\n`
  }

  #take(frame: RawFrame): string {
    let name = eventOf(frame)
    if (name === 'content_block_delta') {
      this.events++
      this.isVisible = true
      this.#producedCharacters += deltaCharacters(frame, textNeedles)
      return frame
    }
    const data = dataOf(frame)
    // Comments of the upstream name its host; nobody needs them.
    if (data === undefined || data === '') return ''
    let event: Record<string, unknown> | undefined
    try {
      event = asObject(JSON.parse(decodeUtf8(data)))
      if (event === undefined) throw new TypeError('an event is an object')
    } catch {
      this.fault = { kind: 'broken', text: 'an event is not JSON' }
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
        this.isVisible = true
        this.#producedCharacters += deltaCharacters(frame, textNeedles)
        return named
      case 'content_block_start': {
        const kind = asObject(event['content_block'])?.['type']
        // An empty text or thinking block shows nothing yet: the model may still turn out to be overloaded.
        if (kind !== 'text' && kind !== 'thinking') this.isVisible = true
        return named
      }
      case 'message_delta':
        return this.#delta(named, data, event)
      case 'message_stop':
        this.isVisible = true
        if (!this.#hasStarted) this.fault = { kind: 'broken', text: 'message_stop without message_start' }
        this.isFinished = !this.fault
        this.#tail = named
        return ''
      case 'error':
        this.fault = faultOfError(event['error'])
        return ''
      default:
        return named
    }
  }

  #start(frame: RawFrame, data: string): string {
    const patch = new JsonPatch(Buffer.from(data, 'latin1'))
    const message = asObject(patch.value['message'])
    if (message === undefined) {
      this.fault = { kind: 'broken', text: 'message_start without a message' }
      return ''
    }
    this.#hasStarted = true
    this.report = mergeUsage(this.report, decodeUsage(message['usage'], this.#head.model.profile.usageQuirk))
    patch.set(['message'], headValues(this.#head, message, 'msg_', mintedMessageId(this.#head.requestId)))
    patch.setMissing(['message', 'usage'], zeroUsage)
    return patch.isEdited ? withData(frame, patch.result().toString('latin1')) : frame
  }

  #delta(frame: RawFrame, data: string, event: Record<string, unknown>): string {
    if (asObject(event['delta'])?.['stop_reason'] != null) {
      this.#hasReason = true
      this.isVisible = true
    }
    const usage = asObject(event['usage'])
    this.report = mergeUsage(this.report, decodeUsage(usage, this.#head.model.profile.usageQuirk))
    // The four counters are in every message_delta (spec 6.1): what this one leaves out was said before, or is unknown.
    const known = encodeUsage({
      inputTokens: this.report.inputTokens ?? 0,
      cacheReadTokens: this.report.cacheReadTokens ?? 0,
      cacheWriteTokens: this.report.cacheWriteTokens ?? 0,
      cacheWrite1hTokens: 0,
      outputTokens: this.report.outputTokens ?? this.estimateOutput(),
      reasoningTokens: 0,
      estimated: false,
    })
    const patch = new JsonPatch(Buffer.from(data, 'latin1'))
    patch.setMissing(['usage'], known)
    return patch.isEdited ? withData(frame, patch.result().toString('latin1')) : frame
  }
}

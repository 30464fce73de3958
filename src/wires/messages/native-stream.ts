import {
  dataOf,
  decodeUtf8,
  encodeLatin1,
  eventOf,
  type RawFrame,
  withData,
  withEvent,
} from '../../bytes/frame-cutter.ts'
import { asObject, type JsonObject } from '../../bytes/json.ts'
import { elementsOf } from '../../bytes/json-edit.ts'
import { JsonError, parseUpstreamJson } from '../../bytes/scan.ts'
import type { Usage } from '../../inference/usage.ts'
import { brokenFault, type ErrorFacts, faultOfError } from '../answers/faults.ts'
import { JsonPatch } from '../answers/json-patch.ts'
import { headValues, isBelieved, mintCallId, renameInUsage, withoutTelling } from '../answers/native-answer.ts'
import { NativeStream } from '../answers/native-stream.ts'
import { keptSources, stringOf } from '../answers/read-answer.ts'
import { readDelta } from './block-content.ts'
import { BlockOrder } from './block-order.ts'
import { envelope } from './envelope.ts'
import { frameOf, messageForms } from './native-forms.ts'
import { calledBy, missingInMessage, zeroUsage } from './native-json.ts'
import { decodeStartUsage, decodeUsage, encodeUsage, plainUsage } from './usage.ts'

/**
 * A messages model's stream for a messages client. The head (model, id, counters) and the counters of `message_delta`
 * are edited (ruling P2). Members that reveal the host are removed (ruling P9), and blocks that SDKs could not read are
 * corrected (see `BlockOrder`). Other bytes stay unchanged. The last `message_delta` and `message_stop` wait for the
 * bill (ruling P10).
 */
export class MessagesNativeStream extends NativeStream {
  protected readonly forms = messageForms
  readonly #blocks = new BlockOrder(
    this.produced,
    (number) => mintCallId('toolu_', this.head, number),
    this.head.model.profile.cumulative,
    () => this.isFolding,
  )
  #hasStarted = false
  #hasDelta = false
  #reason: unknown
  /** The `delta` of the last event that had a stop reason. */
  #ending: JsonObject = {}
  /** The blocks that the message in the start event contains, as JSON. */
  #startContent: string[] = []
  /** The last `message_delta`, which has the final stop reason. Its counters are replaced by the billed counters. */
  #last: { frame: RawFrame; data: string } | undefined
  #tail: RawFrame = ''

  finish(usage: Usage): string {
    const last = this.#last ? this.#counted(this.#last, usage) : ''
    return last + (this.#tail || frameOf('message_stop'))
  }

  keepAlive(): string {
    return frameOf('ping')
  }

  failure(facts: ErrorFacts): string {
    return `event: error\ndata: ${encodeLatin1(envelope(facts, this.head.requestId))}\n\n`
  }

  override compact(): void {
    super.compact()
    this.#blocks.compact()
  }

  protected isEnough(): boolean {
    return this.#hasStarted && this.#reason != null && !this.#blocks.isOpen
  }

  protected take(frame: RawFrame): string {
    const repeated = this.#blocks.repeat(frame)
    if (repeated !== undefined) {
      this.events++
      return repeated
    }
    const data = dataOf(frame)
    // Comments are dropped, because they may name the upstream's host, and clients do not need them.
    if (data === undefined || data === '' || data.trim() === '[DONE]') return ''
    let event: Record<string, unknown> | undefined
    try {
      event = asObject(parseUpstreamJson(decodeUtf8(data)))
      if (event === undefined) throw new TypeError('an event is an object')
    } catch {
      this.break('an event is not JSON')
      return ''
    }
    try {
      return this.#takeNamed(frame, data, event)
    } catch (error) {
      // A frame that is nested too deeply cannot be edited. It would pass unchanged, but this frame needs an edit.
      if (!(error instanceof JsonError)) throw error
      this.break('an event cannot be edited')
      return ''
    }
  }

  #takeNamed(frame: RawFrame, data: string, event: JsonObject): string {
    const line = eventOf(frame)
    const type = stringOf(event['type']) ?? line
    if (type !== 'ping') this.events++
    // SDKs ignore a frame without an event line or without a type, so the missing part is added.
    let named = frame
    if (type !== undefined && type !== line && /^\w+$/.test(type)) named = withEvent(frame, type)
    if (type === undefined || event['type'] !== undefined) return this.#takeEvent(type, named, data, event, frame)
    named = typed(named, data, type)
    return this.#takeEvent(type, named, dataOf(named)!, event, frame)
  }

  #takeEvent(type: string | undefined, named: RawFrame, data: string, event: JsonObject, came: RawFrame): string {
    switch (type) {
      case 'message_start':
        return this.#start(named, data)
      case 'content_block_start':
        return this.#startBlock(named, data, event)
      case 'content_block_delta':
        return this.#showDelta(this.#blocks.delta(named, data, event, came), asObject(event['delta']) ?? {})
      case 'content_block_stop':
        this.enter('speaking')
        return this.#blocks.stop(named, data, event) ?? this.#shown(undefined)
      case 'message_delta':
        return this.#delta(named, data, event)
      case 'message_stop':
        return this.#stop(named, data, event)
      case 'error':
        this.fail(faultOfError(event['error'] ?? event))
        return ''
      default:
        if (event['error']) this.fail(faultOfError(event['error']))
        return this.fault ? '' : named
    }
  }

  #startBlock(frame: RawFrame, data: string, event: JsonObject): string {
    const block = asObject(event['content_block']) ?? {}
    const kind = block['type']
    this.enter(kind === 'thinking' || kind === 'redacted_thinking' ? 'reasoning' : 'speaking')
    const called = calledBy(block)
    if (called !== undefined) this.see(called)
    if (this.#blocks.isFull) {
      this.fail(brokenFault('too many blocks', 'oversize'))
      return ''
    }
    const text = this.#hasStarted ? this.#blocks.start(frame, data, event) : undefined
    // The start of an empty text or thinking block shows nothing yet. If the model then reports overload, another
    // attempt may still follow.
    if (kind !== 'text' && kind !== 'thinking') return this.#shown(text)
    return text === undefined || text.includes('content_block_delta') ? this.#shown(text) : text
  }

  /**
   * Returns the text for the client, and notes that the client gets it.
   * @param text undefined if a block cannot be read; the answer then fails
   */
  #shown(text: string | undefined): string {
    if (text === undefined) this.break('a block cannot be read')
    else if (text !== '') this.show()
    return text ?? ''
  }

  /** Like `#shown`, for a delta. A delta without content shows nothing yet. */
  #showDelta(text: string | undefined, delta: JsonObject): string {
    return !this.hasShown && text !== undefined && readDelta(delta)?.value === '' ? text : this.#shown(text)
  }

  #stop(frame: RawFrame, data: string, event: JsonObject): string {
    // Without both events, nothing proves that the answer is complete (law I1). The stop reason may be missing.
    if (!this.#hasStarted || !this.#hasDelta) {
      this.break('message_stop without message_start and message_delta')
      return ''
    }
    const ending = this.#end(this.#reason)
    if (this.#reason == null) {
      const delta = { stop_reason: this.#blocks.hasCalls ? 'tool_use' : 'end_turn', stop_sequence: null }
      const frame = frameOf('message_delta', `"delta":${JSON.stringify(delta)}`)
      this.#last = { frame, data: dataOf(frame)! }
    }
    this.#tail = this.#plain(frame, data, event)
    this.complete()
    return ending
  }

  /** Ends all blocks. If no event has begun a block, the blocks in the start event's message are sent first. */
  #end(reason: unknown): string {
    let text = ''
    if (this.#blocks.isEmpty)
      for (const [index, block] of this.#startContent.entries()) {
        text += this.take(frameOf('content_block_start', `"index":${index},"content_block":${block}`))
        text += this.take(frameOf('content_block_stop', `"index":${index}`))
      }
    return text + this.#shown(this.#blocks.end(reason))
  }

  /** Removes members that reveal how the model is served (ruling P9). */
  #plain(frame: RawFrame, data: string, event: Record<string, unknown>): string {
    const telling = withoutTelling(event)
    if (telling.size === 0) return frame
    const patch = new JsonPatch(Buffer.from(data, 'latin1'))
    patch.set([], telling)
    return withData(frame, patch.result().toString('latin1'))
  }

  #start(frame: RawFrame, data: string): string {
    const patch = new JsonPatch(Buffer.from(data, 'latin1'))
    const message = asObject(patch.value['message'])
    if (message === undefined) {
      this.break('message_start without a message')
      return ''
    }
    if (this.#hasStarted) {
      this.break('a second message_start')
      return ''
    }
    this.#hasStarted = true
    this.noteAnswer(message)
    this.learn(decodeStartUsage(message['usage'], this.head.model.profile.usageQuirk))
    patch.set([], withoutTelling(patch.value))
    patch.set(['message'], headValues(this.head, message, 'msg_'))
    const missing = missingInMessage(message)
    missing.delete('stop_reason')
    if (message['stop_reason'] !== null) missing.set('stop_reason', 'null')
    patch.set(['message'], missing)
    const { content } = message
    if (!Array.isArray(content) || content.length > 0) {
      const isText = typeof content === 'string'
      // Some servers write a text or a single block as `content`, instead of a list of blocks.
      if (content != null && !isText && typeof content !== 'object') {
        this.break('content that is neither a text nor a block')
        return ''
      }
      if (isText && content !== '') this.#startContent = [encodeLatin1(JSON.stringify({ type: 'text', text: content }))]
      if (!isText && content != null) this.#startContent = elementsIn(data)
      patch.set(['message'], new Map([['content', '[]']]))
    }
    patch.setMissing(['message', 'usage'], zeroUsage)
    renameInUsage(patch, ['message', 'usage'], message['usage'], this.head)
    return patch.isEdited ? withData(frame, patch.result().toString('latin1')) : frame
  }

  #delta(frame: RawFrame, data: string, event: Record<string, unknown>): string {
    // The last `message_delta` is edited only when the answer has ended and can no longer fail. So each one is parsed
    // here.
    if (this.parse(data) === undefined) return ''
    const before = this.#last ? this.#underWay(this.#last) : ''
    this.#last = undefined
    this.learn(decodeUsage(event['usage'], this.head.model.profile.usageQuirk))
    this.#hasDelta = true
    const told = asObject(event['delta']) ?? {}
    const reason = told['stop_reason']
    if (reason != null) this.#ending = told
    if (this.#reason == null && reason == null) return before + this.#underWay({ frame, data })
    this.#reason ??= reason
    const ending = this.#end(reason ?? this.#reason)
    this.show()
    this.#last = reason == null ? withEnding(frame, data, this.#ending) : { frame, data }
    return ending + before
  }

  /**
   * Writes a `message_delta` that is not the last. Each `message_delta` must have the four counters (spec 6.1). A
   * missing counter gets its last reported value, or the estimate that would be billed.
   */
  #underWay(delta: { frame: RawFrame; data: string }): string {
    const { outputTokens: said, isOutputPartial, inputTokens = this.head.inputTokensEstimate } = this.report
    const outputTokens = said === undefined || isOutputPartial ? Math.max(said ?? 0, this.estimateOutput()) : said
    return this.#counted(delta, { ...this.known(), inputTokens, outputTokens })
  }

  /** In an event, sets the counters that are missing or differ from the billed ones (ruling P10). */
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

/** Adds the member `type` to an event's data, because only the event line has it. */
function typed(frame: RawFrame, data: string, type: string): RawFrame {
  const patch = new JsonPatch(Buffer.from(data, 'latin1'))
  patch.set([], new Map([['type', JSON.stringify(type)]]))
  return withData(frame, patch.result().toString('latin1'))
}

/**
 * Repeats the stop reason, sequence and details in a later counters event. SDKs use those of the last event, even if
 * they are absent.
 */
function withEnding(frame: RawFrame, data: string, ending: JsonObject): { frame: RawFrame; data: string } {
  const patch = new JsonPatch(Buffer.from(data, 'latin1'))
  const told = asObject(patch.value['delta']) ?? {}
  const news = Object.entries(told).filter(([, value]) => value !== null)
  patch.set([], new Map([['delta', JSON.stringify({ ...told, ...ending, ...Object.fromEntries(news) })]]))
  const text = withData(frame, patch.result().toString('latin1'))
  return { frame: text, data: dataOf(text)! }
}

/** Returns the blocks in a `message_start`, as their source text. The content may also be a block instead of a list. */
function elementsIn(data: string): string[] {
  const source = keptSources(decodeUtf8(data), 'content', (root) => [asObject(root['message'])])(0)
  const bytes = Buffer.from(source ?? '[]')
  if (bytes[0] !== 0x5b) return [bytes.toString('latin1')]
  return elementsOf(bytes, { start: 0, end: bytes.length }).map(({ start, end }) =>
    bytes.toString('latin1', start, end),
  )
}

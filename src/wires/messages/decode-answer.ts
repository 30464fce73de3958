import { asObject, type JsonObject } from '../../bytes/json.ts'
import type { SseFrame } from '../../bytes/sse.ts'
import type { Profile } from '../../catalog/profile.ts'
import { faultOfError, truncatedFault } from '../answers/faults.ts'
import { AnswerDecoder, keptSources, listOf, type OnAnswer, stringOf, unreadable } from '../answers/read-answer.ts'
import { IncomingBlocks } from './incoming-blocks.ts'
import { decodeStopReason } from './stop-reasons.ts'
import { decodeStartUsage, decodeUsage } from './usage.ts'

/**
 * Decodes a messages model's answer. A stream is complete after `message_stop`, or if it ends after a stop reason. A
 * whole answer is read as if it had been streamed.
 */
export class MessagesDecoder extends AnswerDecoder {
  readonly #blocks: IncomingBlocks
  /** Whether the message has started. An end without a start is no answer. */
  #hasBegun = false
  /** The content in `message_start`. If no content block follows, this content is the answer (ruling Y5). */
  #early: unknown
  #stopReason: string | undefined
  #stopSequence: string | undefined

  constructor(profile: Profile, onAnswer?: OnAnswer) {
    super(profile, onAnswer)
    this.#blocks = new IncomingBlocks(this.narrator, profile.cumulative)
  }

  protected readWhole(body: JsonObject, text: string) {
    if (body['type'] === 'error' || body['error']) return this.narrator.fail(faultOfError(body['error'] ?? body))
    if (body['content'] == null) return this.narrator.fail(unreadable())
    this.narrator.start()
    this.#content(
      body['content'],
      keptSources(text, 'input', (root) => listOf(root['content']).map(asObject)),
    )
    this.#reason(body)
    this.#usage(body['usage'])
    this.#finish()
  }

  protected read(object: JsonObject, frame: SseFrame) {
    switch (stringOf(object['type']) ?? frame.event) {
      case 'message_start':
        // An answer starts only once (law I1), and a second `message_start` would begin another answer.
        if (this.#hasBegun) return this.narrator.fail(unreadable())
        this.#hasBegun = true
        this.narrator.start()
        this.#early = asObject(object['message'])?.['content']
        return this.narrator.usage(decodeStartUsage(asObject(object['message'])?.['usage'], this.profile.usageQuirk))
      case 'content_block_start':
        this.#hasBegun = true
        this.#early = undefined
        return this.#blocks.start(object['index'], asObject(object['content_block']) ?? {}, () =>
          keptSources(frame.data, 'input', (root) => [asObject(root['content_block'])])(0),
        )
      case 'content_block_delta':
        if (object['delta'] != null && !asObject(object['delta'])) return this.narrator.miss('part', unreadable())
        return this.#blocks.delta(object['index'], asObject(object['delta']) ?? {})
      case 'content_block_stop':
        return this.#blocks.stop(object['index'])
      case 'message_delta':
        this.#reason(asObject(object['delta']) ?? {})
        return this.#usage(object['usage'])
      case 'message_stop':
        return this.#hasBegun ? this.#finish() : this.narrator.fail(unreadable())
      case 'error':
        return this.narrator.fail(faultOfError(object['error'] ?? object))
      default:
        // Some proxies send an error object of the chat wire, without a type.
        if (object['error']) return this.narrator.fail(faultOfError(object['error']))
        return this.narrator.alive()
    }
  }

  #reason(delta: JsonObject) {
    this.#stopReason = stringOf(delta['stop_reason']) ?? this.#stopReason
    this.#stopSequence = stringOf(delta['stop_sequence']) ?? this.#stopSequence
  }

  #usage(raw: unknown) {
    this.narrator.usage(decodeUsage(raw, this.profile.usageQuirk))
  }

  get isEnough(): boolean {
    return this.#hasBegun && this.#stopReason !== undefined
  }

  protected close() {
    if (this.isEnough) this.#finish()
    else this.narrator.fail(truncatedFault())
  }

  /**
   * Reads the content of a whole message: blocks, a text, or a single block (ruling Y5).
   * @param inputAt returns the exact text of a block's input, by the block's position
   */
  #content(content: unknown, inputAt: (place: number) => string | undefined) {
    for (const [place, block] of listOf(content).entries()) {
      const object = typeof block === 'string' ? { type: 'text', text: block } : asObject(block)
      if (!object) this.narrator.miss('part', unreadable())
      else {
        this.#blocks.start(place, object, () => inputAt(place))
        this.#blocks.stop(place)
      }
    }
  }

  /** Finishes the answer. Called when the upstream has reported that the answer is complete. */
  #finish() {
    this.#content(this.#early, () => undefined)
    this.#blocks.complete()
    this.narrator.finish(decodeStopReason(this.#stopReason), this.#stopSequence)
  }
}

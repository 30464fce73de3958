import { asObject, type JsonObject } from '../../bytes/json.ts'
import type { SseFrame } from '../../bytes/sse.ts'
import type { Profile } from '../../catalog/profile.ts'
import { faultOfError, truncatedFault } from '../answers/faults.ts'
import {
  AnswerDecoder,
  keptSources,
  newPart,
  type OnAnswer,
  objectsOf,
  stringOf,
  unreadable,
} from '../answers/read-answer.ts'
import { choicesOf, contentOf, formOf, listOfCalls, partsOf, reasoningOf, withCallsBeside } from './content.ts'
import { decodeStopReason, explainsSilence } from './stop-reasons.ts'
import { argumentsHolder, ToolCalls } from './tool-calls.ts'
import { decodeUsage } from './usage.ts'

/**
 * Decodes a chat model's answer. A stream is complete if it ends after a finish reason, with or without `[DONE]`. A
 * stream without a finish reason is complete if `[DONE]` follows at least one choice. Frames after the finish reason
 * are read too, because they may have the usage. The message of a whole answer is read like one large delta.
 */
export class ChatDecoder extends AnswerDecoder {
  readonly #calls: ToolCalls
  #current: { index: number; kind: 'text' | 'reasoning' | 'refusal' } | undefined
  #hasChoice = false
  /** The reasoning so far, for a model that repeats it in each piece. */
  #thought = ''
  /** Whether a delta had text, a refusal or a call. If so, a later whole message repeats the deltas and is ignored. */
  #hasOwn = false
  #hasOwnThought = false
  #reason: string | undefined
  #stopSequence: string | undefined
  /**
   * For the current chunk: returns the source text of a function's arguments, by the function's place. `#passed` counts
   * the functions that have been read.
   */
  #sourceAt: ((place: number) => string | undefined) | undefined
  #passed = 0

  /** @param toolNames the names of the declared tools, as the model sees them */
  constructor(profile: Profile, onAnswer?: OnAnswer, toolNames: ReadonlySet<string> = new Set()) {
    super(profile, onAnswer)
    this.#calls = new ToolCalls(this.narrator, profile.cumulative.includes('arguments'), toolNames)
  }

  protected read(chunk: JsonObject, frame: SseFrame) {
    this.narrator.start()
    if (this.#findError(chunk)) return
    if (isBareError(chunk, frame.event)) return this.narrator.fail(faultOfError(chunk))
    this.#choices(chunk, 'delta', frame.data)
  }

  protected readWhole(body: JsonObject, text: string) {
    if (this.#findError(body)) return
    if (isBareError(body, undefined)) return this.narrator.fail(faultOfError(body))
    // A body without any content in its choices is no answer, and the gateway must not invent one (I10).
    if (!choicesOf(body).some(hasMessage)) return this.narrator.fail(unreadable())
    this.narrator.start()
    this.#choices(body, 'message', text)
    this.close(true)
  }

  /** Whether a chunk contains an error. An error ends the answer. */
  #findError(chunk: JsonObject): boolean {
    const error = errorIn(chunk)
    if (!error) return false
    this.narrator.fail(faultOfError(error))
    return true
  }

  /** Reads the choices. @param text the chunk as received; arguments written as objects are copied from this text */
  #choices(chunk: JsonObject, key: 'delta' | 'message', text: string) {
    for (const choice of choicesOf(chunk)) {
      if (!isOurs(choice)) continue
      this.#hasChoice = true
      this.#choice(choice, key, text)
      this.#reason = stringOf(choice['finish_reason']) ?? this.#reason
      // vLLM names the matched stop sequence in `stop_reason`, SGLang in `matched_stop`.
      this.#stopSequence = stringOf(choice['stop_reason'] ?? choice['matched_stop']) ?? this.#stopSequence
      this.#usage(choice['usage'])
    }
    this.#usage(chunk['usage'])
    this.#sourceAt = undefined
    this.#passed = 0
  }

  #usage(raw: unknown) {
    if (raw) this.narrator.usage(decodeUsage(raw, this.profile.usageQuirk, this.narrator.report))
  }

  /** Whether the model has given a finish reason that does not mean failure. */
  get isEnough(): boolean {
    return this.#reason !== undefined && decodeStopReason(this.#reason) !== 'failed'
  }

  protected close(isMarked: boolean) {
    if (this.#reason === undefined && !(isMarked && this.#hasChoice)) return this.narrator.fail(truncatedFault())
    const meant = decodeStopReason(this.#reason)
    if (meant === 'failed') return this.narrator.fail({ kind: 'broken', text: 'The model broke off its answer.' })
    this.#calls.complete(meant === 'calls' || !this.narrator.hasSaid)
    this.narrator.finish(meant, this.#stopSequence)
  }

  /**
   * Reads a choice. Some servers send `message` or `text` in a chunk instead of `delta`, or `delta` in a whole answer
   * (ruling Y5).
   */
  #choice(choice: JsonObject, key: 'delta' | 'message', text: string) {
    const own = withCallsBeside(choice, asObject(choice[key]))
    const form = own ? formOf(own) : 'empty'
    if (own && form !== 'empty') {
      this.#delta(own, key, text, form)
      return
    }
    const otherKey = key === 'delta' ? 'message' : 'delta'
    const words = [choice['text'], choice[key], choice[otherKey]].find((one) => stringOf(one))
    const other = asObject(choice[otherKey]) ?? { content: words }
    // A whole message that comes after deltas repeats them, so it is not read.
    const otherForm = formOf(other)
    if (!this.#hasOwn && otherForm !== 'empty') this.#delta(other, otherKey, text, otherForm)
  }

  #delta(delta: JsonObject, key: string, text: string, form: 'plain' | 'unusual') {
    const parts = form === 'plain' ? undefined : contentOf(delta)
    const thought = reasoningOf(delta, this.profile.chat.reasoningField) || parts?.reasoning
    if (thought && !(key === 'message' && this.#hasOwnThought)) this.#write('reasoning', this.#newThought(thought))
    const words = parts ? parts.text : (stringOf(delta['content']) ?? '')
    const refusal = stringOf(delta['refusal']) ?? parts?.refusal ?? ''
    this.#write('text', words)
    this.#write('refusal', refusal)
    for (const { media, source } of parts?.media ?? []) this.narrator.media(media, source)
    if (parts?.isUnread) this.narrator.miss('part', unreadable())
    const called = delta['tool_calls']
    const own = listOfCalls(called)
    const listed = own.length > 0 ? own : (parts?.calls ?? [])
    const legacy = asObject(delta['function_call'])
    const entries = objectsOf(listed)
    if (entries.length < listed.length) this.narrator.miss('call', unreadable())
    if (key === 'delta') {
      this.#hasOwn ||= words !== '' || refusal !== '' || entries.length > 0 || legacy !== undefined
      this.#hasOwnThought ||= Boolean(thought)
    }
    if (entries.length === 0 && !legacy) return
    this.#stopCurrent()
    // Arguments written as an object keep their source text (ruling T16).
    this.#sourceAt ??= keptSources(text, 'arguments', (root) => functionsIn(root, key))
    const [sourceAt, first] = [this.#sourceAt, this.#passed]
    this.#passed += 1 + entries.length
    for (const [position, entry] of entries.entries()) {
      // In a whole message, calls are identified by their position.
      const known = key === 'message' ? { ...entry, index: position } : entry
      this.#calls.push(known, () => sourceAt(first + 1 + position))
    }
    if (legacy) this.#calls.push({ index: -1, function: legacy }, () => sourceAt(first))
  }

  #newThought(piece: string): string {
    if (!this.profile.cumulative.includes('reasoning')) return piece
    const text = newPart(this.#thought, piece)
    this.#thought += text
    return text
  }

  #write(kind: 'text' | 'reasoning' | 'refusal', text: string) {
    if (text === '') return
    let current = this.#current
    if (current?.kind !== kind) {
      this.#stopCurrent()
      this.#calls.stopWhole()
      current = { index: this.narrator.open({ kind }), kind }
      this.#current = current
    }
    this.narrator.delta(current.index, text)
  }

  #stopCurrent() {
    if (this.#current) this.narrator.stop(this.#current.index)
    this.#current = undefined
  }
}

/** The error in a chunk or an answer, or in one of its choices. */
export function errorIn(chunk: JsonObject): unknown {
  return chunk['error'] || choicesOf(chunk).find(({ error }) => error)?.['error']
}

/**
 * Whether the chunk itself is the error object. Some servers do not put the error object into a member `error`. The
 * chunk is then recognized by the event's name, by `object`, or by its members.
 */
export function isBareError(chunk: JsonObject, event: string | undefined): boolean {
  if (event === 'error' || chunk['object'] === 'error') return true
  return chunk['choices'] === undefined && chunk['code'] != null && typeof chunk['message'] === 'string'
}

/**
 * Whether a choice has a message, in `message` or in another member that some servers use (ruling Y5), or says why it
 * has none.
 */
function hasMessage({ message, delta, text, finish_reason }: JsonObject): boolean {
  if (explainsSilence(finish_reason)) return true
  return asObject(message) !== undefined || asObject(delta) !== undefined || typeof (message ?? text) === 'string'
}

/**
 * Whether this is the choice that the gateway asked for. The gateway asks for one choice only, and ignores any other. A
 * choice without an index is the first (ruling U7).
 */
function isOurs(choice: JsonObject): boolean {
  return (choice['index'] ?? 0) === 0
}

/** Returns the functions of all calls. For each choice, a single `function_call` comes before the calls of the list. */
function functionsIn(root: JsonObject, key: string): (JsonObject | undefined)[] {
  return choicesOf(root).flatMap((choice) => {
    const message = isOurs(choice) ? withCallsBeside(choice, asObject(choice[key])) : undefined
    const own = listOfCalls(message?.['tool_calls'])
    const listed = objectsOf(own.length > 0 ? own : partsOf(message?.['content']).calls).map(argumentsHolder)
    const legacy = asObject(message?.['function_call'])
    return listed.length === 0 && !legacy ? [] : [legacy, ...listed]
  })
}

import { asObject, type JsonObject } from '../../bytes/json.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { AnswerBlock } from '../../inference/answer.ts'
import { blocksMax, type Narrator, tooMany } from '../../inference/narrator.ts'
import { type ArgumentShape, createArgumentShape } from '../answers/argument-shape.ts'
import {
  argumentsText,
  kindOfPart,
  mediaOf,
  newPart,
  repeatsStart,
  sourceOf,
  stringOf,
  unreadable,
  wordsIn,
} from '../answers/read-answer.ts'
import { initialOf, withSignature } from './block-content.ts'

/** A block of the upstream while it is being read. */
type IncomingBlock = {
  /**
   * The index of our block, which carries the content of this upstream block. Undefined if our block has ended before
   * the upstream's block (ruling U7).
   */
  index: number | undefined
  kind: 'text' | 'reasoning' | 'tool_call'
  /** For a call: tracks whether its arguments are a whole object. */
  shape: ArgumentShape
  /**
   * The arguments in the start event. If these are a whole object, deltas replace them. Otherwise deltas continue them.
   */
  initial: string
  /** The text in the start event. If the first delta has the same text, the delta is a repetition (ruling Y4). */
  begun: string
  signature: string
  /** The whole text so far. Used only for a model whose pieces repeat the text before them. */
  told: string
}

/**
 * Reads the blocks of an answer, which the upstream has numbered. A stop is reported only when another block starts or
 * stops, because a text block that follows directly continues the text. Only the answer's end shows whether a cap has
 * cut the last block.
 *
 * Upstreams overlap blocks and use numbers twice, but the gateway emits only one open text or reasoning block (I4). So
 * such a block ends when another one begins. Later text for the ended block starts a new block. A late signature or
 * stop is ignored (ruling U7).
 */
export class IncomingBlocks {
  readonly #narrator: Narrator
  /**
   * The blocks by the upstream's number. `ignored` is a block of an unknown kind. `work` is a block for work of the
   * provider itself, such as a search. Text in such a block is not the model's.
   */
  readonly #blocks = new Map<unknown, IncomingBlock | 'ignored' | 'work'>()
  /** The last block, if the upstream has stopped it and the stop is not reported yet. */
  #last: IncomingBlock | undefined
  /** The latest text or reasoning block, until the upstream stops it. */
  #speaking: IncomingBlock | undefined

  readonly #cumulative: Profile['cumulative']

  /** @param cumulative the kinds of content in which each piece repeats all text before it, from the profile */
  constructor(narrator: Narrator, cumulative: Profile['cumulative']) {
    this.#narrator = narrator
    this.#cumulative = cumulative
  }

  /** Reads a block's start. @param input returns the exact text of a call's input; called only if there is an input */
  start(number: unknown, block: JsonObject, input: () => string | undefined) {
    if (!this.#giveUp(number)) return this.#narrator.fail(unreadable())
    if (this.#blocks.size >= blocksMax) return this.#narrator.fail(tooMany)
    const known = blockOf(block)
    if (!known) {
      this.#blocks.set(number, providerWork.test(stringOf(block['type']) ?? '') ? 'work' : 'ignored')
      this.#noteUnknown(block)
      return
    }
    const incoming = this.#open(known)
    this.#blocks.set(number, incoming)
    if (incoming.kind !== 'tool_call') this.#speaking = incoming
    if (incoming.kind === 'text') {
      const words = wordsIn(block)
      if (words === undefined && Object.keys(block).length !== 1) this.#narrator.miss('part', unreadable())
      this.#begin(incoming, words)
    } else if (incoming.kind === 'tool_call') incoming.initial = initialOf(block, input)
    else if (block['type'] === 'redacted_thinking') {
      const data = stringOf(block['data'])
      if (data) this.#narrator.seal(incoming.index!, { kind: 'redacted', data })
    } else {
      this.#begin(incoming, wordsIn(block))
      incoming.signature = stringOf(block['signature']) ?? ''
    }
  }

  delta(number: unknown, piece: JsonObject) {
    if (this.#blocks.get(number) === 'ignored' && piece['type'] === 'text_delta')
      this.start(number, textBlock, noSource)
    const incoming = this.#blocks.get(number)
    if (typeof incoming === 'string') return
    if (!incoming) return this.#narrator.fail(unreadable())
    // The delta's members identify its kind, whatever its type (ruling Y5).
    if (piece['text'] != null) return this.#write(incoming, 'text', piece['text'])
    if (piece['thinking'] != null) return this.#write(incoming, 'reasoning', piece['thinking'])
    if (piece['partial_json'] != null) return this.#writeArguments(incoming, argumentsText(piece['partial_json']))
    const signature = stringOf(piece['signature'])
    if (signature) incoming.signature = withSignature(incoming.signature, signature)
  }

  /**
   * Notes a block that is not translated: as an unreadable call, as media, or else as an unreadable part. A block about
   * the provider's own work (see `providerWork`) does not count as an unreadable part.
   */
  #noteUnknown(block: JsonObject) {
    const type = stringOf(block['type']) ?? ''
    const media = mediaOf(type)
    if (kindOfPart(type) === 'tool_call') this.#narrator.miss('call', unreadable())
    else if (media) this.#narrator.media(media, sourceOf(block))
    else if (!providerWork.test(type)) this.#narrator.miss('part', unreadable())
  }

  #begin(incoming: IncomingBlock, words = '') {
    incoming.begun = words
    incoming.told = words
    this.#narrator.delta(incoming.index!, words)
  }

  stop(number: unknown) {
    const incoming = this.#blocks.get(number)
    this.#blocks.delete(number)
    if (!incoming || typeof incoming === 'string' || incoming.index === undefined) return
    this.#stopLast()
    this.#last = incoming
    if (this.#speaking === incoming) this.#speaking = undefined
    this.#complete(incoming)
  }

  /** Called when the answer has ended. Reports the withheld parts of blocks that were never stopped. */
  complete() {
    for (const incoming of this.#blocks.values()) if (typeof incoming !== 'string') this.#complete(incoming)
  }

  #open(block: AnswerBlock): IncomingBlock {
    const last = this.#last
    const isContinued = block.kind === 'text' && last?.kind === 'text'
    if (!isContinued) this.#stopLast()
    if (block.kind !== 'tool_call') this.#breakOpen()
    this.#last = undefined
    if (isContinued) return last
    const kind = block.kind as IncomingBlock['kind']
    const index = this.#narrator.open(block)
    return { index, kind, shape: createArgumentShape(), initial: '', begun: '', signature: '', told: '' }
  }

  /**
   * Frees a number for another block. Returns false if the number belongs to an incomplete call, whose rest may
   * follow.
   */
  #giveUp(number: unknown): boolean {
    const incoming = this.#blocks.get(number)
    if (incoming === undefined || typeof incoming === 'string') return true
    if (incoming.kind === 'tool_call' && incoming.initial === '' && !incoming.shape.isWhole()) return false
    this.stop(number)
    return true
  }

  #write(incoming: IncomingBlock, kind: IncomingBlock['kind'], text: unknown) {
    const piece = wordsIn(text)
    if (piece === undefined) return this.#narrator.miss('part', unreadable())
    const isCumulative = kind === 'reasoning' && this.#cumulative.includes(kind)
    const words = isCumulative ? newPart(incoming.told, piece) : piece
    if (isCumulative) incoming.told += words
    if (words === '') return
    if (incoming.kind !== kind) return this.#narrator.fail(unreadable())
    const isRepeated = repeatsStart(incoming.begun, words)
    incoming.begun = ''
    if (isRepeated) return
    if (incoming.index === undefined) this.#resume(incoming)
    this.#narrator.delta(incoming.index!, words)
  }

  #writeArguments(incoming: IncomingBlock, words: string) {
    const { initial } = incoming
    if (words) incoming.initial = ''
    if (words && initial && !repeatsStart(initial, words, true)) this.#writeArguments(incoming, initial)
    this.#write(incoming, 'tool_call', incoming.shape.take(words, this.#cumulative.includes('arguments')))
  }

  /** Opens a new block for the client, because more text has come for a block that has ended for the client (I7). */
  #resume(incoming: IncomingBlock) {
    this.#stopLast()
    this.#breakOpen()
    incoming.index = this.#narrator.open({ kind: incoming.kind as 'text' })
    this.#speaking = incoming
  }

  /** Writes the parts of a block that are withheld until its end: whole arguments and the signature. */
  #complete(incoming: IncomingBlock) {
    if (incoming.index === undefined) return
    this.#narrator.delta(incoming.index, incoming.initial + incoming.shape.rest())
    incoming.initial = ''
    if (incoming.signature && incoming.kind === 'reasoning') {
      this.#narrator.seal(incoming.index, { kind: 'signature', data: incoming.signature })
    }
    incoming.signature = ''
  }

  /**
   * Ends our open text or reasoning block, because only one such block may be open at a time (I4). If the upstream's
   * block has more text, `#resume` opens a new block of ours for it.
   */
  #breakOpen() {
    const incoming = this.#speaking
    if (incoming?.index === undefined) return
    this.#complete(incoming)
    this.#narrator.stop(incoming.index)
    incoming.index = undefined
  }

  #stopLast() {
    if (this.#last?.index !== undefined) this.#narrator.stop(this.#last.index)
    this.#last = undefined
  }
}

/** Returns our form of a block. Returns undefined for untranslated kinds, and for calls without a name. */
function blockOf(block: JsonObject): AnswerBlock | undefined {
  const type = block['type'] ?? 'text'
  if (type === 'redacted_thinking') return { kind: 'reasoning' }
  switch (kindOfPart(type)) {
    case 'text':
    case 'refusal':
      // A text block with the type of another wire is ignored if it has no text.
      return type === 'text' || wordsIn(block) !== undefined ? { kind: 'text' } : undefined
    case 'reasoning':
      return { kind: 'reasoning' }
    case 'tool_call': {
      const name = stringOf(block['name']) ?? stringOf(asObject(block['function'])?.['name'])
      return name?.trim() ? { kind: 'tool_call', callId: stringOf(block['id']) ?? '', name } : undefined
    }
    default:
      return undefined
  }
}

/** Blocks about hosted tools and conversation management. They are no part of the answer itself. */
const providerWork =
  /^(?:server_tool_use|mcp_tool_use|\w+_result|\w+_listing|container_upload|compaction|fallback|tool_\w+)$/

const textBlock = { type: 'text', text: '' }
const noSource = () => undefined

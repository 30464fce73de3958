import { decodeUtf8, encodeLatin1, type RawFrame, stringBehind, withData } from '../../bytes/frame-cutter.ts'
import { asObject, endOfString, type JsonObject } from '../../bytes/json.ts'
import { appendOwn, ownCopy } from '../../bytes/memory.ts'
import type { Profile } from '../../catalog/profile.ts'
import { isBlankJson, requireWholeCalls } from '../../inference/filters/whole-calls.ts'
import { blocksMax } from '../../inference/narrator.ts'
import { type ArgumentShape, createArgumentShape, endsObject } from '../answers/argument-shape.ts'
import { JsonPatch } from '../answers/json-patch.ts'
import { decodeString, type ProducedText } from '../answers/native-answer.ts'
import { keptSources, newPart, stringOf } from '../answers/read-answer.ts'
import {
  type ContentDelta,
  contentDeltas,
  type DeltaContent,
  isRepetition,
  missingInBlock,
  readDelta,
  readStart,
  type StartContent,
  saysNothing,
  withSignature,
} from './block-content.ts'
import { decodeStopReason } from './stop-reasons.ts'

/** A block that the upstream has not stopped, or that is not fully shown to the client. */
type OrderedBlock = {
  shownAs: number
  kind: string
  isCall: boolean
  content: StartContent
  /** The signature so far. If one frame had all of it, `frame` is that frame. */
  signature: { text: string; frame: RawFrame }
  hasInput: boolean
  /**
   * For a call: `shape` has the arguments of parsed frames. `raw` has the arguments of later, unparsed frames, as
   * written.
   */
  shape: ArgumentShape
  raw: string
  /**
   * For a call: whether other blocks have begun inside it. Then only its own stop or the answer's end ends the call.
   */
  isOverlapped: boolean
  /** The upstream's stop frame for a call with broken arguments. The frame is withheld. */
  stop: RawFrame
  isOver: boolean
  /** The content so far, if the upstream repeats it in each piece. */
  told: string
  /** The text to show once all earlier blocks have ended. */
  waiting: string
}

type AroundText = { start: string; end: string }

/** The constant bytes around a delta's text as received. `shown`: the bytes that the client gets, if they differ. */
type DeltaFrame = AroundText & { shown: AroundText | undefined; block: OrderedBlock; isInput: boolean }

/**
 * Orders the blocks of a messages stream for a messages client, by the grammar of message-wire §9 (ruling Y3). Clients
 * read one block after the other, expect consecutive numbers, and discard the content of most start events.
 * - The content of a start event is sent as deltas, and missing stops are added.
 * - An open text or thinking block ends when the next block begins. Some servers stop a thinking block late or use a
 *   number twice (ruling U7). Later text for the ended block becomes another block.
 * - A block that begins inside a call waits for the end of the call.
 * - Correct frames pass unchanged. For unreadable frames the methods return undefined, and the answer fails.
 */
export class BlockOrder {
  readonly #produced: ProducedText
  #count = 0
  #waitingLength = 0
  #known: DeltaFrame | undefined
  /** The blocks that the upstream has not stopped yet. The keys are the upstream's numbers of the blocks. */
  readonly #numbers = new Map<unknown, OrderedBlock>()
  /** Blocks that have not ended. */
  readonly #open = new Set<OrderedBlock>()
  /** Blocks that are not fully shown to the client. For the client, only the first of them has begun. */
  readonly #queue: OrderedBlock[] = []
  /** Checks that calls are whole (ruling Y5). This check gets the blocks as events. */
  readonly #calls = requireWholeCalls(decodeString)
  /** Whether the answer has a call that the client must run. */
  hasCalls = false
  /** Whether a block was left out because it says nothing. */
  #hasUnknown = false

  readonly #mint: (number: number) => string
  readonly #cumulative: Profile['cumulative']
  readonly #isFolding: () => boolean

  /**
   * @param produced counts the shown text
   * @param mint makes an id for a call without an id, from the block number that the client sees
   * @param cumulative the kinds of content in which each piece repeats all text before it, from the profile
   * @param isFolding whether the client gets one JSON answer. Calls with broken arguments then pass (ruling Y5)
   */
  constructor(
    produced: ProducedText,
    mint: (number: number) => string,
    cumulative: Profile['cumulative'],
    isFolding: () => boolean,
  ) {
    this.#produced = produced
    this.#mint = mint
    this.#cumulative = cumulative
    this.#isFolding = isFolding
  }

  get isEmpty(): boolean {
    return this.#count === 0
  }

  get isOpen(): boolean {
    return this.#open.size > 0
  }

  /** Whether the answer has too many blocks, or too much text is held back until a call ends. */
  get isFull(): boolean {
    return this.#count >= blocksMax || this.#waitingLength > waitingMax
  }

  compact(): void {
    for (const block of this.#queue) block.waiting = ownCopy(block.waiting)
    this.#known = undefined
  }

  /**
   * Returns the client's form of a delta that differs from the last parsed delta only in its text. Returns undefined
   * for any other frame.
   */
  repeat(frame: RawFrame): string | undefined {
    const known = this.#known
    if (known === undefined || frame.slice(0, known.start.length) !== known.start) return undefined
    const at = endOfString(frame, known.start.length - 1)
    if (frame.slice(at) !== known.end) return undefined
    const raw = frame.slice(known.start.length, at)
    if (lineEnd.test(raw)) return undefined
    this.#produced.addRaw(raw)
    if (known.isInput) this.#addInput(known.block, raw)
    return known.shown ? known.shown.start + raw + known.shown.end : frame
  }

  start(frame: RawFrame, data: string, event: JsonObject): string | undefined {
    const number = event['index']
    const came = asObject(event['content_block']) ?? {}
    const former = this.#numbers.get(number)
    const missing = missingInBlock(came, () => this.#mint(this.#count))
    // A block may not take the number of an incomplete call, whose rest may still arrive under that number.
    if (missing === undefined || (former && !this.#isSettled(former))) return undefined
    if (saysNothing(event['content_block'])) {
      this.#hasUnknown = true
      this.#numbers.delete(number)
      return ''
    }
    if (!stringOf(came['type'])) return undefined
    const block: JsonObject = { ...came }
    for (const [name, value] of missing) block[name] = JSON.parse(value)
    const ending = this.#endOthers()
    if (ending === undefined) return undefined
    const content = readStart(block, () =>
      keptSources(decodeUtf8(data), 'input', (root) => [asObject(root['content_block'])])(0),
    )
    for (const [name, value] of missing) content.emptied.set(name, value)
    const begun = this.#begin(number, block, content)
    const isRight = number === begun.shownAs && content.emptied.size === 0
    const shown = this.#show(begun, isRight ? frame : renumbered(frame, data, begun.shownAs, content.emptied))
    return ending + shown + content.deltas.map((delta) => this.#write(begun, delta)).join('')
  }

  /** Handles a delta. @param came the frame as received; `frame` may have an event line that we added */
  delta(frame: RawFrame, data: string, event: JsonObject, came: RawFrame): string | undefined {
    const number = event['index']
    let block = this.#numbers.get(number)
    const delta = asObject(event['delta'])
    if (block === undefined || delta === undefined) return undefined
    const content = readDelta(delta)
    if (content === undefined || !filledByDeltas.test(block.kind)) {
      return block.isOver ? undefined : this.#show(block, this.#numbered(block, frame, data, number))
    }
    const { type, member, value } = content
    const isBlank = value === '' || (block.isCall && isBlankJson(`${value}`))
    const isIgnored = isBlank || type === 'signature_delta'
    // If a sealed block (`redacted_thinking`) gets readable thinking, that thinking becomes a separate block.
    // Translated answers have the same form.
    const isUnsealed = type === 'thinking_delta' && block.kind === 'redacted_thinking'
    // SDKs ignore a delta that does not fit its block, so its content would be lost.
    if (!isUnsealed && !contentDeltas[type]!.blocks.test(block.kind)) return isIgnored ? '' : undefined
    if (value === undefined) return undefined
    let before = ''
    if (block.isOver || isUnsealed) {
      if (isIgnored || this.#isSaid(block, content)) return ''
      const ending = block.isCall ? undefined : this.#endOthers()
      if (ending === undefined) return undefined
      const kind = isUnsealed ? 'thinking' : block.kind
      const { told } = block
      const content_block = { type: kind, [kind]: '', ...(kind === 'thinking' && { signature: '' }) }
      block = this.#begin(
        number,
        content_block,
        readStart(content_block, () => undefined),
      )
      block.told = told
      const start = { type: 'content_block_start', index: block.shownAs, content_block }
      before = ending + this.#show(block, frameOf(start))
    }
    if (delta[member] == null || (!isBlank && this.#isSaid(block, content))) return before
    const isCumulative = this.#isCumulative(type)
    const news = isCumulative ? newPart(block.told, `${value}`) : value
    if (news === '' && value !== '') return before
    if (type !== delta['type'] || news !== delta[member]) return before + this.#write(block, { type, [member]: news })
    const shown = this.#numbered(block, frame, data, number)
    if (type === 'signature_delta') return this.#sign(block, value as string, shown)
    if (typeof value === 'string') {
      this.#tally(block, type, value)
      // A frame becomes a template only if the next delta needs no parsing. After a blank piece, or a piece that may
      // end the arguments, the next delta must be parsed.
      const isOpen = !isBlank && !isCumulative && !(block.isCall && endsObject(value))
      if (isOpen && block.content.deltas.length === 0) this.#learn(block, member, value, came, shown)
    }
    return before + this.#show(block, shown)
  }

  stop(frame: RawFrame, data: string, event: JsonObject): string | undefined {
    const number = event['index']
    const block = this.#numbers.get(number)
    this.#numbers.delete(number)
    this.#known = undefined
    if (block === undefined || block.isOver) return block === undefined || this.#isSettled(block) ? '' : undefined
    const stop = this.#numbered(block, frame, data, number)
    if (this.#isWhole(block) || !block.hasInput || this.#isFolding()) return this.#end(block, stop)
    block.stop = stop
    return ''
  }

  /**
   * Ends all blocks that are open.
   * @param stopReason the upstream's stop reason
   * @returns the frames that end the blocks; undefined if a call is incomplete, because then the answer fails
   */
  end(stopReason: unknown): string | undefined {
    const reason = decodeStopReason(`${stopReason}`)
    if (this.#hasUnknown && this.isEmpty) return undefined
    for (const block of this.#numbers.values()) if (!this.#isSettled(block) && block.isOver) return undefined
    const ended = this.#calls.push({ type: 'finish', reason, report: {} }).at(-1)
    if (ended?.type === 'fail' && !this.#isFolding()) return undefined
    let text = ''
    for (const block of this.#open) text += this.#end(block, block.stop || undefined)
    return text
  }

  #begin(number: unknown, { type, name }: JsonObject, content: StartContent): OrderedBlock {
    const kind = `${type}`
    this.hasCalls ||= kind === 'tool_use'
    const block: OrderedBlock = {
      shownAs: this.#count++,
      kind,
      isCall: kind.endsWith('tool_use'),
      content,
      signature: { text: content.signature, frame: '' },
      hasInput: false,
      shape: createArgumentShape(),
      raw: '',
      isOverlapped: false,
      stop: '',
      isOver: false,
      told: '',
      waiting: '',
    }
    this.#known = undefined
    this.#numbers.set(number, block)
    this.#open.add(block)
    this.#queue.push(block)
    const called = { kind: 'tool_call', callId: '', name: '' } as const
    this.#calls.push({ type: 'block_start', index: block.shownAs, block: block.isCall ? called : { kind: 'text' } })
    if (block.isCall) this.#produced.add(stringOf(name) ?? '')
    return block
  }

  /** Ends the open blocks before the next block starts. An incomplete call stays open, since its rest may follow. */
  #endOthers(): string | undefined {
    let text = ''
    for (const block of this.#open) {
      // If `stop` is set, the block is a call with broken arguments. A client would run this call once the next block
      // begins, so the answer fails here.
      if (block.stop !== '') return undefined
      if (block.isOverlapped) continue
      block.isOverlapped = block.shape.isRepeating() || !this.#isWhole(block)
      if (!block.isOverlapped) text += this.#end(block)
    }
    return text
  }

  /** Whether a delta repeats the start event's content, or arguments that are already complete (ruling Y4). */
  #isSaid(block: OrderedBlock, content: DeltaContent): boolean {
    if (isRepetition(block.content, content)) return true
    if (content.type !== 'input_json_delta') return false
    block.shape.take(decodeString(block.raw), false)
    block.raw = ''
    return block.shape.isWhole() && block.shape.take(`${content.value}`, false) === ''
  }

  /**
   * Whether all arguments of a call have come. If the upstream repeats them (ruling Y4), the repetition must be
   * complete too. Always true for other blocks.
   */
  #isSettled(block: OrderedBlock): boolean {
    return block.isOver ? block.shape.rest() === '' : this.#isWhole(block)
  }

  /** Whether the arguments of a call are whole. Always true for other blocks. */
  #isWhole(block: OrderedBlock): boolean {
    if (!block.isCall || (block.content.input !== '' && !block.hasInput)) return true
    this.#addInput(block, rawOf(block.shape.rest()))
    return block.hasInput && this.#calls.push({ type: 'block_stop', index: block.shownAs, cut: true }).length > 0
  }

  #end(block: OrderedBlock, stop = frameOf({ type: 'content_block_stop', index: block.shownAs })): string {
    this.#known = undefined
    const { input } = block.content
    const { text, frame } = block.signature
    let shown = frame === '' && text !== '' ? this.#write(block, { type: 'signature_delta', signature: text }) : ''
    shown += this.#show(block, frame)
    // A call without arguments has an empty object as its arguments.
    if (block.isCall && !block.hasInput) this.#produced.add(input || '{}')
    if (input !== '' && !block.hasInput) {
      block.raw = rawOf(input)
      const delta = { type: 'input_json_delta', partial_json: input }
      shown += this.#show(block, frameOf({ type: 'content_block_delta', index: block.shownAs, delta }))
    }
    shown += this.#show(block, stop)
    block.isOver = true
    this.#open.delete(block)
    for (let front = this.#queue[0]; front?.isOver; front = this.#queue[0]) {
      this.#queue.shift()
      const next = this.#queue[0]
      if (next) shown += next.waiting
      this.#waitingLength -= next?.waiting.length ?? 0
    }
    return shown
  }

  #sign(block: OrderedBlock, piece: string, shown: RawFrame): string {
    const before = block.signature
    const text = withSignature(before.text, piece)
    block.signature = { text, frame: text === piece ? shown : text === before.text ? before.frame : '' }
    return ''
  }

  #write(block: OrderedBlock, delta: ContentDelta): string {
    const value = delta[contentDeltas[delta.type]!.member]
    if (typeof value === 'string') this.#tally(block, delta.type, value)
    return this.#show(block, frameOf({ type: 'content_block_delta', index: block.shownAs, delta }))
  }

  #tally(block: OrderedBlock, type: string, value: string): void {
    if (type !== 'signature_delta') this.#produced.add(value)
    if (this.#isCumulative(type)) block.told = appendOwn(block.told, value)
    if (type !== 'input_json_delta') return
    block.hasInput ||= !isBlankJson(value)
    this.#addInput(block, rawOf(value))
  }

  /** Whether each delta of this type repeats all content before it (ruling Y4). */
  #isCumulative(type: string): boolean {
    const kind = type === 'input_json_delta' ? 'arguments' : type === 'thinking_delta' ? 'reasoning' : undefined
    return kind !== undefined && this.#cumulative.includes(kind)
  }

  #addInput(block: OrderedBlock, text: string): void {
    // The arguments may be whole now, and the next delta may repeat them. So the next delta must be parsed.
    if (endsObject(text)) this.#known = undefined
    block.raw = appendOwn(block.raw, text)
    this.#calls.push({ type: 'block_delta', index: block.shownAs, text })
  }

  #numbered({ shownAs }: OrderedBlock, frame: RawFrame, data: string, number: unknown): RawFrame {
    return number === shownAs ? frame : renumbered(frame, data, shownAs)
  }

  #show(block: OrderedBlock, text: string): string {
    if (this.#queue[0] === block) return text
    block.waiting += text
    this.#waitingLength += text.length
    return ''
  }

  #learn(block: OrderedBlock, member: string, value: unknown, came: RawFrame, shown: RawFrame): void {
    // The client does not see a waiting block yet. So nothing is learned from its deltas, and each delta is parsed.
    if (this.#queue[0] !== block) return
    const around = aroundText(came, member, value)
    const isSame = came === shown
    const shownAround = isSame ? undefined : aroundText(shown, member, value)
    const isInput = member === 'partial_json'
    this.#known = around && (isSame || shownAround) ? { ...around, shown: shownAround, block, isInput } : undefined
  }
}

/** The text as written inside a JSON string of a frame. */
function rawOf(text: string): string {
  return encodeLatin1(JSON.stringify(text)).slice(1, -1)
}

/** Matches the types of blocks whose deltas we understand. The deltas of other blocks are passed on. */
const filledByDeltas = /^text$|^(?:redacted_)?thinking$|tool_use$/
const lineEnd = /[\n\r]/

/** The most text that may wait inside a call, in characters. If more waits, the answer fails. */
const waitingMax = 32 * 1_048_576

/** Returns the bytes of a frame before and after the text of `member`. Undefined if that text is not `value`. */
function aroundText(frame: RawFrame, member: string, value: unknown): AroundText | undefined {
  const needle = `"${member}":`
  const raw = stringBehind(frame, needle)
  if (raw === '' || decodeString(raw) !== value) return undefined
  const at = frame.indexOf('"', frame.indexOf(needle) + needle.length) + 1
  return { start: frame.slice(0, at), end: frame.slice(at + raw.length) }
}

/** Replaces the block number in a frame by the client's number. @param emptied the new values of members, as JSON */
function renumbered(frame: RawFrame, data: string, shownAs: number, emptied?: ReadonlyMap<string, string>): string {
  const patch = new JsonPatch(Buffer.from(data, 'latin1'))
  patch.set([], new Map([['index', `${shownAs}`]]))
  if (emptied) patch.set(['content_block'], emptied)
  return withData(frame, patch.result().toString('latin1'))
}

function frameOf(event: { type: string; index: number } & JsonObject): RawFrame {
  return `event: ${event.type}\ndata: ${encodeLatin1(JSON.stringify(event))}\n\n`
}

import { decodeUtf8, encodeLatin1, type RawFrame, stringBehind, withData } from '../../bytes/frame-cutter.ts'
import { asObject, endOfString, type JsonObject } from '../../bytes/json.ts'
import { appendOwn, ownCopy } from '../../bytes/own-copy.ts'
import { isBlankJson, requireWholeCalls } from '../../inference/filters/whole-calls.ts'
import { blocksMax } from '../../inference/narrator.ts'
import { type ArgumentShape, createArgumentShape, endsObject } from '../answers/argument-shape.ts'
import { JsonPatch } from '../answers/json-patch.ts'
import { decodeString, type ProducedText } from '../answers/produced-text.ts'
import { keptSources, stringOf } from '../answers/read-answer.ts'
import {
  type ContentDelta,
  contentDeltas,
  type DeltaContent,
  isRepetition,
  missingInBlock,
  readDelta,
  readStart,
  type StartContent,
  withSignature,
} from './block-content.ts'
import { decodeStopReason } from './stop-reasons.ts'

/** A block that the upstream has not stopped, or that the client has not seen to its end. */
type OrderedBlock = {
  shownAs: number
  kind: string
  isCall: boolean
  content: StartContent
  /** All that came of it, and the frame if that is all of it. */
  signature: { text: string; frame: RawFrame }
  hasInput: boolean
  /** Of a call: its arguments so far, and those after them that were not looked at, as they stand in frames. */
  shape: ArgumentShape
  raw: string
  /** Of a call: others have begun within it, so that its own stop ends it, or the end of the answer. */
  isOverlapped: boolean
  /** The upstream's stop of a broken call, which is withheld. */
  stop: RawFrame
  isOver: boolean
  /** The text that is shown once the blocks before it are over. */
  waiting: string
}

type AroundText = { start: string; end: string }

/** The bytes around the text of a delta, as they came, and as they are shown if that differs. */
type DeltaFrame = AroundText & { shown: AroundText | undefined; block: OrderedBlock; isInput: boolean }

/**
 * The blocks of a messages stream for a messages client, by the grammar of message-wire §9 (ruling Y3). Clients read one
 * block after the other, by dense numbers, and empty every start. So content of a start is written as deltas, and a stop
 * that is missing is added. Some servers keep thinking open while text streams and stop it late, or give a number twice
 * (ruling U7). The next block ends the text or thinking before it, text that comes later is another block, and a late
 * stop or signature is ignored. A block that begins within a call waits for the end of the call. Frames that are right
 * pass as they came. What cannot be read is undefined, and the answer fails.
 */
export class BlockOrder {
  readonly #produced: ProducedText
  #count = 0
  #waitingLength = 0
  #known: DeltaFrame | undefined
  /** By the upstream's number, until the upstream stops it. */
  readonly #numbers = new Map<unknown, OrderedBlock>()
  /** Those that are not over. */
  readonly #open = new Set<OrderedBlock>()
  /** Those that the client has not seen to their end. The first is open there. */
  readonly #queue: OrderedBlock[] = []
  /** Judges the calls (ruling Y5), which are given to it as events. */
  readonly #calls = requireWholeCalls(decodeString)
  /** Whether the client has to run a tool. */
  hasCalls = false

  readonly #mint: (number: number) => string

  /** @param produced counts what is shown. @param mint an id for a call that has none, by the number it is shown as */
  constructor(produced: ProducedText, mint: (number: number) => string) {
    this.#produced = produced
    this.#mint = mint
  }

  get isEmpty(): boolean {
    return this.#count === 0
  }

  get isOpen(): boolean {
    return this.#open.size > 0
  }

  /** No answer has more blocks, or so much within a call: it is kept until it can be shown. */
  get isFull(): boolean {
    return this.#count >= blocksMax || this.#waitingLength > waitingMax
  }

  compact(): void {
    for (const block of this.#queue) block.waiting = ownCopy(block.waiting)
    this.#known = undefined
  }

  /** A delta as it is shown, if it differs from one before in its text alone. */
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
    // The rest of such a call may still come under its number.
    if (!stringOf(came['type']) || missing === undefined || (former && !this.#isSettled(former))) return undefined
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

  /** @param came the frame as it came, if an event line was added to `frame` */
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
    // A thought of a sealed one is a block of its own, as in translation.
    const isUnsealed = type === 'thinking_delta' && block.kind === 'redacted_thinking'
    // SDKs pass over what does not belong to the block: it would be lost.
    if (!isUnsealed && !contentDeltas[type]!.blocks.test(block.kind)) return isIgnored ? '' : undefined
    if (value === undefined) return undefined
    let before = ''
    if (block.isOver || isUnsealed) {
      if (isIgnored || this.#isSaid(block, content)) return ''
      const ending = block.isCall ? undefined : this.#endOthers()
      if (ending === undefined) return undefined
      const kind = isUnsealed ? 'thinking' : block.kind
      const content_block = { type: kind, [kind]: '', ...(kind === 'thinking' && { signature: '' }) }
      block = this.#begin(
        number,
        content_block,
        readStart(content_block, () => undefined),
      )
      const start = { type: 'content_block_start', index: block.shownAs, content_block }
      before = ending + this.#show(block, frameOf(start))
    }
    if (delta[member] == null || (!isBlank && this.#isSaid(block, content))) return before
    if (type !== delta['type'] || value !== delta[member]) return before + this.#write(block, { type, [member]: value })
    const shown = this.#numbered(block, frame, data, number)
    if (type === 'signature_delta') return this.#sign(block, value as string, shown)
    if (typeof value === 'string') {
      this.#tally(block, type, value)
      // After arguments that are blank, or may be whole, the next delta has to be looked into too.
      const isOpen = !isBlank && !(block.isCall && endsObject(value))
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
    if (this.#isWhole(block) || !block.hasInput) return this.#end(block, stop)
    block.stop = stop
    return ''
  }

  /** All blocks are over, if the answer may end so. @param stopReason as the upstream says it */
  end(stopReason: unknown): string | undefined {
    const reason = decodeStopReason(`${stopReason}`)
    for (const block of this.#numbers.values()) if (!this.#isSettled(block) && block.isOver) return undefined
    if (this.#calls.push({ type: 'finish', reason, report: {} }).at(-1)?.type === 'fail') return undefined
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

  /** Ends what the upstream has not stopped before the next block. A call that is not whole stays: its rest may come. */
  #endOthers(): string | undefined {
    let text = ''
    for (const block of this.#open) {
      // Clients run a call once the next block begins.
      if (block.stop !== '') return undefined
      if (block.isOverlapped) continue
      block.isOverlapped = block.shape.isRepeating() || !this.#isWhole(block)
      if (!block.isOverlapped) text += this.#end(block)
    }
    return text
  }

  /** Whether a delta says what came already: the start, or whole arguments (ruling Y4). */
  #isSaid(block: OrderedBlock, content: DeltaContent): boolean {
    if (isRepetition(block.content, content)) return true
    if (content.type !== 'input_json_delta') return false
    block.shape.take(decodeString(block.raw), false)
    block.raw = ''
    return block.shape.isWhole() && block.shape.take(`${content.value}`, false) === ''
  }

  /** False for a call that is not whole, or of whose arguments a part was said again after they were whole (ruling Y4). */
  #isSettled(block: OrderedBlock): boolean {
    return block.isOver ? block.shape.rest() === '' : this.#isWhole(block)
  }

  /** False for a call whose arguments have not come, or not to their end. */
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
    // A call without arguments has an empty object for them.
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
    if (type !== 'input_json_delta') return
    block.hasInput ||= !isBlankJson(value)
    this.#addInput(block, rawOf(value))
  }

  #addInput(block: OrderedBlock, text: string): void {
    // The arguments may be whole now, and the next delta a repetition.
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
    // A block that waits has not begun for the client, so its deltas are not repeated past the others.
    if (this.#queue[0] !== block) return
    const around = aroundText(came, member, value)
    const isSame = came === shown
    const shownAround = isSame ? undefined : aroundText(shown, member, value)
    const isInput = member === 'partial_json'
    this.#known = around && (isSame || shownAround) ? { ...around, shown: shownAround, block, isInput } : undefined
  }
}

/** A text as it stands in a JSON string of a frame. */
function rawOf(text: string): string {
  return encodeLatin1(JSON.stringify(text)).slice(1, -1)
}

/** Of other blocks it is not known here which deltas they have. */
const filledByDeltas = /^text$|^(?:redacted_)?thinking$|tool_use$/
const lineEnd = /[\n\r]/

/** The most text that waits within a call, in characters: such an answer is broken. */
const waitingMax = 32 * 1_048_576

/** The bytes around the text of a delta, if the text is found where this member stands. */
function aroundText(frame: RawFrame, member: string, value: unknown): AroundText | undefined {
  const needle = `"${member}":`
  const raw = stringBehind(frame, needle)
  if (raw === '' || decodeString(raw) !== value) return undefined
  const at = frame.indexOf('"', frame.indexOf(needle) + needle.length) + 1
  return { start: frame.slice(0, at), end: frame.slice(at + raw.length) }
}

/** @param emptied members of the block that are replaced */
function renumbered(frame: RawFrame, data: string, shownAs: number, emptied?: ReadonlyMap<string, string>): string {
  const patch = new JsonPatch(Buffer.from(data, 'latin1'))
  patch.set([], new Map([['index', `${shownAs}`]]))
  if (emptied) patch.set(['content_block'], emptied)
  return withData(frame, patch.result().toString('latin1'))
}

function frameOf(event: { type: string; index: number } & JsonObject): RawFrame {
  return `event: ${event.type}\ndata: ${encodeLatin1(JSON.stringify(event))}\n\n`
}

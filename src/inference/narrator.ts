import type { AnswerBlock, AnswerEvent, Fault, MediaKind, StopReason } from './answer.ts'
import type { Sealed } from './request.ts'
import { mergeUsage, type UsageReport } from './usage.ts'

/** For each stop reason: whether the model was cut off, so that the answer may end inside a block. */
export const cutsBlocks: Readonly<Record<StopReason, boolean>> = {
  end: false,
  calls: false,
  max_tokens: true,
  window: true,
  stop_sequence: false,
  refused: true,
  paused: false,
}

/**
 * The most calls in one answer, and the most blocks in one piece of a stream. Real models make some hundred calls at
 * most. Blocks other than calls are counted per piece, since a server may alternate between thinking and text.
 */
export const callsMax = 4_096
export const blocksMax = 8_192
export const tooMany: Fault = {
  kind: 'broken',
  text: 'The model sent an answer of too many parts.',
  unread: 'oversize',
}

/**
 * Turns a decoder's reports into events, and enforces the laws I1–I10 that do not depend on the wire. Start and end
 * come once. Blocks are numbered, and stopped once. No delta is empty. A call without arguments gets `{}`. If the
 * blocks contradict the model's stop reason, the reason is corrected. Reports after the end are ignored.
 */
export class Narrator {
  #events: AnswerEvent[] = []
  #hasStarted = false
  #isOver = false
  #count = 0
  /** How many blocks had started when `take` last returned events. */
  #taken = 0
  #calls = 0
  #report: UsageReport = {}
  /** Whether the answer has a tool call, text other than reasoning, or media. */
  #isSaid = false
  /** Faults of parts or calls that could not be read (ruling Y5). */
  #missed: { part?: Fault; call?: Fault } = {}
  /** The open blocks, in the order they were opened. */
  readonly #open = new Map<number, { isCall: boolean; isSpoken: boolean; isEmpty: boolean }>()

  get isOver(): boolean {
    return this.#isOver
  }

  /** Whether the answer so far has content besides reasoning: a call, a text that is not empty, or media. */
  get hasSaid(): boolean {
    return this.#isSaid
  }

  /** The number of blocks so far, which is the number of the next block. */
  get count(): number {
    return this.#count
  }

  /** The counters reported so far. */
  get report(): UsageReport {
    return this.#report
  }

  /** Returns the events since the last call. */
  take(): AnswerEvent[] {
    const taken = this.#events
    this.#events = []
    this.#taken = this.#count
    return taken
  }

  start(): void {
    if (this.#hasStarted) return
    this.#hasStarted = true
    this.#tell({ type: 'start' })
  }

  /** Starts a block. @returns its number */
  open(block: AnswerBlock): number {
    this.start()
    const isCall = block.kind === 'tool_call'
    if (this.#count - this.#taken >= blocksMax || (isCall && this.#calls >= callsMax)) this.fail(tooMany)
    const index = this.#count++
    if (isCall) this.#calls++
    this.#isSaid ||= isCall
    this.#open.set(index, { isCall, isSpoken: block.kind !== 'reasoning', isEmpty: true })
    this.#tell({ type: 'block_start', index, block })
    return index
  }

  delta(index: number, text: string): void {
    if (this.#isOver || text === '') return
    const block = this.#open.get(index)!
    block.isEmpty = false
    this.#isSaid ||= block.isSpoken
    this.#tell({ type: 'block_delta', index, text })
  }

  seal(index: number, sealed: Sealed): void {
    this.#tell({ type: 'block_seal', index, sealed })
  }

  stop(index: number, cut = false): void {
    const block = this.#open.get(index)
    if (!block) return
    if (block.isCall && block.isEmpty && !cut) this.#tell({ type: 'block_delta', index, text: '{}' })
    this.#open.delete(index)
    this.#tell({ type: 'block_stop', index, cut })
  }

  /** Reports media. A filter later replaces media by a sentence (ruling Y9). */
  media(media: MediaKind, source: string | undefined): void {
    this.start()
    this.#isSaid ||= source !== undefined
    this.#tell({ type: 'media', media, source })
  }

  /**
   * Records a part or a call that could not be read (ruling Y5). An unreadable call fails the answer, unless the answer
   * is cut anyway. An unreadable part fails it only if it has no other content, because an empty answer would look like
   * a success.
   */
  miss(what: 'part' | 'call', fault: Fault): void {
    this.#missed[what] = fault
  }

  usage(report: UsageReport): void {
    if (Object.keys(report).length === 0) return
    const merged = mergeUsage(this.#report, report)
    if (merged === this.#report) return
    this.#report = merged
    this.start()
    this.#tell({ type: 'usage', report: merged })
  }

  /** Reports a sign of life. @param reasons true if a reasoning item begins, false if it ends */
  alive(reasons?: boolean): void {
    this.start()
    this.#tell(reasons === undefined ? { type: 'alive' } : { type: 'alive', reasons })
  }

  /**
   * Called when the upstream reported completion. If the output cap, a full context window or a refusal ended the
   * answer, the open blocks are cut.
   */
  finish(reason: StopReason, stopSequence?: string): void {
    this.start()
    const { part, call } = this.#missed
    const missed = (cutsBlocks[reason] ? undefined : call) ?? (this.#isSaid ? undefined : part)
    if (missed) {
      this.fail(missed)
      return
    }
    for (const index of [...this.#open.keys()]) this.stop(index, cutsBlocks[reason])
    const isOrdinary = reason === 'end' || reason === 'calls'
    const end: AnswerEvent = {
      type: 'finish',
      reason: isOrdinary ? (this.#calls > 0 ? 'calls' : 'end') : reason,
      report: this.#report,
    }
    if (stopSequence !== undefined) end.stopSequence = stopSequence
    this.#tell(end)
    this.#isOver = true
  }

  fail(fault: Fault): void {
    this.start()
    for (const index of [...this.#open.keys()]) this.stop(index, true)
    this.#tell({ type: 'fail', fault })
    this.#isOver = true
  }

  /** Adds an event. Nothing is added after the end. */
  #tell(event: AnswerEvent): void {
    if (!this.#isOver) this.#events.push(event)
  }
}

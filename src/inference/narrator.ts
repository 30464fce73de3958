import type { AnswerBlock, AnswerEvent, Fault, MediaKind, StopReason } from './answer.ts'
import type { Sealed } from './request.ts'
import { mergeUsage, type UsageReport } from './usage.ts'

/** Whether an answer that ends for this reason may end within a block, because the model was cut. */
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
 * No model makes more calls than these at once: the most are some hundred. Each call is several events, and those of
 * one piece of a stream are made all at once. Of other blocks only those in one piece count. A server may change between
 * thinking and text with each piece, and a filter may join them again. What keeps shown blocks bounds them itself.
 */
export const callsMax = 4_096
export const blocksMax = 8_192
export const tooMany: Fault = {
  kind: 'broken',
  text: 'The model sent an answer of too many parts.',
  unread: 'oversize',
}

/**
 * A decoder reports an answer through it. It keeps the laws I1–I10 that do not depend on the wire. Start and end come
 * once, and blocks are numbered and stopped once. No delta is empty, a call without arguments gets `{}`, and the reason
 * is corrected by what was seen. After the end it ignores all calls.
 */
export class Narrator {
  #events: AnswerEvent[] = []
  #hasStarted = false
  #isOver = false
  #count = 0
  /** Blocks of events that were taken. */
  #taken = 0
  #calls = 0
  #report: UsageReport = {}
  /** Whether the answer has anything but reasoning. */
  #isSaid = false
  /** Something of it could not be read, or a call (ruling Y5). */
  #missed: { part?: Fault; call?: Fault } = {}
  /** Open blocks in the order of opening. */
  readonly #open = new Map<number, { isCall: boolean; isSpoken: boolean; isEmpty: boolean }>()

  get isOver(): boolean {
    return this.#isOver
  }

  /** The answer has anything but reasoning so far. */
  get hasSaid(): boolean {
    return this.#isSaid
  }

  /** Blocks so far: the next one's number. */
  get count(): number {
    return this.#count
  }

  /** The events since the last time. */
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

  /** @returns the number of the block */
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

  /** Media, which a filter replaces by a sentence (ruling Y9). */
  media(media: MediaKind, source: string | undefined): void {
    this.start()
    this.#isSaid ||= source !== undefined
    this.#tell({ type: 'media', media, source })
  }

  /**
   * Notes what could not be read (ruling Y5). An answer that says nothing else fails with this fault at its end, since it would be an
   * empty success. A call that could not be read is no ordinary end either, whatever else was said.
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

  /** @param reasons a reasoning item begins, or ends */
  alive(reasons?: boolean): void {
    this.start()
    this.#tell(reasons === undefined ? { type: 'alive' } : { type: 'alive', reasons })
  }

  /** The upstream's word that it is complete. A cap, a full window or a refusal cuts what is still open. */
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

  /** All events are added here, and after the end none is. */
  #tell(event: AnswerEvent): void {
    if (!this.#isOver) this.#events.push(event)
  }
}

import type { AnswerBlock, AnswerEvent, Fault, StopReason } from './answer.ts'
import type { Sealed } from './request.ts'
import { mergeUsage, type UsageReport } from './usage.ts'

/**
 * What a decoder tells an answer with. It keeps the laws I1–I10 that do not depend on the wire: start and end once,
 * blocks numbered and stopped once, no empty delta, `{}` for a call without arguments, the reason corrected by what
 * was seen. After the end it is deaf.
 */
export type Narrator = {
  readonly isOver: boolean
  /** Blocks so far: the next one's number. */
  readonly count: number
  /** The events since the last time. */
  take(): AnswerEvent[]
  start(): void
  open(block: AnswerBlock): number
  delta(index: number, text: string): void
  seal(index: number, sealed: Sealed): void
  stop(index: number, cut?: boolean): void
  usage(report: UsageReport): void
  /** @param reasons a reasoning item begins, or ends */
  alive(reasons?: boolean): void
  /** The upstream's word that it is complete. A cap, a full window or a refusal cuts what is still open. */
  finish(reason: StopReason, stopSequence?: string): void
  fail(fault: Fault): void
}

const cutting: ReadonlySet<StopReason> = new Set(['max_tokens', 'window', 'refused'])

export function createNarrator(): Narrator {
  let events: AnswerEvent[] = []
  let hasStarted = false
  let isOver = false
  let count = 0
  let hasCalls = false
  let report: UsageReport = {}
  /** Open blocks in the order of opening. */
  const open = new Map<number, { isCall: boolean; isEmpty: boolean }>()

  const narrator: Narrator = {
    get isOver() {
      return isOver
    },
    get count() {
      return count
    },
    take() {
      const taken = events
      events = []
      return taken
    },
    start() {
      if (hasStarted) return
      hasStarted = true
      events.push({ type: 'start' })
    },
    open(block) {
      narrator.start()
      const index = count++
      const isCall = block.kind === 'tool_call'
      if (isCall) hasCalls = true
      open.set(index, { isCall, isEmpty: true })
      events.push({ type: 'block_start', index, block })
      return index
    },
    delta(index, text) {
      if (isOver || text === '') return
      open.get(index)!.isEmpty = false
      events.push({ type: 'block_delta', index, text })
    },
    seal(index, sealed) {
      if (!isOver) events.push({ type: 'block_seal', index, sealed })
    },
    stop(index, cut = false) {
      const block = open.get(index)
      if (isOver || !block) return
      if (block.isCall && block.isEmpty && !cut) events.push({ type: 'block_delta', index, text: '{}' })
      open.delete(index)
      events.push({ type: 'block_stop', index, cut })
    },
    usage(news) {
      if (isOver || Object.keys(news).length === 0) return
      const merged = mergeUsage(report, news)
      if (merged === report) return
      report = merged
      narrator.start()
      events.push({ type: 'usage', report })
    },
    alive(reasons) {
      if (isOver) return
      narrator.start()
      events.push(reasons === undefined ? { type: 'alive' } : { type: 'alive', reasons })
    },
    finish(reason, stopSequence) {
      if (isOver) return
      narrator.start()
      for (const index of [...open.keys()]) narrator.stop(index, cutting.has(reason))
      const isOrdinary = reason === 'end' || reason === 'calls'
      const end: AnswerEvent = {
        type: 'finish',
        reason: isOrdinary ? (hasCalls ? 'calls' : 'end') : reason,
        report,
      }
      if (stopSequence !== undefined) end.stopSequence = stopSequence
      events.push(end)
      isOver = true
    },
    fail(fault) {
      if (isOver) return
      narrator.start()
      for (const index of [...open.keys()]) narrator.stop(index, true)
      events.push({ type: 'fail', fault })
      isOver = true
    },
  }
  return narrator
}

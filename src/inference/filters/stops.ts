import type { Step } from '../../bytes/step.ts'
import type { AnswerEvent } from '../answer.ts'
import { mergeUsage, type UsageReport } from '../usage.ts'
import { compileStops, StopMatcher, type StopScan } from './stop-matcher.ts'

/**
 * Enforces the stop sequences that the upstream does not enforce, in text blocks only (R-STOP). The text ends before
 * the match. `finish` follows at once, before the upstream's own end, with the counters reported so far. The delivery
 * decides whether to keep reading the upstream (rulings T15, C12). The earliest match wins. If several matches begin
 * at the same place, the longest wins. If the upstream reports the sequence at which it stopped, that sequence is
 * believed only if the client requested it.
 * @param asked all sequences of the request
 * @param local the sequences to enforce here
 */
export function cutAtStops(asked: readonly string[], local: readonly string[]): Step<AnswerEvent, AnswerEvent> {
  const wanted = local.filter((stop) => stop !== '')
  const patterns = wanted.length === 0 ? undefined : compileStops(wanted)
  /** A matcher per open block; undefined for blocks that are not searched. */
  const open = new Map<number, StopMatcher | undefined>()
  /**
   * The start event of a text block of which nothing is shown yet. If a stop sequence begins at the block's first
   * character, the block is never shown (3.2).
   */
  let unshown: (AnswerEvent & { type: 'block_start' }) | undefined
  let report: UsageReport = {}
  let isOver = false
  return { push, end: () => [] }

  function push(event: AnswerEvent): AnswerEvent[] {
    if (isOver) return []
    switch (event.type) {
      case 'block_start':
        if (event.block.kind !== 'text' || patterns === undefined) {
          open.set(event.index, undefined)
          return [...startShown(), event]
        }
        open.set(event.index, new StopMatcher(patterns))
        unshown = event
        return []
      case 'block_delta': {
        const matcher = open.get(event.index)
        return matcher === undefined ? [event] : tell(event.index, matcher.push(event.text))
      }
      case 'block_stop': {
        const matcher = open.get(event.index)
        const events = matcher ? tell(event.index, matcher.end()) : []
        open.delete(event.index)
        if (isOver) return events
        return unshown?.index === event.index ? [...startShown(), event] : [...events, event]
      }
      case 'usage':
        report = mergeUsage(report, event.report)
        return [event]
      case 'finish': {
        if (event.stopSequence === undefined || event.reason === 'stop_sequence') return [event]
        const { stopSequence, ...rest } = event
        return [event.reason === 'end' && asked.includes(stopSequence) ? { ...event, reason: 'stop_sequence' } : rest]
      }
      default:
        return [event]
    }
  }

  function startShown(): AnswerEvent[] {
    const starts = unshown ? [unshown] : []
    unshown = undefined
    return starts
  }

  function tell(index: number, { shown, stop }: StopScan): AnswerEvent[] {
    const events: AnswerEvent[] = shown === '' ? [] : [...startShown(), { type: 'block_delta', index, text: shown }]
    if (stop === undefined) return events
    isOver = true
    for (const [other, matcher] of open) {
      if (other === unshown?.index) continue
      events.push({ type: 'block_stop', index: other, cut: other !== index && matcher === undefined })
    }
    events.push({ type: 'finish', reason: 'stop_sequence', stopSequence: stop, report })
    return events
  }
}

import type { Step } from '../../bytes/step.ts'
import type { AnswerEvent } from '../answer.ts'
import { mergeUsage, type UsageReport } from '../usage.ts'

/**
 * Stop sequences. Those the upstream does not enforce are found here, in text blocks only (R-STOP): the text ends
 * before the match, and `finish` follows at once, before the upstream's own end, with what it has reported so far;
 * whoever pumps sees the `finish` and hangs up (ruling T15). Of two matches the earlier counts, then the longer. An
 * upstream that names the sequence it stopped at is believed if it was asked for.
 * @param asked all sequences of the request
 * @param local those to find here
 */
export function cutAtStops(asked: readonly string[], local: readonly string[]): Step<AnswerEvent, AnswerEvent> {
  const stops = local.filter((stop) => stop !== '').sort((a, b) => b.length - a.length)
  /** Per open block: undefined for other kinds than text, else the text that may be the beginning of a match. */
  const open = new Map<number, string | undefined>()
  /** The start of a text block of which nothing is shown yet: a match at its first character leaves no block (3.2). */
  let unshown: (AnswerEvent & { type: 'block_start' }) | undefined
  let report: UsageReport = {}
  let isOver = false
  return { push, end: () => [] }

  function push(event: AnswerEvent): AnswerEvent[] {
    if (isOver) return []
    switch (event.type) {
      case 'block_start':
        open.set(event.index, event.block.kind === 'text' ? '' : undefined)
        if (event.block.kind !== 'text' || stops.length === 0) return [...startShown(), event]
        unshown = event
        return []
      case 'block_delta': {
        const withheld = open.get(event.index)
        return withheld === undefined || stops.length === 0 ? [event] : scan(event.index, withheld + event.text, false)
      }
      case 'block_stop': {
        const withheld = open.get(event.index)
        const events = withheld ? scan(event.index, withheld, true) : []
        open.delete(event.index)
        if (isOver) return events
        return unshown?.index === event.index ? [...startShown(), event] : [...events, event]
      }
      case 'usage':
        report = mergeUsage(report, event.report)
        return [event]
      case 'finish': {
        const { stopSequence, ...rest } = event
        if (stopSequence === undefined || event.reason === 'stop_sequence') return [event]
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

  function scan(index: number, text: string, isLast: boolean): AnswerEvent[] {
    const found = findStop(text, isLast)
    const shown = found ? text.slice(0, found.at) : text
    open.set(index, found ? text.slice(found.at) : '')
    const events: AnswerEvent[] = shown === '' ? [] : [...startShown(), { type: 'block_delta', index, text: shown }]
    if (found?.stop === undefined) return events
    isOver = true
    for (const [other, withheld] of open) {
      if (other === unshown?.index) continue
      events.push({ type: 'block_stop', index: other, cut: other !== index && withheld === undefined })
    }
    events.push({ type: 'finish', reason: 'stop_sequence', stopSequence: found.stop, report })
    return events
  }

  /** The first place where a sequence stands, or where one may begin that the text is too short to tell. */
  function findStop(text: string, isLast: boolean): { at: number; stop?: string } | undefined {
    let at = text.length
    let stop: string | undefined
    for (const candidate of stops) {
      const place = text.indexOf(candidate)
      if (place >= 0 && place < at) {
        at = place
        stop = candidate
      }
    }
    for (const candidate of isLast ? [] : stops) {
      for (let i = Math.max(0, text.length - candidate.length + 1); i < at || (i === at && i < text.length); i++) {
        if (stop !== undefined && i === at && candidate.length <= stop.length) break
        if (text.startsWith(candidate.slice(0, text.length - i), i)) {
          at = i
          stop = undefined
          break
        }
      }
    }
    return at < text.length ? (stop === undefined ? { at } : { at, stop }) : undefined
  }
}

import type { Step } from '../../bytes/step.ts'
import type { AnswerEvent } from '../answer.ts'
import { mergeUsage, type UsageReport } from '../usage.ts'

/**
 * Enforces stop sequences in text blocks (R-STOP). The text ends before the earliest match. If several matches begin
 * there, the longest counts. `finish` follows at once, with the counters reported so far. The delivery decides whether
 * to keep reading the upstream (rulings T15, C12). If an upstream reports an ordinary end and a stop sequence, the
 * sequence is believed only if the client requested it.
 * @param asked all sequences of the request
 * @param local the sequences that the upstream does not enforce
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

/**
 * All stop sequences as one automaton (Aho and Corasick, 1975). A state is a beginning shared by some sequences;
 * state 0 is the empty text. A sequence of 1,000 characters has 1,000 states, so states are stored in arrays of
 * numbers.
 */
type StopPatterns = {
  stops: readonly string[]
  /** The first characters of all sequences, as code units. */
  firsts: ReadonlySet<number>
  /**
   * The states form a tree: the text of a child is the text of its parent and one more character. For each state:
   * `longer` is its first child, `sibling` is the next child of its parent, and `code` is its own last character.
   */
  longer: Int32Array
  sibling: Int32Array
  code: Uint16Array
  /** For each state: the state with the longest text that is a proper suffix of this state's text. */
  fallback: Int32Array
  /**
   * For each state: the longest stop sequence with which its text ends, as an index in `stops`. The value is -1 if the
   * text ends with no stop sequence.
   */
  ending: Int32Array
  /** For each state: how many characters at the end of its text can still become a stop sequence. */
  growing: Int32Array
}

/** Builds the automaton that finds stop sequences in a text. @param stops the stop sequences, without empty ones */
export function compileStops(stops: readonly string[]): StopPatterns {
  const most = stops.reduce((sum, { length }) => sum + length, 1)
  const numbers = () => new Int32Array(most)
  const depth = numbers()
  const patterns = {
    ...{ stops, firsts: new Set<number>(), longer: numbers(), sibling: numbers(), code: new Uint16Array(most) },
    ...{ fallback: numbers(), ending: numbers().fill(-1), growing: numbers() },
  }
  const { firsts, longer, sibling, code, fallback, ending, growing } = patterns
  let count = 1
  for (const [place, stop] of stops.entries()) {
    firsts.add(stop.charCodeAt(0))
    let state = 0
    for (let at = 0; at < stop.length; at++) {
      let next = stepOf(patterns, state, stop.charCodeAt(at))
      if (next === 0) {
        next = count++
        code[next] = stop.charCodeAt(at)
        sibling[next] = longer[state]!
        longer[state] = next
        depth[next] = at + 1
      }
      state = next
    }
    ending[state] = place
  }
  // States with shorter texts come first, because the other states fall back to them.
  const waiting = [0]
  for (let i = 0; i < waiting.length; i++) {
    const state = waiting[i]!
    const back = fallback[state]!
    if (ending[state] === -1) ending[state] = ending[back]!
    growing[state] = longer[state] === 0 ? growing[back]! : depth[state]!
    for (let next = longer[state]!; next !== 0; next = sibling[next]!) {
      if (state !== 0) fallback[next] = follow(patterns, back, code[next]!)
      waiting.push(next)
    }
  }
  return patterns
}

/** Returns the state for the text of `state` with `character` added; 0 if there is no such state. */
function stepOf({ longer, sibling, code }: StopPatterns, state: number, character: number): number {
  let next = longer[state]!
  while (next !== 0 && code[next] !== character) next = sibling[next]!
  return next
}

/**
 * Reads one character of the input. Each state stands for a text, which is the beginning of a stop sequence.
 * @param counting counts the visited states
 * @returns the state with the longest text that the input ends with
 */
function follow(patterns: StopPatterns, state: number, character: number, counting?: { compared: number }): number {
  for (let from = state; ; from = patterns.fallback[from]!) {
    if (counting) counting.compared++
    const next = stepOf(patterns, from, character)
    if (next !== 0 || from === 0) return next
  }
}

/** The result of scanning a piece of text: the text that may be shown now, and the sequence found after it, if any. */
type StopScan = { shown: string; stop?: string }

/**
 * Finds the first stop sequence in a text that arrives in pieces. The earliest match wins. If several matches begin
 * at the same place, the longest wins. The text is read once and never backwards. One step compares the next
 * character with no more sequences than the request has (ruling T26).
 */
export class StopMatcher {
  /** The number of states visited so far. */
  compared = 0
  readonly #patterns: StopPatterns
  #state = 0
  /** The best match so far. */
  #best: { stop: string; foundAt: number } | undefined
  /** Text that is read but not shown, because a match may have begun in it. */
  #withheld = ''
  /** The number of characters read so far. */
  #read = 0

  constructor(patterns: StopPatterns) {
    this.#patterns = patterns
  }

  /** Scans a piece of text. Must not be called again after it has returned a `stop`. */
  push(text: string): StopScan {
    this.#follow(text)
    this.#withheld += text
    this.#read += text.length
    const best = this.#best
    const begunAt = this.#read - this.#patterns.growing[this.#state]!
    // An unfinished match that began earlier, or at the same place, would win. So the decision waits for that match.
    if (best === undefined || begunAt <= best.foundAt) return { shown: this.#show(begunAt) }
    return { shown: this.#show(best.foundAt), stop: best.stop }
  }

  /** Called at the end of the text. An incomplete match can no longer become a match. */
  end(): StopScan {
    const best = this.#best
    return best ? { shown: this.#show(best.foundAt), stop: best.stop } : { shown: this.#show(this.#read) }
  }

  #follow(text: string): void {
    const patterns = this.#patterns
    const { firsts, ending, stops } = patterns
    let state = this.#state
    for (let at = 0; at < text.length; at++) {
      const character = text.charCodeAt(at)
      if (state === 0 && !firsts.has(character)) continue
      state = follow(patterns, state, character, this)
      const place = ending[state]!
      if (place >= 0) this.#note(stops[place]!, this.#read + at + 1)
    }
    this.#state = state
  }

  #note(stop: string, endsAt: number): void {
    const best = this.#best
    const foundAt = endsAt - stop.length
    const isBetter = best === undefined || foundAt < best.foundAt
    if (isBetter || (foundAt === best.foundAt && stop.length > best.stop.length)) this.#best = { stop, foundAt }
  }

  /** Removes the text before a position from the withheld text. @returns the removed text */
  #show(place: number): string {
    const length = Math.max(0, place - (this.#read - this.#withheld.length))
    const shown = this.#withheld.slice(0, length)
    this.#withheld = this.#withheld.slice(length)
    return shown
  }
}

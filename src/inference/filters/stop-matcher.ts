/**
 * All stop sequences as one automaton (Aho and Corasick, 1975): a state is a beginning that some of them share, 0 the empty one.
 * A sequence of 1,000 characters has 1,000 states, so all of it is in arrays of numbers.
 */
type StopPatterns = {
  stops: readonly string[]
  /** Codes by which a match begins. */
  firsts: ReadonlySet<number>
  /** Of each state: the first that is one character longer, the next one that goes on from the same, and that character. */
  longer: Int32Array
  sibling: Int32Array
  code: Uint16Array
  /** The longest shorter state that its text ends with. */
  fallback: Int32Array
  /** The longest sequence that its text ends with, as a place in `stops`; -1 for none. */
  ending: Int32Array
  /** How many characters at its end may still become a match. */
  growing: Int32Array
}

/** @param stops without empty ones */
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
  // From the shorter ones to the longer ones: what a state falls back to is done before it.
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

/** @returns 0 if nothing goes on with it */
function stepOf({ longer, sibling, code }: StopPatterns, state: number, character: number): number {
  let next = longer[state]!
  while (next !== 0 && code[next] !== character) next = sibling[next]!
  return next
}

/** @param counting counts the states that were looked at @returns the longest state that the text ends with, with this character */
function follow(patterns: StopPatterns, state: number, character: number, counting?: { compared: number }): number {
  for (let from = state; ; from = patterns.fallback[from]!) {
    if (counting) counting.compared++
    const next = stepOf(patterns, from, character)
    if (next !== 0 || from === 0) return next
  }
}

/** The result of a piece of text: the text that may be shown by now, and the sequence after it if one is certain. */
export type StopScan = { shown: string; stop?: string }

/**
 * Finds the first stop sequence of a text that comes in pieces: of two matches the earlier counts, then the longer. The
 * text is read once and never backwards. A step compares the next character with at most as many sequences as there are
 * (ruling T26).
 */
export class StopMatcher {
  /** States that were looked at so far. */
  compared = 0
  readonly #patterns: StopPatterns
  #state = 0
  /** The match that counts so far. */
  #best: { stop: string; foundAt: number } | undefined
  /** Read and not shown: a match may have begun in it. */
  #withheld = ''
  /** Characters read so far. */
  #read = 0

  constructor(patterns: StopPatterns) {
    this.#patterns = patterns
  }

  /** Nothing more is pushed once a `stop` was returned. */
  push(text: string): StopScan {
    this.#follow(text)
    this.#withheld += text
    this.#read += text.length
    const best = this.#best
    const begunAt = this.#read - this.#patterns.growing[this.#state]!
    // One that began no later and is not over yet would be the earlier match, or the longer one.
    if (best === undefined || begunAt <= best.foundAt) return { shown: this.#show(begunAt) }
    return { shown: this.#show(best.foundAt), stop: best.stop }
  }

  /** The text is over: what was under way is no match. */
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

  /** Takes what lies before a place out of what is withheld. */
  #show(place: number): string {
    const length = Math.max(0, place - (this.#read - this.#withheld.length))
    const shown = this.#withheld.slice(0, length)
    this.#withheld = this.#withheld.slice(length)
    return shown
  }
}

/** A stop sequence and, for each length of its beginnings, the longest shorter one that such a beginning ends with. */
export type StopPattern = { text: string; fallback: Uint16Array }

/** @param stops without empty ones, each of at most 65,535 characters */
export function compileStops(stops: readonly string[]): StopPattern[] {
  return stops.map((text) => ({ text, fallback: fallbackOf(text) }))
}

/** What a piece of text brought: what may be shown by now, and the sequence behind it where one is certain. */
export type StopScan = { shown: string; stop?: string }

/** One sequence under way: how much of it the text ends with, and where its first match began. */
type Cursor = StopPattern & { matched: number; foundAt: number | undefined }

/**
 * Finds the first stop sequence of a text that comes in pieces: of two matches the earlier counts, then the longer. Each
 * sequence is followed by itself, never backwards, so that the work is bound by text times sequences (ruling T26).
 */
export class StopMatcher {
  /** Characters compared so far. */
  compared = 0
  readonly #cursors: Cursor[]
  /** Read and not shown: a match may have begun in it. */
  #withheld = ''
  /** Characters read so far. */
  #read = 0

  constructor(patterns: readonly StopPattern[]) {
    this.#cursors = patterns.map((pattern) => ({ ...pattern, matched: 0, foundAt: undefined }))
  }

  /** Nothing more is pushed once a `stop` was returned. */
  push(text: string): StopScan {
    const limit = this.#best()?.foundAt ?? Number.POSITIVE_INFINITY
    for (const cursor of this.#cursors) {
      // What can only begin behind a match that is known already decides nothing any more.
      if (cursor.foundAt === undefined && this.#read - cursor.matched <= limit) this.#follow(cursor, text)
    }
    this.#withheld += text
    this.#read += text.length
    const best = this.#best()
    const begunAt = this.#read - Math.max(0, ...this.#cursors.map(underWay))
    // One that began no later and is not over yet would be the earlier match, or the longer one.
    if (best === undefined || begunAt <= best.foundAt) return { shown: this.#show(begunAt) }
    return { shown: this.#show(best.foundAt), stop: best.text }
  }

  /** The text is over: what was under way is no match. */
  end(): StopScan {
    const best = this.#best()
    return best ? { shown: this.#show(best.foundAt), stop: best.text } : { shown: this.#show(this.#read) }
  }

  #follow(cursor: Cursor, text: string): void {
    const { text: stop, fallback } = cursor
    let { matched } = cursor
    let at = 0
    while (at < text.length) {
      if (matched === 0) {
        at = text.indexOf(stop[0]!, at)
        if (at < 0) break
      }
      this.compared++
      if (text.charCodeAt(at) === stop.charCodeAt(matched)) {
        matched++
        at++
        if (matched === stop.length) {
          cursor.foundAt = this.#read + at - stop.length
          break
        }
      } else matched = fallback[matched - 1]!
    }
    cursor.matched = matched
  }

  /** The match that counts so far. */
  #best(): (Cursor & { foundAt: number }) | undefined {
    let best: Cursor | undefined
    for (const cursor of this.#cursors) {
      if (cursor.foundAt === undefined) continue
      const isEarlier = best === undefined || cursor.foundAt < best.foundAt!
      if (isEarlier || (cursor.foundAt === best!.foundAt && cursor.text.length > best!.text.length)) best = cursor
    }
    return best as (Cursor & { foundAt: number }) | undefined
  }

  /** Takes what lies before a place out of what is withheld. */
  #show(place: number): string {
    const length = Math.max(0, place - (this.#read - this.#withheld.length))
    const shown = this.#withheld.slice(0, length)
    this.#withheld = this.#withheld.slice(length)
    return shown
  }
}

/** How many characters at the end of the text may be the beginning of a match. */
function underWay({ matched, foundAt }: Cursor): number {
  return foundAt === undefined ? matched : 0
}

function fallbackOf(text: string): Uint16Array {
  const fallback = new Uint16Array(text.length)
  for (let length = 0, at = 1; at < text.length; ) {
    if (text[at] === text[length]) fallback[at++] = ++length
    else if (length > 0) length = fallback[length - 1]!
    else at++
  }
  return fallback
}

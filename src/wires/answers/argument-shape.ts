import { appendOwn } from '../../bytes/own-copy.ts'
import { newPart } from './read-answer.ts'

/** Whether arguments may be complete after this piece. @param piece as text, or as written in a JSON string */
export function endsObject(piece: string): boolean {
  return /\}(?:[ \t\n\r]|\\[tnr])*$/.test(piece)
}

export type ArgumentShape = ReturnType<typeof createArgumentShape>

/**
 * Tracks whether argument text is one whole object. It reads character by character, so that long arguments take
 * linear time.
 */
export function createArgumentShape() {
  let state: 'blank' | 'inside' | 'string' | 'whole' | 'other' = 'blank'
  let depth = 0
  let isEscaped = false
  /** The text accepted so far, and how much of that text has been repeated since. */
  let taken = ''
  let repeated = 0
  return {
    isWhole: () => state === 'whole',
    isBlank: () => state === 'blank',
    /** Whether the upstream has repeated a part of the whole arguments, so that the rest may follow. */
    isRepeating: () => repeated > 0,
    push,
    take,
    rest,
  }

  function push(text: string) {
    for (let i = 0; i < text.length && state !== 'other'; i++) read(text.charCodeAt(i))
  }

  /**
   * Returns the new part of a piece. After whole arguments only their repetition may follow, at once or in pieces
   * (ruling Y4).
   * @param isCumulative whether each piece repeats all pieces before it
   */
  function take(piece: string, isCumulative: boolean): string {
    const text = isCumulative ? newPart(taken, piece) : piece
    if (taken !== '' && state === 'whole' && taken.startsWith(text, repeated)) {
      repeated = (repeated + text.length) % taken.length
      return ''
    }
    taken = appendOwn(taken, text)
    push(text)
    return text
  }

  /** Returns an incomplete repetition; arguments with one are broken (ruling Y5). Call this at the end. */
  function rest(): string {
    const text = taken.slice(0, repeated)
    repeated = 0
    return text
  }

  function read(code: number) {
    if (state === 'string') {
      if (isEscaped) isEscaped = false
      else if (code === 0x5c) isEscaped = true
      else if (code === 0x22) state = 'inside'
    } else if (state === 'inside') {
      if (code === 0x22) state = 'string'
      else if (code === 0x7b || code === 0x5b) depth++
      else if ((code === 0x7d || code === 0x5d) && --depth === 0) state = 'whole'
    } else if (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) return
    else if (state === 'blank' && code === 0x7b) {
      state = 'inside'
      depth = 1
    } else state = 'other'
  }
}

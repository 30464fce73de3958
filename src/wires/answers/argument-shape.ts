import { appendOwn } from '../../bytes/memory.ts'
import { newPart } from './read-answer.ts'

/** Whether a call's arguments can end with this piece. @param piece plain text, or the inside of a JSON string */
export function endsObject(piece: string): boolean {
  return /\}(?:[ \t\n\r]|\\[tnr])*$/.test(piece)
}

export type ArgumentShape = ReturnType<typeof createArgumentShape>

/**
 * Tracks whether the argument text of a call is one whole JSON object. It reads character by character, so that long
 * arguments take linear time.
 */
export function createArgumentShape() {
  let state: 'blank' | 'inside' | 'string' | 'whole' | 'other' = 'blank'
  let depth = 0
  let isEscaped = false
  /**
   * `taken`: the argument text so far. `repeated`: the number of characters that came again, while the upstream repeats
   * the whole arguments.
   */
  let taken = ''
  let repeated = 0
  return {
    isWhole: () => state === 'whole',
    isBlank: () => state === 'blank',
    /** Whether the upstream has begun to send the whole arguments a second time, and has not finished. */
    isRepeating: () => repeated > 0,
    repeats,
    push,
    take,
    rest,
  }

  /** Whether the arguments are complete, and this piece repeats them, or continues to repeat them. */
  function repeats(piece: string): boolean {
    return taken !== '' && state === 'whole' && taken.startsWith(piece, repeated)
  }

  function push(text: string) {
    for (let i = 0; i < text.length && state !== 'other'; i++) read(text.charCodeAt(i))
  }

  /**
   * Returns the part of a piece that is new. After the arguments are complete, pieces that repeat them add nothing
   * (ruling Y4).
   * @param isCumulative whether each piece repeats all pieces before it
   */
  function take(piece: string, isCumulative: boolean): string {
    const text = isCumulative ? newPart(taken, piece) : piece
    if (repeats(text)) {
      repeated = (repeated + text.length) % taken.length
      return ''
    }
    taken = appendOwn(taken, text)
    push(text)
    return text
  }

  /**
   * Call this at the end. Returns the incomplete repetition, if the upstream began to send the arguments a second time
   * and did not finish; otherwise ''. The repetition makes the arguments invalid (ruling Y5).
   */
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

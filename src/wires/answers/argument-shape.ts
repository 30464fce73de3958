import { appendOwn } from '../../bytes/own-copy.ts'
import { newPart } from './read-answer.ts'

/** Whether arguments may be whole after this piece of them. @param piece as it is, or as it stands in a JSON string */
export function endsObject(piece: string): boolean {
  return /\}(?:[ \t\n\r]|\\[tnr])*$/.test(piece)
}

export type ArgumentShape = ReturnType<typeof createArgumentShape>

/** Whether argument text is one whole object, followed character by character so that long arguments stay linear. */
export function createArgumentShape() {
  let state: 'blank' | 'inside' | 'string' | 'whole' | 'other' = 'blank'
  let depth = 0
  let isEscaped = false
  /** The text that was taken, and how much of it has come again. */
  let taken = ''
  let repeated = 0
  return {
    isWhole: () => state === 'whole',
    isBlank: () => state === 'blank',
    /** Whether a part of whole arguments has come again, and the rest of them may follow. */
    isRepeating: () => repeated > 0,
    push,
    take,
    rest,
  }

  function push(text: string) {
    for (let i = 0; i < text.length && state !== 'other'; i++) read(text.charCodeAt(i))
  }

  /**
   * The new part of a piece. Nothing follows whole arguments but the same again, at once or in pieces (ruling Y4).
   * @param isCumulative each piece repeats all before it
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

  /** The beginning of a repetition that did not come as a whole: such arguments are broken (ruling Y5). To be asked at the end. */
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

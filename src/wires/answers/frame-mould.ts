import { encodeLatin1, type RawFrame } from '../../bytes/frame-cutter.ts'
import { type Edit, endOfValue, type Range } from '../../bytes/json.ts'
import { ownCopy } from '../../bytes/own-copy.ts'

/** A value that differs from frame to frame. `isLeftOut`: the client does not see it. */
type Hole = { name: 'text' | 'usage' | 'other'; isLeftOut: boolean; mayBeNull: boolean }

/** A frame that was looked into, with the edits that it got (rulings P2, P9). */
type MouldSample = {
  frame: RawFrame
  shown: string
  /** The frame's data in one line. The offsets of all others are those of this text. */
  data: string
  edits: readonly Edit[]
  /** The insides of the strings that are the delta's text, which some servers write twice. */
  texts: readonly Range[]
  usage: Range | undefined
  /** Values that may be any others without further edits. */
  others: readonly Range[]
}

/**
 * A frame as a mould: literal bytes with holes for the values that differ. A frame that fits gets the edits of the first one by
 * comparison, without a parse. All other bytes must be the same: members, keys and white space.
 */
export class FrameMould {
  /** The values in the holes of the last frame that fitted, as they stood there. */
  text = ''
  usage = ''
  /** The counters, which are not all 0, differ from those of the frame before in digits alone. */
  isAlike = false
  end = 0
  readonly #literals: { raw: string; shown: string }[] = []
  readonly #holes: Hole[] = []

  /** @returns undefined if the frame cannot be one */
  static of(sample: MouldSample): FrameMould | undefined {
    const { frame, shown, data, texts } = sample
    const mould = new FrameMould(sample)
    // A frame whose own mould does not give what the client was shown has something in it that no mould has.
    const isRight = mould.fill(frame, 0) === shown && mould.end === frame.length
    return isRight && texts.every(({ start, end }) => mould.text === data.slice(start, end)) ? mould : undefined
  }

  private constructor({ frame, shown, data, edits, texts, usage, others }: MouldSample) {
    const sorted = edits.toSorted((a, b) => a.start - b.start || a.end - b.end)
    const holes = [
      ...texts.map((range) => ({ ...range, name: 'text' })),
      ...(usage ? [{ ...usage, name: 'usage' }] : []),
      ...others.map((range) => ({ ...range, name: 'other' })),
    ]
    let at = 0
    for (const { start, end, name } of holes.sort((a, b) => a.start - b.start)) {
      const cover = sorted.find((edit) => edit.start <= start && edit.end >= end)
      this.#literals.push({ raw: data.slice(at, start), shown: editedPart(data, at, start, sorted) })
      // A null that stands where a member is taken out reveals nothing, and stays.
      const mayBeNull = name === 'other' && cover?.text !== ''
      this.#holes.push({ name: name as Hole['name'], isLeftOut: cover !== undefined, mayBeNull })
      at = end
    }
    this.#literals.push({ raw: data.slice(at), shown: editedPart(data, at, data.length, sorted) })
    const [first, last] = [this.#literals[0]!, this.#literals.at(-1)!]
    const from = frame.indexOf(data)
    const result = editedPart(data, 0, data.length, sorted)
    const shownFrom = shown.indexOf(result)
    first.raw = frame.slice(0, from) + first.raw
    first.shown = shown.slice(0, shownFrom) + first.shown
    last.raw += frame.slice(from + data.length)
    last.shown += shown.slice(shownFrom + result.length)
    for (const literal of this.#literals)
      Object.assign(literal, { raw: ownCopy(literal.raw), shown: ownCopy(literal.shown) })
  }

  /** Returns what the client sees of the frame at this position of a piece; undefined if it does not fit. */
  fill(piece: string, from: number): string | undefined {
    let at = from
    let shown = ''
    let isTold = false
    const before = this.usage
    this.usage = ''
    this.isAlike = false
    for (let i = 0; i < this.#literals.length; i++) {
      const literal = this.#literals[i]!
      // Slices are compared four times as fast as `startsWith` compares.
      if (piece.slice(at, at + literal.raw.length) !== literal.raw) return undefined
      at += literal.raw.length
      shown += literal.shown
      const hole = this.#holes[i]
      if (hole === undefined) break
      if (hole.name === 'usage' && differsInDigits(before, piece, at)) {
        this.isAlike = true
        this.usage = piece.slice(at, at + before.length)
        at += before.length
        continue
      }
      const end = endOfValue(piece, hole.name === 'text' ? at - 1 : at) - (hole.name === 'text' ? 1 : 0)
      const value = piece.slice(at, end)
      if (end <= at - 1 || end >= piece.length || /[\r\n]/.test(value) || (!hole.mayBeNull && value === 'null'))
        return undefined
      if (hole.name === 'text') {
        if (isTold && value !== this.text) return undefined
        this.text = value
        isTold = true
      } else if (hole.name === 'usage') {
        if (value[0] !== '{') return undefined
        this.usage = value
      }
      if (!hole.isLeftOut) shown += value
      at = end
    }
    this.end = at
    return shown
  }
}

/** Whether a text of counters comes again at a position of a piece, with other digits, not all of them 0. No known name has a digit. */
function differsInDigits(before: string, piece: string, at: number): boolean {
  let isSaid = false
  for (let i = 0; i < before.length; i++) {
    const code = piece.charCodeAt(at + i)
    const isDigit = code >= 0x30 && code <= 0x39
    isSaid ||= isDigit && code > 0x30
    if (code !== before.charCodeAt(i) && !(isDigit && /\d/.test(before[i]!))) return false
  }
  return isSaid
}

/** A part of the data with its edits, in latin1. An edit that begins in the part is written there. */
function editedPart(data: string, from: number, to: number, edits: readonly Edit[]): string {
  let out = ''
  let at = from
  for (const { start, end, text } of edits) {
    if (end < from || start > to) continue
    if (start >= from) out += data.slice(at, start) + encodeLatin1(text)
    at = Math.max(at, Math.min(end, to))
  }
  return out + data.slice(at, to)
}

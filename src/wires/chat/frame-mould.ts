import { dataOf, encodeLatin1, type RawFrame, stringBehind } from '../../bytes/frame-cutter.ts'
import { type Edit, endOfValue, placesOf, type Range } from '../../bytes/json.ts'
import { ownCopy } from '../../bytes/memory.ts'
import type { JsonMember } from '../../bytes/scan.ts'
import { serviceMembers } from '../../inference/usage.ts'
import type { JsonPatch } from '../answers/json-patch.ts'
import { decodeString, tellingNames } from '../answers/native-answer.ts'

/** Whether a choice is unfinished and without an error. */
export function isUnfinished({ error, finish_reason }: Record<string, unknown>): boolean {
  return error == null && !finish_reason
}

/** The members that may hold a delta's text. Reasoning has several names. */
const textKeys = ['content', 'arguments', 'reasoning_content', 'reasoning', 'refusal', 'thinking']

/** Finds the range of a delta's text in a chunk. The quotes are outside of the range. */
function placeOfText(tail: string, text: string): (Range & { key: string }) | undefined {
  for (const key of textKeys) {
    const needle = `"${key}":`
    const raw = stringBehind(tail, needle)
    if (raw === '' || decodeString(raw) !== text) continue
    const start = tail.indexOf('"', tail.indexOf(needle) + needle.length) + 1
    return { key, start, end: start + raw.length }
  }
  return undefined
}

/** The members that the gateway reads. A chunk in which one of them has an unexpected value must be parsed. */
const headKeys = ['id', 'object', 'created', 'model', 'choices', 'error', 'usage', ...serviceMembers]
const looked = new Set(headKeys)
const telling = new Set(tellingNames)

/** The most bytes of a chunk that becomes a mould (template). A mould keeps parts of its chunk in memory. */
const dataMax = 8_192

/** Members inside choices that no code reads, and that differ with each token. */
const unreadMember = /"(?:logprobs|token_ids?|content_filter_offsets)"\s*:\s*(?=[[{\d])/g

/**
 * Makes the mould of a chunk, a template with the places that change. Later chunks of the same kind are edited by this
 * mould, without a parse. Undefined if the chunk is unusual.
 * @param said the text of each choice; undefined for a choice that adds nothing to the answer
 */
export function mouldOf(
  frame: RawFrame,
  shown: string,
  patch: JsonPatch,
  said: readonly (string | undefined)[],
): FrameMould | undefined {
  const data = patch.bytes.toString('latin1')
  const choices = patch.members.filter(({ key }) => key === 'choices')
  const edits = patch.edits()
  const keys = new Set(patch.members.map(({ key }) => key))
  if (choices.length !== 1 || keys.size !== patch.members.length || dataOf(frame) !== data || data.includes('\n'))
    return undefined
  if (data.length > dataMax) return undefined
  const [{ start, end }] = choices as [JsonMember]
  const inside = data.slice(start, end)
  const isIn = (range: Range, wider: Range) => wider.start <= range.start && wider.end >= range.end
  const isCovered = (range: Range) => edits.some((edit) => isIn(range, edit))
  const unread: Range[] = []
  for (const found of inside.matchAll(unreadMember)) {
    const from = start + found.index + found[0].length
    const range = { start: from, end: endOfValue(data, from) }
    if (!unread.some((wider) => isIn(range, wider))) unread.push(range)
  }
  const texts: Range[][] = []
  const usages = patch.members.filter((member) => member.key === 'usage' && isCovered(member))
  const elements = patch.elementsAt({ start, end })
  if (elements.length !== said.length) return undefined
  for (const [i, choice] of elements.entries()) {
    for (const member of patch.membersAt(choice)) if (member.key === 'usage' && isCovered(member)) usages.push(member)
    const text = said[i]
    if (text === undefined) continue
    const own = data.slice(choice.start, choice.end)
    const place = placeOfText(own, text)
    if (place === undefined) return undefined
    const raw = `"${own.slice(place.start, place.end)}"`
    const ranges = Array.from(placesOf(own, raw), (at) => ({
      start: choice.start + at + 1,
      end: choice.start + at + raw.length - 1,
    }))
    texts.push(ranges.filter((range) => !unread.some((wider) => isIn(range, wider))))
  }
  const others = patch.members.filter(({ key, ...range }) =>
    telling.has(key) || key === 'id' || key === 'created' ? isCovered(range) : !looked.has(key),
  )
  return FrameMould.of({
    ...{ frame, shown, data, edits, texts },
    usages,
    times: patch.members.filter(({ key, ...range }) => key === 'created' && !isCovered(range)),
    others: [...others, ...unread],
  })
}

/** A hole: the place of a value that differs from frame to frame. `isLeftOut`: the client does not see the value. */
type Hole = Kind & { isLeftOut: boolean; mayBeNull: boolean }
/**
 * `group`: the value's index among the frame's texts or usages. `isFirst`: whether no earlier hole has the same text.
 */
type Kind = { name: 'text' | 'usage' | 'time' | 'other'; group: number; isFirst: boolean }

const isText = ({ name }: Hole) => name === 'text'

/** A parsed frame, with the edits made to it (rulings P2, P9). */
type MouldSample = {
  frame: RawFrame
  shown: string
  /** The frame's data as one line. All ranges and edits refer to this text. */
  data: string
  edits: readonly Edit[]
  /** For each delta, the ranges of its text, without quotes. A text that the server writes twice has two ranges. */
  texts: readonly (readonly Range[])[]
  /** The ranges of counters, which the client does not see. */
  usages: readonly Range[]
  /** The ranges of creation times (`created`). They are whole numbers, and are shown to the client unchanged. */
  times: readonly Range[]
  /** The ranges of all further values that may differ between frames. No edit depends on these values. */
  others: readonly Range[]
}

/**
 * A template from a parsed frame: fixed bytes, with holes for the values that differ from frame to frame. A later frame
 * fits if its bytes outside the holes are equal. The later frame is then edited in the same way, without a parse.
 */
export class FrameMould {
  /** The texts of the last frame that fitted, as written in its JSON. `usages` has the counters of that frame. */
  readonly texts: string[]
  readonly usages: string[]
  /**
   * Whether the counters differ only in digits from the counters of the frame that fitted before. False if all counters
   * of an object are 0.
   */
  isAlike = false
  end = 0
  readonly #literals: { raw: string; shown: string }[] = []
  readonly #holes: Hole[] = []
  /** Whether a frame has no counters and exactly one text, and the client sees this text. */
  readonly #hasOneText: boolean
  /** The bytes around the text of the last frame that fitted. Set only if frames have one text and no counters. */
  #around: TextSurroundings | undefined
  /** The number of fitting frames that `#around` did not match. From `othersMax` frames on, `#around` stays empty. */
  #others = 0

  /** Makes a mould (a template) from a parsed frame. @returns undefined if the frame has a feature that moulds lack */
  static of(sample: MouldSample): FrameMould | undefined {
    const { frame, shown, data, texts } = sample
    const mould = new FrameMould(sample)
    // Verifies the new mould (template). It must produce what the client was shown for this frame. Otherwise the frame
    // has a feature that moulds do not support.
    const isRight = mould.fill(frame, 0) === shown && mould.end === frame.length
    const hasText = (ranges: readonly Range[], i: number) =>
      ranges.every(({ start, end }) => mould.texts[i] === data.slice(start, end))
    return isRight && texts.every(hasText) ? mould : undefined
  }

  private constructor({ frame, shown, data, edits, texts, usages, times, others }: MouldSample) {
    this.texts = texts.map(() => '')
    this.usages = usages.map(() => '')
    const sorted = edits.toSorted((a, b) => a.start - b.start || a.end - b.end)
    const holesOf = (name: Kind['name'], ranges: readonly Range[], group?: number) =>
      ranges.map(({ start, end }, i) => ({
        start,
        end,
        name,
        group: group ?? i,
        isFirst: group === undefined || i === 0,
      }))
    const holes = [
      ...texts.flatMap((ranges, i) => holesOf('text', ranges, i)),
      ...holesOf('usage', usages),
      ...holesOf('time', times),
      ...holesOf('other', others),
    ]
    let at = 0
    for (const { start, end, ...kind } of holes.sort((a, b) => a.start - b.start)) {
      const cover = sorted.find((edit) => edit.start <= start && edit.end >= end)
      this.#literals.push({ raw: data.slice(at, start), shown: editedPart(data, at, start, sorted) })
      // The gateway removes this member only if its value is not null. If it is removed from this frame, the mould must
      // not fit a later frame in which the member is null.
      const mayBeNull = kind.name === 'other' && cover?.text !== ''
      this.#holes.push({ ...kind, isLeftOut: cover !== undefined, mayBeNull })
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
    // The first and last literal are copied, so that they do not keep a larger text alive. The other literals keep only
    // the data of this frame alive, and `dataMax` limits that data.
    for (const literal of [first, last])
      Object.assign(literal, { raw: ownCopy(literal.raw), shown: ownCopy(literal.shown) })
    this.#hasOneText =
      usages.length === 0 && this.#holes.filter(isText).length === 1 && !this.#holes.find(isText)?.isLeftOut
  }

  /**
   * Returns the text that the client sees for a frame. Undefined if the frame does not fit this mould (template).
   * @param piece a piece of the stream; the frame begins at `from`
   */
  fill(piece: string, from: number): string | undefined {
    return (this.#around && this.#fillText(this.#around, piece, from)) ?? this.#fillHoles(piece, from)
  }

  /** Returns the text for the client if the frame differs from the last one only in its text. Undefined otherwise. */
  #fillText({ lead, tail, shownLead, shownTail }: TextSurroundings, piece: string, from: number): string | undefined {
    const start = from + lead.length
    if (piece.slice(from, start) !== lead) return undefined
    const end = piece.indexOf('"', start)
    const text = piece.slice(start, end)
    if (end < 0 || /[\\\r\n]/.test(text) || piece.slice(end, end + tail.length) !== tail) return undefined
    this.texts[0] = text
    this.end = end + tail.length
    return shownLead + text + shownTail
  }

  #fillHoles(piece: string, from: number): string | undefined {
    let at = from
    let shown = ''
    let text: { start: number; end: number; shownLead: string } | undefined
    this.isAlike = this.usages.length > 0
    for (let i = 0; i < this.#literals.length; i++) {
      const literal = this.#literals[i]!
      // Comparing slices is four times as fast as `startsWith`.
      if (piece.slice(at, at + literal.raw.length) !== literal.raw) return undefined
      at += literal.raw.length
      shown += literal.shown
      const hole = this.#holes[i]
      if (hole === undefined) break
      if (hole.name === 'usage') {
        const before = this.usages[hole.group]!
        if (differsInDigits(before, piece, at)) {
          this.usages[hole.group] = piece.slice(at, at + before.length)
          at += before.length
          continue
        }
        this.isAlike = false
      }
      const end = endOfValue(piece, hole.name === 'text' ? at - 1 : at) - (hole.name === 'text' ? 1 : 0)
      const value = piece.slice(at, end)
      if (end <= at - 1 || end >= piece.length || /[\r\n]/.test(value) || (!hole.mayBeNull && value === 'null'))
        return undefined
      if (hole.name === 'text') {
        if (!hole.isFirst && value !== this.texts[hole.group]) return undefined
        this.texts[hole.group] = value
        text = { start: at, end, shownLead: shown }
      } else if (hole.name === 'usage') {
        if (value[0] !== '{') return undefined
        this.usages[hole.group] = value
      } else if (hole.name === 'time' && !/^[1-9]\d*$/.test(value)) return undefined
      if (!hole.isLeftOut) shown += value
      at = end
    }
    this.end = at
    this.#around = undefined
    if (text !== undefined && this.#hasOneText && this.#others++ < othersMax) {
      const { start, end, shownLead } = text
      const shownTail = ownCopy(shown.slice(shownLead.length + end - start))
      const lead = ownCopy(piece.slice(from, start))
      this.#around = { lead, tail: ownCopy(piece.slice(end, at)), shownLead: ownCopy(shownLead), shownTail }
    }
    return shown
  }
}

/**
 * After this many frames that differ in more than their text, the bytes around the text are no longer kept. If these
 * bytes contain random values, they never match the next frame.
 */
const othersMax = 8

/** The bytes before and after the text of a frame, as received and as shown to the client. */
type TextSurroundings = { lead: string; tail: string; shownLead: string; shownTail: string }

/**
 * Whether the counters at this position differ from `before` only in digits, and at least one digit is not 0. No known
 * member name contains a digit, so only values can differ.
 */
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

/**
 * Returns the data from `from` to `to` with the edits made, in latin1. If an edit extends over two parts, its text is
 * written in the part in which the edit begins.
 */
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

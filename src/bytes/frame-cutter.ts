import { endOfString } from './json.ts'
import { ownCopy } from './memory.ts'
import { parseUpstreamJson } from './scan.ts'

/** One event as the upstream sent it, with its line ends and the final blank line. */
export type RawFrame = string

/** The largest event that is accepted, in bytes (reliability §3). */
const frameBytesMax = 8 * 1_048_576

/** The byte order mark in UTF-8, as latin1 characters. */
const byteOrderMark = '\u00ef\u00bb\u00bf'

const commentLine = /(?<=^|[\r\n]):[^\r\n]*(?:\r\n|\n|\r|$)/g

/**
 * The number of characters kept from the previous piece. The end of an event has up to four characters, and the
 * previous piece may have three of them.
 */
const tailLength = 3

/** Two line ends in a row. A `\r` followed by `\n` is part of that line end, not a line end of its own. */
const blankLine = /(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n))/g

/**
 * Cuts the text of a stream into whole frames and keeps the unfinished rest. The text is latin1, one character for each
 * byte, so a character that the network splits stays intact. The byte order mark is removed. Comments are removed too,
 * because they name the upstream's host. Apart from that, the frames together equal the stream.
 */
export class FrameCutter {
  /** The unfinished event. It is not searched again when a piece is added, because V8 would copy it for each search. */
  #rest = ''
  /** The last characters of `#rest`, which may contain the beginning of an event's end. */
  #tail = ''
  #restHasReturn = false
  isOversize = false
  #hasBegun = false

  push(text: string): RawFrame[] {
    const frames: RawFrame[] = []
    const hasReturn = this.#restHasReturn || text.includes('\r')
    const findEnd = hasReturn ? endByRule : endByLf
    const known = this.#tail.length
    let start = 0
    let end = findEnd(known === 0 ? text : this.#tail + text, 0) - known
    for (; end >= 0; end = findEnd(text, start)) {
      const piece = text.slice(start, end)
      frames.push(this.#clean(this.#rest === '' ? piece : this.#rest + piece, hasReturn))
      this.#rest = ''
      start = end
    }
    if (start > 0 || frames.length > 0) this.#keep(text.slice(start), hasReturn)
    else {
      this.#tail = (this.#tail + text).slice(-tailLength)
      this.#rest += text
      this.#restHasReturn = hasReturn
    }
    if (this.#rest.length > frameBytesMax) this.isOversize = true
    return frames
  }

  #keep(rest: string, hasReturn: boolean): void {
    this.#rest = rest
    this.#tail = rest.slice(-tailLength)
    this.#restHasReturn = hasReturn && rest.includes('\r')
  }

  /** Whether the cutter has no part of an unfinished event. */
  get isEmpty(): boolean {
    return this.#rest === ''
  }

  /** Copies the kept text, so that the garbage collector can free the larger piece from which it was cut. */
  compact(): void {
    this.#rest = ownCopy(this.#rest)
  }

  /** Ends the stream. Returns the last event, if it lacks only its blank line (translation 4.1). */
  end(): RawFrame | undefined {
    const rest = this.#clean(this.#rest, true)
    this.#keep('', false)
    return isWhole(dataOf(rest)?.trim()) ? `${rest.trimEnd()}\n\n` : undefined
  }

  #clean(frame: RawFrame, hasReturn: boolean): RawFrame {
    let clean = frame
    if (!this.#hasBegun && frame.startsWith(byteOrderMark)) clean = frame.slice(byteOrderMark.length)
    this.#hasBegun = true
    const hasComment = clean[0] === ':' || clean.includes('\n:') || (hasReturn && clean.includes('\r:'))
    return hasComment ? clean.replace(commentLine, '') : clean
  }
}

function endByLf(buffer: string, from: number): number {
  const at = buffer.indexOf('\n\n', from)
  return at < 0 ? -1 : at + 2
}

function endByRule(buffer: string, from: number): number {
  blankLine.lastIndex = from
  const match = blankLine.exec(buffer)
  if (match === null) return -1
  const end = match.index + match[0].length
  // A final `\r` may be the first half of `\r\n`. The next piece shows whether a `\n` follows.
  return end === buffer.length && buffer.endsWith('\r') ? -1 : end
}

/** Whether the data is the end mark `[DONE]` or a complete JSON object. */
function isWhole(data: string | undefined): boolean {
  if (data === undefined || data === '[DONE]') return data !== undefined
  if (!data.startsWith('{') || !data.endsWith('}')) return false
  try {
    parseUpstreamJson(decodeUtf8(data))
    return true
  } catch {
    return false
  }
}

/** The value of the frame's `event` line, or undefined. */
export function eventOf(frame: RawFrame): string | undefined {
  if (frame.startsWith('event: ')) {
    const end = frame.indexOf('\n', 7)
    const name = frame.slice(7, end < 0 ? undefined : end)
    const cut = name.indexOf('\r')
    return cut < 0 ? name : name.slice(0, cut)
  }
  return fieldOf(frame, 'event')
}

const eventLine = /^event:.*(?:\r\n|\n|\r|$)/gm

/** Returns the frame with this name in its only event line. An empty line before its data would end the event there. */
export function withEvent(frame: RawFrame, name: string): RawFrame {
  return `event: ${name}\n${frame.replace(eventLine, '').replace(/^[\r\n]+/, '')}`
}

/** The frame's data, with its lines joined. Undefined for a comment or an event without data. */
export function dataOf(frame: RawFrame): string | undefined {
  return fieldOf(frame, 'data')
}

function fieldOf(frame: RawFrame, name: string): string | undefined {
  if (!frame.includes(`${name}:`)) return undefined
  const values: string[] = []
  for (const line of linesOf(frame)) {
    if (!line.startsWith(`${name}:`)) continue
    values.push(line.slice(line[name.length + 1] === ' ' ? name.length + 2 : name.length + 1))
  }
  return values.length === 0 ? undefined : values.join('\n')
}

/**
 * Finds a member by its key, and returns the raw content of its string value. Returns '' if the frame has no such
 * member. The text is searched because parsing a delta costs more. A text inside another string never matches, because
 * its quotes are escaped.
 * @param needle the member's key and colon, e.g. `"text":`.
 */
export function stringBehind(frame: RawFrame, needle: string): string {
  const at = frame.indexOf(needle)
  if (at < 0) return ''
  const quote = frame[at + needle.length] === ' ' ? at + needle.length + 1 : at + needle.length
  return frame[quote] === '"' ? frame.slice(quote + 1, endOfString(frame, quote)) : ''
}

/**
 * Splits a frame into lines. It is faster to split at one character than by a pattern, which matters for several
 * megabytes.
 */
function linesOf(frame: RawFrame): string[] {
  return frame.includes('\r') ? frame.split(/\r\n|\n|\r/) : frame.split('\n')
}

/**
 * Returns the frame with its data replaced by `data`, which may have several lines. The other lines stay. Data and
 * frame are latin1.
 */
export function withData(frame: RawFrame, data: string): RawFrame {
  const end = frame.includes('\r\n') ? '\r\n' : '\n'
  const lines = linesOf(frame).filter((line) => line !== '' && !line.startsWith('data:'))
  return `${[...lines, `data: ${data.replaceAll('\n', `${end}data: `)}`].join(end)}${end}${end}`
}

const beyondAscii = /[\x80-\xff]/

/** Decodes the latin1 text of a frame as UTF-8. */
export function decodeUtf8(latin1: string): string {
  // A short ASCII text, such as a counter, is the same in latin1 and UTF-8. This check costs less than two copies.
  if (latin1.length < 256 && !beyondAscii.test(latin1)) return latin1
  return Buffer.from(latin1, 'latin1').toString('utf8')
}

/** Encodes text as latin1, with one character for each byte of its UTF-8 form. */
export function encodeLatin1(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}

import { endOfString } from './json.ts'
import { ownCopy } from './own-copy.ts'
import { parseUpstreamJson } from './scan.ts'

/** One event with its line ends and the blank line that closes it, as the upstream wrote it. */
export type RawFrame = string

/** The longest event that is taken, in bytes (reliability §3). */
const frameBytesMax = 8 * 1_048_576

/** In UTF-8, as latin1 characters. */
const byteOrderMark = '\u00ef\u00bb\u00bf'

const commentLine = /(?<=^|[\r\n]):[^\r\n]*(?:\r\n|\n|\r|$)/g

/** An end is up to four characters; so many of them may have come before. */
const tailLength = 3

/** Two line ends in a row; a `\r` that may be half of `\r\n` is not one. */
const blankLine = /(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n))/g

/**
 * Cuts a stream's text into whole frames and keeps what is not yet whole. Text is latin1: bytes, one to one, so that a
 * character cut by the network stays what it is. Taken out are the byte order mark and the comments, which name the
 * upstream's host; else the frames' concatenation is the stream.
 */
export class FrameCutter {
  /** Only ever appended to: looking into it would copy a long event anew with every piece of it. */
  #rest = ''
  /** The last characters of `#rest`, in which an end may have begun. */
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

  /** Nothing is left of the pieces so far. */
  get isEmpty(): boolean {
    return this.#rest === ''
  }

  /** Copies the kept text, so that the piece that it was cut from can be collected. */
  compact(): void {
    this.#rest = ownCopy(this.#rest)
  }

  /** The rest when the upstream closes, if it is a whole event that lacks only its blank line (translation 4.1). */
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
  // A last `\r` may be half of an end whose other half is in the next piece.
  return end === buffer.length && buffer.endsWith('\r') ? -1 : end
}

/** A terminator, or an object that is not cut. */
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

/** The frame's data, several lines joined, or undefined for one that has none: a comment, an empty event. */
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
 * The inside of the first string that is a member's value, as it stands there; '' where there is none. Looked for in the
 * text, since a delta is not worth a parse: in a string the key's quotes would be escaped.
 * @param needle the member's key and colon, e.g. `"text":`.
 */
export function stringBehind(frame: RawFrame, needle: string): string {
  const at = frame.indexOf(needle)
  if (at < 0) return ''
  const quote = frame[at + needle.length] === ' ' ? at + needle.length + 1 : at + needle.length
  return frame[quote] === '"' ? frame.slice(quote + 1, endOfString(frame, quote)) : ''
}

/** By a search for one character where there is no other: an event can have megabytes. */
function linesOf(frame: RawFrame): string[] {
  return frame.includes('\r') ? frame.split(/\r\n|\n|\r/) : frame.split('\n')
}

/** The same frame with other data, of one or several lines; its other lines as they are. Data and frame are latin1. */
export function withData(frame: RawFrame, data: string): RawFrame {
  const end = frame.includes('\r\n') ? '\r\n' : '\n'
  const lines = linesOf(frame).filter((line) => line !== '' && !line.startsWith('data:'))
  return `${[...lines, `data: ${data.replaceAll('\n', `${end}data: `)}`].join(end)}${end}${end}`
}

/** Latin1 text of a frame as the text it means. */
export function decodeUtf8(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('utf8')
}

/** Text as latin1 characters, one for each of its bytes in UTF-8. */
export function encodeLatin1(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}

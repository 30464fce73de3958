import { randomBytes } from 'node:crypto'
import type { RawJson } from './json.ts'
import { keptMark, numberAt, rareCharacter } from './scan.ts'

/** A piece of JSON source: characters of ours, or bytes of a client's body. */
type SourcePiece = string | { bytes: Buffer; start: number; end: number }

/**
 * The beginning of the token that stands for a source in the body that is made; its number follows. Random, so that no text from a
 * client can look like it.
 */
const sentMark = `${rareCharacter}sent-${randomBytes(9).toString('base64url')}:`

/** The first tokens, each in one piece. A sum of strings has several, and sends JSON.stringify a slower way for all of its value. */
const tokens = Array.from({ length: 512 }, (_, place) => Buffer.from(sentMark + place).toString('latin1'))

/** The sources of the body that is made, by the numbers of their tokens. */
let sources: JsonSource[] = []
let isWriting = false

/**
 * JSON that is carried as it was written (ruling T16), in pieces. It is read only when a caller looks at it. The pieces are valid
 * as long as the bytes of the body are.
 */
export class JsonSource implements RawJson {
  /** Pieces, or the bytes in which the source is one range. Most are that; an object and a list for each would be half of the garbage. */
  readonly from: Buffer | readonly SourcePiece[]
  readonly start: number
  readonly end: number
  #source: string | undefined

  /** @param from with the range, if these are bytes */
  constructor(from: Buffer | readonly SourcePiece[], start = 0, end = 0) {
    this.from = from
    this.start = start
    this.end = end
  }

  get pieces(): readonly SourcePiece[] {
    const { from, start, end } = this
    return isBytes(from) ? [{ bytes: from, start, end }] : from
  }

  get source(): string {
    const { from } = this
    this.#source ??= isBytes(from) ? from.toString('utf8', this.start, this.end) : from.map(readPiece).join('')
    return this.#source
  }

  /** The first character of the source, which tells the type of the value. */
  get first(): string {
    const { from } = this
    return isBytes(from) ? String.fromCharCode(from[this.start]!) : this.source.slice(0, 1)
  }

  /** The beginning of the source, about this many bytes. A character that is cut is U+FFFD. */
  head(bytes: number): string {
    const { from, start, end } = this
    return isBytes(from) ? from.toString('utf8', start, Math.min(end, start + bytes)) : this.source.slice(0, bytes)
  }

  /** Called by JSON.stringify. */
  toJSON(): unknown {
    return isWriting ? tokenFor(this) : JSON.parse(this.source)
  }
}

function tokenFor(source: JsonSource): string {
  const place = sources.push(source) - 1
  return tokens[place] ?? sentMark + place
}

function isBytes(from: Buffer | readonly SourcePiece[]): from is Buffer {
  return !Array.isArray(from)
}

/** Forgets the sources of a body that was begun and not written. */
export function beginBody(): void {
  sources = []
}

function readPiece(piece: SourcePiece): string {
  return typeof piece === 'string' ? piece : piece.bytes.toString('utf8', piece.start, piece.end)
}

/** A string that is carried as JSON source. It is never empty. */
export class SourceText extends JsonSource {
  /** The string itself. */
  override toString(): string {
    return JSON.parse(this.source) as string
  }
}

/** A text of the hub. A long one from a client's body is carried as its source; it is truthy, as all texts but the empty one. */
export type Text = string | SourceText

/** The beginning of a source that surely has more than white space. */
const beginsWithMore = /^"(?: |\\[nrt])*[^\s\\"\ufffd]/

/** Whether a text has only white space. */
export function isBlank(text: Text): boolean {
  if (typeof text !== 'string' && beginsWithMore.test(text.head(64))) return false
  return text.toString().trim() === ''
}

/** Whether a text begins with a word of small ASCII letters, in capitals or not. */
export function beginsWith(text: Text, word: string): boolean {
  if (typeof text !== 'string') {
    const head = text.head(1 + word.length)
    if (!head.includes('\\')) return head.slice(1).toLowerCase() === word
  }
  return text.toString().slice(0, word.length).toLowerCase() === word
}

/** Joins texts as `Array.join` joins strings, without reading those that are carried as source. */
export function joinTexts(texts: readonly Text[], separator: string): Text {
  if (texts.length === 1) return texts[0]!
  if (texts.every((text) => typeof text === 'string')) return texts.join(separator)
  const between = withoutQuotes(JSON.stringify(separator))
  const pieces: SourcePiece[] = []
  for (const text of texts) {
    if (pieces.length > 0) pieces.push(between)
    if (typeof text === 'string') pieces.push(withoutQuotes(JSON.stringify(text)))
    else pieces.push(...withoutOuterQuotes(text.pieces))
  }
  return new SourceText(['"', ...pieces, '"'])
}

function withoutOuterQuotes(pieces: readonly SourcePiece[]): SourcePiece[] {
  return pieces.map((piece, i) => withoutQuotes(piece, i === 0 ? 1 : 0, i === pieces.length - 1 ? 1 : 0))
}

function withoutQuotes<Piece extends SourcePiece>(piece: Piece, atStart = 1, atEnd = 1): SourcePiece {
  if (typeof piece === 'string') return piece.slice(atStart, piece.length - atEnd)
  return { ...piece, start: piece.start + atStart, end: piece.end - atEnd }
}

/**
 * A text as a value of the body that is made: a token if it is carried as its source. `writeJson` takes the text itself too, but
 * JSON.stringify needs twice as long if it meets one `toJSON`.
 */
export function sent(text: Text | undefined): unknown {
  return text instanceof JsonSource ? tokenFor(text) : text
}

/** The same for a JSON text. */
export function verbatim(raw: RawJson): unknown {
  return tokenFor(raw instanceof JsonSource ? raw : new JsonSource([raw.source]))
}

/**
 * Writes the body that is made as JSON: keys in the order they were set, without undefined members, sources as they are.
 * JSON.stringify writes the rest at once, with a token for each source.
 * @returns a buffer with memory of its own, which is freed when it is sent (docs/decisions/0049-memory-given-back.md)
 */
export function writeJson(value: unknown): Buffer {
  isWriting = true
  try {
    return fillIn(JSON.stringify(value) ?? 'null')
  } finally {
    isWriting = false
    sources = []
  }
}

/** Of each token in the text that is filled in: where it begins and ends with its quotes, and its number. Grows, and is used again. */
const found: number[] = []

/** @throws Error if a token is in a longer text, or is that of a kept value: a reader took it for a client's text */
function fillIn(text: string): Buffer {
  let count = 0
  const textBytes = Buffer.byteLength(text)
  let size = textBytes
  for (let at = text.indexOf(rareCharacter); at >= 0; at = text.indexOf(rareCharacter, at + 1)) {
    if (text.startsWith(sentMark, at)) {
      const { value, end } = numberAt(text, at + sentMark.length)
      const source = sources[value]
      if (source === undefined || text[at - 1] !== '"' || text[end] !== '"')
        throw new Error('a body has a token that stands for nothing')
      found[count++] = at - 1
      found[count++] = end + 1
      found[count++] = value
      size += sizeOf(source) - (end + 2 - at)
    } else if (text.startsWith(keptMark, at)) throw new Error('a value that is kept as its source was read as a string')
  }
  const target = Buffer.allocUnsafeSlow(size)
  const encoding = textBytes === text.length ? 'latin1' : 'utf8'
  let to = 0
  let from = 0
  for (let i = 0; i < count; i += 3) {
    to += target.write(text.slice(from, found[i]), to, encoding)
    to = put(sources[found[i + 2]!]!, target, to)
    from = found[i + 1]!
  }
  target.write(text.slice(from), to, encoding)
  return target
}

/** @returns the place after the source */
function put({ from, start, end }: JsonSource, target: Buffer, at: number): number {
  if (isBytes(from)) return at + from.copy(target, at, start, end)
  let to = at
  for (const piece of from)
    to += typeof piece === 'string' ? target.write(piece, to) : piece.bytes.copy(target, to, piece.start, piece.end)
  return to
}

function sizeOf({ from, start, end }: JsonSource): number {
  if (isBytes(from)) return end - start
  let size = 0
  for (const piece of from) size += typeof piece === 'string' ? Buffer.byteLength(piece) : piece.end - piece.start
  return size
}

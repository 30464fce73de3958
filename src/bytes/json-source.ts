import { randomBytes } from 'node:crypto'
import type { RawJson } from './json.ts'
import { keptMark, rareCharacter } from './scan.ts'

/** A piece of JSON source: characters of ours, or bytes of a client's body. */
type SourcePiece = string | { bytes: Buffer; start: number; end: number }

/** The text that JSON.stringify writes in the place of a source. Random, so that no text from a client can look like it. */
const token = `${rareCharacter}sent-${randomBytes(9).toString('base64url')}`
const quotedToken = `"${token}"`

/** The sources in the body that `writeJson` is writing, in their order; undefined if none is being written. */
let written: JsonSource[] | undefined

/**
 * JSON that is carried as it was written (ruling T16), in pieces. It is read only when a caller looks at it. The pieces are valid
 * as long as the bytes of the body are.
 */
export class JsonSource implements RawJson {
  readonly pieces: readonly SourcePiece[]
  #source: string | undefined

  constructor(pieces: readonly SourcePiece[]) {
    this.pieces = pieces
  }

  get source(): string {
    this.#source ??= this.pieces.map(readPiece).join('')
    return this.#source
  }

  /** The first character of the source, which tells the type of the value. */
  get first(): string {
    const piece = this.pieces[0]!
    return typeof piece === 'string' ? piece.slice(0, 1) : String.fromCharCode(piece.bytes[piece.start]!)
  }

  /** The beginning of the source, about this many bytes. A character that is cut is U+FFFD. */
  head(bytes: number): string {
    const first = this.pieces[0]!
    if (typeof first === 'string') return this.source.slice(0, bytes)
    return first.bytes.toString('utf8', first.start, Math.min(first.end, first.start + bytes))
  }

  /** Called by JSON.stringify. */
  toJSON(): unknown {
    if (written === undefined) return JSON.parse(this.source)
    written.push(this)
    return token
  }
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

/** A JSON text as a part of a body that `writeJson` writes. */
export function verbatim(raw: RawJson): JsonSource {
  return raw instanceof JsonSource ? raw : new JsonSource([raw.source])
}

/**
 * Writes a body as JSON: keys in the order they were set, without undefined members, sources as they are. JSON.stringify writes the
 * rest at once, with a token for each source.
 * @returns a buffer with memory of its own, which is freed when it is sent (docs/decisions/0049-memory-given-back.md)
 */
export function writeJson(value: unknown): Buffer {
  const sources: JsonSource[] = []
  written = sources
  let text: string
  try {
    text = JSON.stringify(value) ?? 'null'
  } finally {
    written = undefined
  }
  const starts = findTokens(text)
  if (starts.length !== sources.length) throw new Error('a body has a token that stands for nothing')
  const textBytes = Buffer.byteLength(text)
  const size = sources.reduce((sum, { pieces }) => pieces.reduce((bytes, piece) => bytes + sizeOf(piece), sum), 0)
  const target = Buffer.allocUnsafeSlow(textBytes + size - sources.length * quotedToken.length)
  const encoding = textBytes === text.length ? 'latin1' : 'utf8'
  let to = 0
  let from = 0
  for (const [i, { pieces }] of sources.entries()) {
    to += target.write(text.slice(from, starts[i]!), to, encoding)
    for (const piece of pieces)
      to += typeof piece === 'string' ? target.write(piece, to) : piece.bytes.copy(target, to, piece.start, piece.end)
    from = starts[i]! + quotedToken.length
  }
  target.write(text.slice(from), to, encoding)
  return target
}

/** @throws Error if a token of a kept value is in the text: a reader took it for a client's text */
function findTokens(text: string): number[] {
  const starts: number[] = []
  for (let at = text.indexOf(rareCharacter); at >= 0; at = text.indexOf(rareCharacter, at + 1)) {
    if (text.startsWith(quotedToken, at - 1)) starts.push(at - 1)
    else if (text.startsWith(keptMark, at)) throw new Error('a value that is kept as its source was read as a string')
  }
  return starts
}

function sizeOf(piece: SourcePiece): number {
  return typeof piece === 'string' ? Buffer.byteLength(piece) : piece.end - piece.start
}

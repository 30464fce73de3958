import { randomBytes } from 'node:crypto'
import type { RawJson } from './json.ts'
import { keptMark, numberAt, rareCharacter } from './scan.ts'

/** A piece of JSON source: text that we wrote, or bytes of a client's body. */
type SourcePiece = string | { bytes: Buffer; start: number; end: number }

/**
 * The mark with which each token begins; a number follows. A token is a placeholder in the body that is being written.
 * It stands for a JSON text that is copied in at the end. The mark is random and short, like `keptMark`.
 */
const sentMark = `${rareCharacter}s${randomBytes(4).toString('base64url')}`

/**
 * The first 512 tokens (placeholders), each as a flat string. A concatenated string would make JSON.stringify use a
 * slower path for the whole value.
 */
const tokens = Array.from({ length: 512 }, (_, place) => Buffer.from(sentMark + place).toString('latin1'))

/** The sources in the body that is being written. A token (placeholder) has the index of its source in this list. */
let sources: JsonSource[] = []
let isWriting = false

/**
 * JSON in pieces, carried exactly as its author wrote it (ruling T16). The pieces are parsed only when a caller reads
 * the value. After the bytes of the body are released, the pieces are invalid.
 */
export class JsonSource implements RawJson {
  /**
   * Either a list of pieces, or the buffer that contains the source from `start` to `end`. Most sources are one such
   * range. If each were a list of one piece, these lists would be half of all garbage.
   */
  readonly from: Buffer | readonly SourcePiece[]
  readonly start: number
  readonly end: number
  #source: string | undefined

  /** @param from a list of pieces, or a buffer. In a buffer, the source reaches from byte `start` to byte `end` */
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

  /** The first character of the source, which shows the type of the value. */
  get first(): string {
    const { from } = this
    return isBytes(from) ? String.fromCharCode(from[this.start]!) : this.source.slice(0, 1)
  }

  /** The beginning of the source, about this many bytes long. A character that is cut becomes U+FFFD. */
  head(bytes: number): string {
    const { from, start, end } = this
    return isBytes(from) ? from.toString('utf8', start, Math.min(end, start + bytes)) : this.source.slice(0, bytes)
  }

  /** Called by JSON.stringify. Returns a token (placeholder) while `writeJson` runs, and the parsed value otherwise. */
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

/** Forgets the sources of an earlier body that was never written. Call this before a body is built. */
export function beginBody(): void {
  sources = []
}

function readPiece(piece: SourcePiece): string {
  return typeof piece === 'string' ? piece : piece.bytes.toString('utf8', piece.start, piece.end)
}

/** A string that is carried as JSON source. The string is never empty. */
export class SourceText extends JsonSource {
  /** Returns the decoded string. */
  override toString(): string {
    return JSON.parse(this.source) as string
  }
}

/**
 * A text in a request or answer of `src/inference`. A long text from a client's body is carried as its JSON source.
 * Only the empty text is falsy.
 */
export type Text = string | SourceText

/** Matches a JSON string if its beginning already shows that the string has more than white space. */
const beginsWithMore = /^"(?: |\\[nrt])*[^\s\\"\ufffd]/

/** Whether a text has only white space. */
export function isBlank(text: Text): boolean {
  if (typeof text !== 'string' && beginsWithMore.test(text.head(64))) return false
  return text.toString().trim() === ''
}

/** Whether a text begins with a word, ignoring case. @param word of lower-case ASCII letters */
export function beginsWith(text: Text, word: string): boolean {
  if (typeof text !== 'string') {
    const head = text.head(1 + word.length)
    if (!head.includes('\\')) return head.slice(1).toLowerCase() === word
  }
  return text.toString().slice(0, word.length).toLowerCase() === word
}

/** Joins texts as `Array.join` joins strings. A text that is kept as JSON source is joined without parsing. */
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
 * Prepares a text for the body that is being written. If the text is kept as JSON source, a token takes its place.
 * Without tokens, JSON.stringify would call a `toJSON`, which halves its speed.
 */
export function sent(text: Text | undefined): unknown {
  return text instanceof JsonSource ? tokenFor(text) : text
}

/** Returns a token for a JSON text. `writeJson` replaces the token by the text when it writes the body. */
export function verbatim(raw: RawJson): unknown {
  return tokenFor(raw instanceof JsonSource ? raw : new JsonSource([raw.source]))
}

/**
 * Writes a body as JSON, in which sources are copied unchanged. JSON.stringify writes a token (a placeholder) for each
 * source. Then each token is replaced by its source.
 * @returns a buffer with its own memory, which is freed once the buffer is sent
 *   (docs/decisions/0049-memory-given-back.md)
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

/**
 * Three numbers for each token in a text: its start, its end (quotes included), and the index of its source in
 * `sources`. The array grows and is reused.
 */
const found: number[] = []

/**
 * Replaces the tokens in a text by their sources.
 * @throws Error if a token is part of a longer text, or if the text has a token of `scan.ts`
 */
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

/** Copies a source into the buffer. @returns the position after the source */
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

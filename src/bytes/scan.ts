import { isUtf8 } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { type Constant, type Memory, readAssembly } from './assembly.ts'
import { scanCode } from './scan-code.ts'

/*
 * Checks a JSON body strictly by RFC 8259 in one pass over its bytes. Only the top-level members are listed. The few
 * fields that a gateway edits can be spliced in place, and every other byte stays unchanged (ruling P1). The pass is
 * assembly/scan.ts, in WebAssembly (docs/decisions/0056-a-scan-in-webassembly.md). bench/json.bench.ts measures its
 * cost.
 */

/**
 * The most tokens of a body (reliability §3). A body with more is rejected, because it would block the event loop for
 * over 100 ms. Checking and translating a body that consists only of tiny turns or calls takes some 80 ms (B25).
 */
const jsonTokensMax = 150_000
/** The most members at the top level of a body. Memory is used for each. Real requests have fewer than a hundred. */
const jsonMembersMax = 10_000

/** The limits of a JSON text: its tokens and its top-level members. Nesting has a fixed limit of 128 levels. */
export type JsonLimits = { tokensMax: number; membersMax: number }

const requestLimits: JsonLimits = { tokensMax: jsonTokensMax, membersMax: jsonMembersMax }

/**
 * The limits of an answer. An answer of this size is parsed in some 100 ms. Without log probabilities, an answer of
 * 128,000 model tokens has only some hundreds of JSON tokens.
 */
const answerLimits: JsonLimits = { tokensMax: 500_000, membersMax: jsonMembersMax }
/**
 * A text up to this size, in bytes or in the UTF-16 units of a string, is parsed without a scan. Parsing it takes a few
 * ms, whatever its content.
 */
const unscannedMax = 65_536

/** One member of the outermost object. Offsets are in bytes. The text of the value is `bytes.subarray(start, end)`. */
export type JsonMember = {
  /** The decoded key: `"mod\u0065l"` is `model`. */
  key: string
  /** Offset of the opening quote of the key. */
  keyStart: number
  start: number
  end: number
  /** The members of the value, if the value is an object and the scan was asked to list its members. */
  members?: JsonMember[]
}

/**
 * The keys whose values are kept as they were written. There are at most fifteen keys, each of at most 30 ASCII
 * characters. Values are found at any depth, but not inside another kept value.
 */
export type KeptKeys = {
  /** The keys whose objects and arrays are kept. */
  containers: readonly string[]
  /** The keys whose long strings keep their source text. A key can be in `containers` too. */
  texts: readonly string[]
  /**
   * The smallest size of a long string in bytes, including its quotes. At least 3, because the empty string is never
   * kept.
   */
  textBytesMin?: number
}

/**
 * The default size in bytes from which a string counts as long. Parsing a shorter string at once costs no more than
 * keeping its source.
 */
const longTextBytes = 64

/**
 * A character that is rare in texts and that JSON does not escape. Each token for a kept value begins with it (see
 * `keptMark`). So one quick search shows that a text has no token.
 */
export const rareCharacter = '\u007f'
const rareCode = rareCharacter.charCodeAt(0)

/**
 * The beginning of the token that replaces a kept value; the value's number follows. The token is random in every
 * process, so no text from a client equals it. A client that guesses it spoils only its own request. The first hundred
 * tokens have at most ten characters, because V8 parses and writes such strings more cheaply.
 */
export const keptMark = `${rareCharacter}k${randomBytes(4).toString('base64url')}`

/** Returns the number in the token of a kept value (see `keptMark`). Returns undefined for any other value. */
export function keptPlace(value: unknown): number | undefined {
  if (typeof value !== 'string' || value.charCodeAt(0) !== rareCode || !value.startsWith(keptMark)) return undefined
  return numberAt(value, keptMark.length).value
}

/**
 * Reads the digits that begin at `start`. Returns the number and the position after it. Reading a substring of the
 * digits with `Number` costs several times as much.
 */
export function numberAt(text: string, start: number): { value: number; end: number } {
  let value = 0
  let end = start
  for (let digit = text.charCodeAt(end) - 0x30; digit >= 0 && digit <= 9; digit = text.charCodeAt(++end) - 0x30)
    value = 10 * value + digit
  return { value, end }
}

/** A text with a token in the place of each kept value, and the ranges of the kept values in the scanned bytes. */
export type Outline = { text: string; ranges: readonly Stretch[] }

/** A part of the scanned bytes. */
type Stretch = { start: number; end: number }

/** Further facts that a scan records besides the top-level members, so that one scan is enough. */
type JsonLook = {
  /** A top-level key of at most 127 bytes. If its value is an object, the members of that object are listed too. */
  inside?: string | undefined
  /** The ranges of the values under these keys are added to `found`. */
  keys?: KeptKeys | undefined
  found?: Stretch[]
  /** The scan adds the facts that it notes about strings (keys and values) to this set. */
  notes?: Set<Note>
}

/**
 * The scan notes whether one of these words is a whole string (key or value) of the body. Such a body must be searched
 * or parsed further. The scan compares a word only with strings of the same length, which is far cheaper than a search.
 */
const notedWords = ['developer', 'reasoning', 'thinking', 'item_reference', 'id', 'cache_control', '1h', '12h'] as const

/** The scan notes whether a string of the body ends in one of these words. Such a body must be searched further. */
const notedEndings = ['mcp', 'shell', 'computer'] as const

export type NotedWord = (typeof notedWords)[number]
export type NotedEnding = (typeof notedEndings)[number]
/**
 * A note that the body has a certain string. A word means a string that equals it, `…` with a word means a string that
 * ends in it. `data:…` means a string that begins like a data URL, in any case and without escapes. `escaped letter`
 * means a printable ASCII character that is needlessly written as a six-character escape. Characters that some writers
 * escape for HTML, such as `<`, do not count.
 */
export type Note = NotedWord | `…${NotedEnding}` | 'data:…' | 'escaped letter'

/** Explains why a text is rejected. The message is our own, because a parser's message would quote the input. */
export class JsonError extends Error {}

/**
 * The number of bytes reserved after the text. The scan reads sixteen bytes at once, so its last read may go beyond the
 * text. The scan also writes its first few results here. The memory grows if there are more results.
 */
const slackBytes = 4_096
const pageBytes = 65_536
/**
 * The largest memory that is kept after a scan, in bytes. WebAssembly memory cannot shrink, so a larger one is released
 * as a whole.
 */
const keptBytesMax = 4 * 1024 * 1024

/** The largest limit that the scan takes, because it counts in signed integers of 32 bits. */
const countMax = 0x7fff_ffff

const lookAtNothing: JsonLook = {}
let scanner: Scanner | undefined

/**
 * Returns the members of the outermost object in order, including duplicates.
 * @throws JsonError if the text is not exactly one JSON object in UTF-8 within the limits
 */
export function scanObject(bytes: Uint8Array, limits = requestLimits, look = lookAtNothing): JsonMember[] {
  if (!isUtf8(bytes)) throw new JsonError('is not valid UTF-8')
  return withScanner((its) => its.scan(bytes, limits, look))
}

/**
 * Returns the outline of a text, in which a token replaces each kept value. The outline is read from the memory of the
 * last scan. If that scan was of another text or had other keys, the text is scanned again.
 * @param members the result of the text's scan
 */
export function outlineOf(bytes: Uint8Array, keys: KeptKeys, members: readonly JsonMember[]): Outline {
  return withScanner((its) => its.outline(bytes, keys, members))
}

function withScanner<Result>(use: (scanner: Scanner) => Result): Result {
  scanner ??= new Scanner()
  try {
    return use(scanner)
  } finally {
    if (scanner.bytes > keptBytesMax) scanner = undefined
  }
}

/**
 * Parses a text from an upstream. A few megabytes of brackets would take a second to parse. A large text is therefore
 * scanned first, with limits.
 * @throws JsonError, SyntaxError
 */
export function parseUpstreamJson(text: string | Buffer): unknown {
  if (text.length > unscannedMax) scanObject(typeof text === 'string' ? Buffer.from(text) : text, answerLimits)
  return JSON.parse(typeof text === 'string' ? text : text.toString('utf8'))
}

/**
 * The longest text that is parsed without a scan, in characters. Parsing takes half the time of a scan, and such a text
 * cannot be nested too deeply.
 */
const parsedCharactersMax = 256

/** Whether a text is one JSON object within the limits of a request. Only JSON white space may surround it. */
export function isJsonObject(text: string): boolean {
  if (!/^[ \t\n\r]*\{/.test(text)) return false
  try {
    if (text.length <= parsedCharactersMax) JSON.parse(text)
    else scanObject(Buffer.from(text))
    return true
  } catch (error) {
    if (error instanceof JsonError || error instanceof SyntaxError) return false
    throw error
  }
}

/** The exports of assembly/scan.ts. */
type ScanExports = {
  [Name in
    | ('noObject' | 'tooDeep' | 'depthMax' | 'tooManyTokens' | 'tooManyMembers')
    | ('innerMember' | 'memberWithInner' | 'found' | 'recordNumbers')
    | ('endingsBit' | 'escapedLetterBit' | 'dataUrlBit' | 'wantsContainer' | 'wantsText')
    | ('wantedAt' | 'tokenAt' | 'insideAt' | 'wordsAt' | 'endingsAt' | 'slotBytes' | 'textAt')]: Constant
} & {
  memory: Memory
  prepare: () => void
  scan: (
    length: number,
    tokensMax: number,
    membersMax: number,
    hasWanted: boolean,
    textBytesMin: number,
    insideLength: number,
    notesStrings: boolean,
  ) => number
  outline: () => number
  outlineAt: () => number
  recordsAt: () => number
  notes: () => number
}

/** The number of remembered keys, which is a power of two, and the greatest length of a remembered key in bytes. */
const [keptKeys, keptKeyBytesMax] = [256, 32]

/** Whether the bytes from `from` to `to` equal a text. Escaped or non-ASCII bytes never match. */
function stands(text: string, bytes: Uint8Array, from: number, to: number): boolean {
  if (text.length !== to - from) return false
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) !== bytes[from + i]) return false
  return true
}

const startScan = readAssembly<ScanExports>(scanCode)

/** One WebAssembly instance and its memory. It scans one text at a time. */
class Scanner {
  readonly #exports: ScanExports
  readonly #textAt: number
  readonly #records: { [Name in 'innerMember' | 'memberWithInner' | 'found' | 'recordNumbers']: number }
  readonly #noteOfBits: ReadonlyMap<number, Note>
  #memory: Buffer
  #wanted: KeptKeys | undefined
  /** The most recent scan. Its text and its records are still in the WebAssembly memory. */
  #last: { members: JsonMember[]; keys: KeptKeys | undefined } | undefined
  #count = 0
  /** Remembered keys without escapes, by a hash of their bytes. */
  readonly #keys = new Array<string | undefined>(keptKeys).fill(undefined)

  constructor() {
    this.#exports = startScan()
    const { memory, prepare, textAt, wordsAt, endingsAt, endingsBit, escapedLetterBit, dataUrlBit } = this.#exports
    const { innerMember, memberWithInner, found, recordNumbers } = this.#exports
    this.#memory = Buffer.from(memory.buffer)
    this.#textAt = textAt.value
    this.#records = {
      innerMember: innerMember.value,
      memberWithInner: memberWithInner.value,
      found: found.value,
      recordNumbers: recordNumbers.value,
    }
    this.#noteOfBits = new Map<number, Note>([
      ...notedWords.map((word, i) => [i, word] as const),
      ...notedEndings.map((ending, i) => [endingsBit.value + i, `…${ending}`] as const),
      [escapedLetterBit.value, 'escaped letter'],
      [dataUrlBit.value, 'data:…'],
    ])
    this.#writeSlots(wordsAt.value, notedWords)
    this.#writeSlots(endingsAt.value, notedEndings)
    const { tokenAt } = this.#exports
    this.#memory[tokenAt.value] = this.#memory.write(keptMark, tokenAt.value + 1, 'latin1')
    prepare()
  }

  get bytes(): number {
    return this.#memory.length
  }

  scan(bytes: Uint8Array, { tokensMax, membersMax }: JsonLimits, look: JsonLook): JsonMember[] {
    const { inside, keys, found, notes } = look
    const { memory, scan, insideAt } = this.#exports
    const end = this.#textAt + bytes.length
    if (end + slackBytes > this.#memory.length) {
      memory.grow(Math.ceil((end + slackBytes - this.#memory.length) / pageBytes))
      this.#memory = Buffer.from(memory.buffer)
    }
    this.#last = undefined
    this.#memory.set(bytes, this.#textAt)
    // A zero byte after the text stops every loop, so no loop has to check for the end.
    this.#memory[end] = 0
    if (keys !== undefined) this.#want(keys)
    const insideLength = inside === undefined ? -1 : this.#memory.write(inside, insideAt.value, 'utf8')
    const count = scan(
      bytes.length,
      Math.min(tokensMax, countMax),
      Math.min(membersMax, countMax),
      keys !== undefined,
      Math.min(keys?.textBytesMin ?? longTextBytes, countMax),
      insideLength,
      notes !== undefined,
    )
    if (count < 0) throw this.#explain(count, { tokensMax, membersMax })
    this.#lookAgain()
    if (notes !== undefined) this.#readNotes(notes)
    this.#count = count
    const members = this.#readRecords(inside)
    if (found !== undefined) for (const range of this.#readFound()) found.push(range)
    this.#last = { members, keys }
    return members
  }

  outline(bytes: Uint8Array, keys: KeptKeys, members: readonly JsonMember[]): Outline {
    const isThere = this.#last?.members === members && this.#last.keys === keys
    if (!isThere) this.scan(bytes, requestLimits, { keys })
    const length = this.#exports.outline()
    this.#lookAgain()
    const start = this.#exports.outlineAt()
    return { text: this.#memory.toString('utf8', start, start + length), ranges: this.#readFound() }
  }

  /** Replaces the view of the memory if the memory has grown, because growth detaches the old view. */
  #lookAgain(): void {
    const { buffer } = this.#exports.memory
    if (buffer !== this.#memory.buffer) this.#memory = Buffer.from(buffer)
  }

  /** Writes the keys into the WebAssembly memory. Usually they are there already from the last scan. */
  #want(keys: KeptKeys): void {
    if (keys === this.#wanted) return
    const { wantedAt, slotBytes, wantsContainer, wantsText } = this.#exports
    const words = [...new Set([...keys.containers, ...keys.texts])]
    this.#writeSlots(wantedAt.value, words)
    for (const [i, word] of words.entries())
      this.#memory[wantedAt.value + (i + 1) * slotBytes.value - 1] =
        (keys.containers.includes(word) ? wantsContainer.value : 0) | (keys.texts.includes(word) ? wantsText.value : 0)
    this.#wanted = keys
  }

  #readNotes(notes: Set<Note>): void {
    const bits = this.#exports.notes()
    if (bits !== 0) for (const [bit, note] of this.#noteOfBits) if ((bits & (1 << bit)) !== 0) notes.add(note)
  }

  get #read(): Int32Array {
    const { recordNumbers } = this.#records
    return new Int32Array(this.#memory.buffer, this.#exports.recordsAt(), this.#count * recordNumbers)
  }

  #readFound(): Stretch[] {
    const { found, recordNumbers } = this.#records
    const records = this.#read
    const ranges: Stretch[] = []
    for (let i = 0; i < records.length; i += recordNumbers)
      if (records[i] === found) ranges.push({ start: records[i + 3]!, end: records[i + 4]! })
    return ranges
  }

  #readRecords(inside: string | undefined): JsonMember[] {
    const { innerMember, memberWithInner, found, recordNumbers } = this.#records
    const records = this.#read
    const members: JsonMember[] = []
    let inner: JsonMember[] = []
    for (let i = 0; i < records.length; i += recordNumbers) {
      const kind = records[i]!
      if (kind === found) continue
      const start = records[i + 3]!
      const end = records[i + 4]!
      const keyStart = records[i + 1]!
      const member: JsonMember = { key: this.#readKey(keyStart + 1, records[i + 2]! - 1), keyStart, start, end }
      if (kind === innerMember) {
        inner.push(member)
        continue
      }
      members.push(member)
      if (kind !== memberWithInner) continue
      if (member.key === inside) member.members = inner
      inner = []
    }
    return members
  }

  /**
   * Returns a key. Most texts have the same dozen keys. For a key that was read before, the same string is returned, so
   * nothing is allocated or hashed again.
   */
  #readKey(start: number, end: number): string {
    const [memory, from, to] = [this.#memory, this.#textAt + start, this.#textAt + end]
    let hash = end - start
    for (let at = from; at < to && at < from + keptKeyBytesMax; at++) hash = (31 * hash + memory[at]!) & (keptKeys - 1)
    const kept = this.#keys[hash]
    if (kept !== undefined && stands(kept, memory, from, to)) return kept
    const text = memory.toString('utf8', from, to)
    if (text.includes('\\')) return JSON.parse(`"${text}"`) as string
    if (end - start <= keptKeyBytesMax) this.#keys[hash] = text
    return text
  }

  #explain(result: number, { tokensMax, membersMax }: JsonLimits): JsonError {
    const { noObject, tooDeep, depthMax, tooManyTokens, tooManyMembers } = this.#exports
    if (result === noObject.value) return new JsonError('is not a JSON object')
    if (result === tooDeep.value) return new JsonError(`is nested deeper than ${depthMax.value} levels`)
    if (result === tooManyTokens.value) return new JsonError(`has more than ${tokensMax} JSON tokens`)
    if (result === tooManyMembers.value) return new JsonError(`has more than ${membersMax} fields in one object`)
    return new JsonError('is not valid JSON')
  }

  #writeSlots(at: number, words: readonly string[]): void {
    for (const [i, word] of words.entries()) {
      const slot = at + i * this.#exports.slotBytes.value
      this.#memory[slot] = word.length
      this.#memory.write(word, slot + 1, 'latin1')
    }
    this.#memory[at + words.length * this.#exports.slotBytes.value] = 0
  }
}

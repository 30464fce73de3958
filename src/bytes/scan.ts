import { isUtf8 } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { type Constant, type Memory, readAssembly } from './assembly.ts'
import { scanCode } from './scan-code.ts'

/*
 * Checks a JSON body, as bytes, strictly by RFC 8259 in one pass, and lists only its top-level members. So the few fields
 * that a gateway edits can be spliced in place, and everything else stays as it came (ruling P1). The pass is
 * assembly/scan.ts, in WebAssembly (docs/decisions/0056-a-scan-in-webassembly.md); bench/json.bench.ts measures its cost.
 */

/**
 * The most tokens of a body (reliability §3). A scan refuses more, which would take over 100 ms of the event loop. A body of
 * only tiny turns or calls takes some 80 ms to be checked and translated (B25).
 */
const jsonTokensMax = 150_000
/** The most top-level members. Each is recorded, and no real request has a hundred. */
const jsonMembersMax = 10_000

/** The limits of a text, except for its nesting, which may be 128 levels deep. */
export type JsonLimits = { tokensMax: number; membersMax: number }

const requestLimits: JsonLimits = { tokensMax: jsonTokensMax, membersMax: jsonMembersMax }

/** The limits of an answer, which can be parsed in some 100 ms. Without log probabilities, 128,000 tokens of text have some hundreds. */
const answerLimits: JsonLimits = { tokensMax: 500_000, membersMax: jsonMembersMax }
/** A smaller text is parsed in a few ms, whatever its content. In bytes, or in UTF-16 units of a string. */
const unscannedMax = 65_536

/** One member of the outermost object. Offsets are bytes; the value's text is `bytes.subarray(start, end)`. */
export type JsonMember = {
  /** The decoded key: `"mod\u0065l"` is `model`. */
  key: string
  /** Offset of the opening quote of the key. */
  keyStart: number
  start: number
  end: number
  /** The members of the value, if the scan was asked to look into it and it is an object. */
  members?: JsonMember[]
}

/**
 * The keys whose values are kept as they were written: plain ASCII of at most 30 letters, fifteen keys at most. Values are found at
 * any depth, but not inside another value that is kept.
 */
export type KeptKeys = {
  /** Keys of objects and arrays. */
  containers: readonly string[]
  /** Keys of strings, which are kept if they are long. A key may be in both lists. */
  texts: readonly string[]
  /** From how many bytes on a string is long, its quotes included: at least 3, since the empty string is never kept. */
  textBytesMin?: number
}

/** A shorter string is read at once: to keep its source would cost as much. */
const longTextBytes = 64

/** A character that hardly any text has, and that JSON writes as it is: a text without it is soon known to have no token. */
export const rareCharacter = '\u007f'
const rareCode = rareCharacter.charCodeAt(0)

/**
 * The beginning of the token that is in the place of a kept value; its number follows. Random in every process, so that no text
 * from a client can look like it.
 */
export const keptMark = `${rareCharacter}kept-${randomBytes(9).toString('base64url')}:`

/** The number of the kept value whose token a parsed value is; undefined for any other value. */
export function keptPlace(value: unknown): number | undefined {
  if (typeof value !== 'string' || value.charCodeAt(0) !== rareCode || !value.startsWith(keptMark)) return undefined
  return numberAt(value, keptMark.length).value
}

/** The digits from a place on as a number, and where they end. To cut them out costs several times as much. */
export function numberAt(text: string, start: number): { value: number; end: number } {
  let value = 0
  let end = start
  for (let digit = text.charCodeAt(end) - 0x30; digit >= 0 && digit <= 9; digit = text.charCodeAt(++end) - 0x30)
    value = 10 * value + digit
  return { value, end }
}

/** A text with a token in the place of each value that is kept, and where these values are. */
export type Outline = { text: string; ranges: readonly Stretch[] }

/** A part of the scanned bytes. */
type Stretch = { start: number; end: number }

/** Further facts that a scan records besides the top-level members, so that one scan is enough. */
type JsonLook = {
  /** A key of at most 127 bytes. If its value is an object, the members of that are listed too. */
  inside?: string | undefined
  /** The ranges of the values under these keys are added to `found`. */
  keys?: KeptKeys | undefined
  found?: Stretch[]
  /** Receives notes on strings, both keys and values. */
  notes?: Set<Note>
}

/**
 * Words that show, as a whole string, that a body needs a closer look. Only strings of the same length are compared with a
 * word. A native search for one word would cost a fifth of the scan. It would cost twice the whole scan if most of the body
 * is an image.
 */
const notedWords = [
  'developer',
  'reasoning',
  'signature',
  'item_reference',
  'id',
  'cache_control',
  '1h',
  '12h',
] as const

/** Endings of strings that show the same. */
const notedEndings = ['mcp', 'shell', 'computer'] as const

export type NotedWord = (typeof notedWords)[number]
export type NotedEnding = (typeof notedEndings)[number]
/**
 * A word that is a whole string, or an ending of one. `escaped letter` is a letter, digit or sign of ASCII that is written as an
 * escape of six characters. Characters that HTML-safe writers of JSON escape do not count.
 */
export type Note = NotedWord | `…${NotedEnding}` | 'escaped letter'

/** The reason why a text is refused. The words are our own, because a parser's message would quote the input. */
export class JsonError extends Error {}

/** Bytes after the text: loads of sixteen bytes may reach into them, and they hold a few records. More records grow the memory. */
const slackBytes = 4_096
const pageBytes = 65_536
/** The memory never shrinks. If it has grown beyond this size for a large text, it is released afterwards. */
const keptBytesMax = 4 * 1024 * 1024

/** The largest value of a counter in the scan. */
const countMax = 0x7fff_ffff

const lookAtNothing: JsonLook = {}
let scanner: Scanner | undefined

/**
 * Returns the members of the outermost object, in order, duplicates included.
 * @throws JsonError if the text is not exactly one JSON object in UTF-8 within the limits
 */
export function scanObject(bytes: Uint8Array, limits = requestLimits, look = lookAtNothing): JsonMember[] {
  if (!isUtf8(bytes)) throw new JsonError('is not valid UTF-8')
  return withScanner((its) => its.scan(bytes, limits, look))
}

/**
 * The outline of a text, from the memory of its scan. If another text was scanned since, or without these keys, it is scanned again.
 * @param members the result of its scan
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
 * Parses a text of an upstream. A few megabytes of brackets would take a second to parse, so a large text is scanned first,
 * with limits.
 * @throws JsonError, SyntaxError
 */
export function parseUpstreamJson(text: string | Buffer): unknown {
  if (text.length > unscannedMax) scanObject(typeof text === 'string' ? Buffer.from(text) : text, answerLimits)
  return JSON.parse(typeof text === 'string' ? text : text.toString('utf8'))
}

/** A text of so many characters is parsed in half the time of a scan, and cannot be nested too deep. */
const parsedCharactersMax = 256

/** Whether a text is one JSON object within the limits of a request, with only JSON's white space around it. */
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
    | ('endingsBit' | 'escapedLetterBit' | 'wantsContainer' | 'wantsText')
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

/** So many keys are kept, a power of two, of at most so many bytes each. */
const [keptKeys, keptKeyBytesMax] = [256, 32]

/** Whether the bytes are this text, which has no escapes. Bytes of escapes, or beyond ASCII, are not. */
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
  /** The last scan, whose text and records are in the memory. */
  #last: { members: JsonMember[]; keys: KeptKeys | undefined } | undefined
  #count = 0
  /** Keys without escapes, by a hash of their bytes. */
  readonly #keys = new Array<string | undefined>(keptKeys).fill(undefined)

  constructor() {
    this.#exports = startScan()
    const { memory, prepare, textAt, wordsAt, endingsAt, endingsBit, escapedLetterBit } = this.#exports
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
    // This byte stops every loop, so that none has to check for the end.
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

  /** The memory that was there is no more when it has grown. */
  #lookAgain(): void {
    const { buffer } = this.#exports.memory
    if (buffer !== this.#memory.buffer) this.#memory = Buffer.from(buffer)
  }

  /** Writes the keys, unless they are the same as before, which is usual. */
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

  /** Most texts have the same dozen keys. One that was read before is the same string, of which nothing is made or hashed again. */
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

import { isUtf8 } from 'node:buffer'
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

/** Further facts that a scan records besides the top-level members, so that one scan is enough. */
type JsonLook = {
  /** A key of at most 127 bytes. If its value is an object, the members of that are listed too. */
  inside?: string | undefined
  /**
   * At most eight keys of plain ASCII, of at most 15 letters. If the value of one is an object or an array, its range is added to
   * `found`. That holds at any depth, but not inside another such value.
   */
  keys?: readonly string[]
  found?: { start: number; end: number }[]
  /** Receives notes on strings, both keys and values. */
  notes?: Set<Note>
}

/**
 * Words that show, as a whole string, that a body needs a closer look. Only strings of the same length are compared with a
 * word. A native search for one word would cost a fifth of the scan. It would cost twice the whole scan if most of the body
 * is an image.
 */
const notedWords = ['developer', 'reasoning', 'signature', 'item_reference', 'id', 'cache_control'] as const

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
const noKeys: readonly string[] = []
let scanner: Scanner | undefined

/**
 * Returns the members of the outermost object, in order, duplicates included.
 * @throws JsonError if the text is not exactly one JSON object in UTF-8 within the limits
 */
export function scanObject(bytes: Uint8Array, limits = requestLimits, look = lookAtNothing): JsonMember[] {
  if (!isUtf8(bytes)) throw new JsonError('is not valid UTF-8')
  scanner ??= new Scanner()
  try {
    return scanner.scan(bytes, limits, look)
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

/** Whether a text is one JSON object within the limits of a request, with only JSON's white space around it. */
export function isJsonObject(text: string): boolean {
  if (!/^[ \t\n\r]*\{/.test(text)) return false
  try {
    scanObject(Buffer.from(text))
    return true
  } catch (error) {
    if (error instanceof JsonError) return false
    throw error
  }
}

/** The exports of assembly/scan.ts. */
type ScanExports = {
  [Name in
    | ('noObject' | 'tooDeep' | 'depthMax' | 'tooManyTokens' | 'tooManyMembers')
    | ('innerMember' | 'memberWithInner' | 'found' | 'recordNumbers')
    | ('endingsBit' | 'escapedLetterBit')
    | ('wantedAt' | 'insideAt' | 'wordsAt' | 'endingsAt' | 'slotBytes' | 'textAt')]: Constant
} & {
  memory: Memory
  prepare: () => void
  scan: (
    length: number,
    tokensMax: number,
    membersMax: number,
    hasWanted: boolean,
    insideLength: number,
    notesStrings: boolean,
  ) => number
  recordsAt: () => number
  notes: () => number
}

const startScan = readAssembly<ScanExports>(scanCode)

/** One WebAssembly instance and its memory. It scans one text at a time. */
class Scanner {
  readonly #exports: ScanExports
  readonly #textAt: number
  readonly #records: { [Name in 'innerMember' | 'memberWithInner' | 'found' | 'recordNumbers']: number }
  readonly #noteOfBits: ReadonlyMap<number, Note>
  #memory: Buffer
  #wanted = noKeys

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
    prepare()
  }

  get bytes(): number {
    return this.#memory.length
  }

  scan(bytes: Uint8Array, { tokensMax, membersMax }: JsonLimits, look: JsonLook): JsonMember[] {
    const { inside, keys = noKeys, found, notes } = look
    const { memory, scan, insideAt } = this.#exports
    const end = this.#textAt + bytes.length
    if (end + slackBytes > this.#memory.length) {
      memory.grow(Math.ceil((end + slackBytes - this.#memory.length) / pageBytes))
      this.#memory = Buffer.from(memory.buffer)
    }
    this.#memory.set(bytes, this.#textAt)
    // This byte stops every loop, so that none has to check for the end.
    this.#memory[end] = 0
    this.#want(keys)
    const insideLength = inside === undefined ? -1 : this.#memory.write(inside, insideAt.value, 'utf8')
    const count = scan(
      bytes.length,
      Math.min(tokensMax, countMax),
      Math.min(membersMax, countMax),
      keys.length > 0,
      insideLength,
      notes !== undefined,
    )
    if (count < 0) throw this.#explain(count, { tokensMax, membersMax })
    if (memory.buffer !== this.#memory.buffer) this.#memory = Buffer.from(memory.buffer)
    if (notes !== undefined) this.#readNotes(notes)
    return this.#readRecords(count, inside, found)
  }

  /** Writes the keys, unless they are the same as before, which is usual. */
  #want(keys: readonly string[]): void {
    if (keys === this.#wanted || keys.length === 0) return
    this.#writeSlots(this.#exports.wantedAt.value, keys)
    this.#wanted = keys
  }

  #readNotes(notes: Set<Note>): void {
    const bits = this.#exports.notes()
    if (bits !== 0) for (const [bit, note] of this.#noteOfBits) if ((bits & (1 << bit)) !== 0) notes.add(note)
  }

  #readRecords(count: number, inside: string | undefined, found: JsonLook['found']): JsonMember[] {
    const { innerMember, memberWithInner, found: foundKind, recordNumbers } = this.#records
    const records = new Int32Array(this.#memory.buffer, this.#exports.recordsAt(), count * recordNumbers)
    const members: JsonMember[] = []
    let inner: JsonMember[] = []
    for (let i = 0; i < records.length; i += recordNumbers) {
      const kind = records[i]!
      const start = records[i + 3]!
      const end = records[i + 4]!
      if (kind === foundKind) {
        found?.push({ start, end })
        continue
      }
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

  #readKey(start: number, end: number): string {
    const text = this.#memory.toString('utf8', this.#textAt + start, this.#textAt + end)
    return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text
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

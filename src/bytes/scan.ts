import { isUtf8 } from 'node:buffer'
import { type Constant, type Memory, readAssembly } from './assembly.ts'
import { scanCode } from './scan-code.ts'

/*
 * A JSON body as bytes is checked to the letter of RFC 8259 in one pass. The pass builds only a list of the top-level members. So
 * the few fields that a gateway edits can be spliced in place, and all else stays as it came (ruling P1). The
 * pass is assembly/scan.ts, in WebAssembly (docs/decisions/0056-a-scan-in-webassembly.md); what it costs: bench/json.bench.ts.
 */

/**
 * The size that a body may have; more is refused within the scan (reliability §3). So many tokens fit into
 * 100 ms of the loop. A body of only tiny turns or calls takes some 80 ms to be checked and translated (B25).
 */
const jsonTokensMax = 150_000
/** Top-level fields; each is kept track of, and no request has a hundred. */
const jsonMembersMax = 10_000

/** The limits of a text, apart from its nesting, which is 128 levels at most. */
export type JsonLimits = { tokensMax: number; membersMax: number }

const requestLimits: JsonLimits = { tokensMax: jsonTokensMax, membersMax: jsonMembersMax }

/** Of an answer, its log probabilities apart: what is parsed in some 100 ms. An answer of 128,000 tokens has some hundreds. */
const answerLimits: JsonLimits = { tokensMax: 500_000, membersMax: jsonMembersMax }
/** A text that is no larger is parsed in a few ms however it is built. In bytes, or in units of a string. */
const unscannedMax = 65_536

/** One member of the outermost object. Offsets are bytes; the value's text is `bytes.subarray(start, end)`. */
export type JsonMember = {
  /** Decoded: `"mod\u0065l"` is `model`. */
  key: string
  /** The beginning of the member: the opening quote of its key. */
  keyStart: number
  start: number
  end: number
  /** The members of its value, if the scan was asked to look into it and it is an object. */
  members?: JsonMember[]
}

/** Further facts that a scan notes beside the outermost members, so that one scan is enough. */
export type JsonLook = {
  /** The key of the outermost object whose own members are listed too, of at most 127 bytes. */
  inside?: string | undefined
  /**
   * At most eight keys of plain ASCII, of at most 15 letters. If the value of one is an object or an array, its range is added to
   * `found`. That holds at any depth, but not inside another such value.
   */
  keys?: readonly string[]
  found?: { start: number; end: number }[]
  /** Notes on its strings, both keys and values, are added. */
  notes?: Set<Note>
}

/**
 * Words that decide whether a body needs a closer look, if they are a whole string. A native search for one costs as much as a
 * fifth of the scan. If most of the body is an image, it costs twice as much as the whole scan. Here only strings of its length
 * are compared with it.
 */
const notedWords = ['developer', 'reasoning', 'signature', 'item_reference', 'id', 'cache_control'] as const

/** The same where a string ends in them. */
const notedEndings = ['mcp', 'shell', 'computer'] as const

export type NotedWord = (typeof notedWords)[number]
export type NotedEnding = (typeof notedEndings)[number]
/**
 * A word that is a whole string, or an ending of one. `escaped letter` is a letter, digit or sign of ASCII that is written as an
 * escape of six characters. Characters that writers of JSON for pages escape do not count.
 */
export type Note = NotedWord | `…${NotedEnding}` | 'escaped letter'

/** Why a text is not a JSON object we take. The words are ours: a parser's message would quote the input. */
export class JsonError extends Error {}

/** Bytes after the text, which a load of sixteen bytes may reach into, with a few records. More records make the memory grow. */
const slackBytes = 4_096
const pageBytes = 65_536
/** Memory only grows; one that has grown beyond this for a large text is released after it. */
const keptBytesMax = 4 * 1024 * 1024

/** The most that a number of the scan can be. */
const countMax = 0x7fff_ffff

const lookAtNothing: JsonLook = {}
const noKeys: readonly string[] = []
let scanner: Scanner | undefined

/**
 * The members of the outermost object, in order, duplicates included.
 * @throws JsonError when the text is not exactly one JSON object in UTF-8 within the limits.
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
 * Parses a text of an upstream. Only the size of an answer bounds its content, and a few megabytes of brackets would be parsed for
 * a second. A large text is therefore scanned first.
 * @throws JsonError, SyntaxError
 */
export function parseUpstreamJson(text: string | Buffer): unknown {
  if (text.length > unscannedMax) scanObject(typeof text === 'string' ? Buffer.from(text) : text, answerLimits)
  return JSON.parse(typeof text === 'string' ? text : text.toString('utf8'))
}

/** Whether a text is one JSON object of the size that a request may have, with nothing but JSON's blanks around it. */
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

/** One memory with the code that works in it. It serves one text after the other. */
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
    // Whatever runs is stopped by it, so that nothing has to ask where the end is.
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

  /** They are the same ones again and again. */
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

import { type JsonMember, keptMark, keptPlace } from './scan.ts'

/** JSON with its source text as the peer wrote it. Numbers beyond 2^53 and key order survive (ruling T16). */
export type RawJson = { source: string }

const quote = 0x22
const backslash = 0x5c
const openObject = 0x7b
const closeObject = 0x7d
const openArray = 0x5b
const closeArray = 0x5d

/** The members of a parsed JSON object; their values are not checked. */
export type JsonObject = Record<string, unknown>

/** A part of a larger text, in UTF-16 units, or a part of a buffer, in bytes. */
export type Range = { start: number; end: number }

/** Replaces a range by text. An insertion has `start === end`. */
export type Edit = { start: number; end: number; text: string }

/** Returns the bytes with all edits made. Edits may come in any order, but must not overlap. */
export function splice(bytes: Uint8Array, edits: Edit[]): Buffer {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  if (edits.length === 0) return whole
  const pieces: Buffer[] = []
  let at = 0
  for (const edit of [...edits].sort((a, b) => a.start - b.start || a.end - b.end)) {
    pieces.push(whole.subarray(at, edit.start), Buffer.from(edit.text))
    at = edit.end
  }
  pieces.push(whole.subarray(at))
  return Buffer.concat(pieces)
}

/** Applies the edits to a text. Unlike in `splice`, the edits must be in order. */
function spliceText(text: string, edits: readonly Edit[]): string {
  const pieces: string[] = []
  let at = 0
  for (const { start, end, text: written } of edits) {
    pieces.push(text.slice(at, start), written)
    at = end
  }
  pieces.push(text.slice(at))
  return pieces.join('')
}

/** Returns the source text of a member's value. */
export function memberText(bytes: Uint8Array, member: JsonMember): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + member.start, member.end - member.start).toString('utf8')
}

/** A parsed JSON value whose chosen members kept their source text. */
export type KeptJson = {
  value: unknown
  /** Returns the source of a value that was found under one of the kept keys. Any other value is serialized again. */
  raw: (value: unknown) => RawJson
}

/**
 * Parses JSON and keeps the exact source text of some members, so that numbers beyond 2^53 and key order survive
 * (ruling T16). A member is kept if it has one of the keys and its value is an object or an array. The result's `value`
 * has a placeholder for a kept member. The result's `raw` converts the placeholder to the source. The text is parsed
 * natively once. A reviver with source access would cost ten times as much.
 * @param text must be valid JSON, because the kept parts are neither parsed nor checked
 */
export function parseKeeping(text: string, keys: readonly string[]): KeptJson {
  const ranges = findValues(text, keys)
  return {
    value: JSON.parse(spliceText(text, tokensFor(ranges))),
    raw(value) {
      const range = ranges[keptPlace(value) ?? -1]
      return { source: range ? text.slice(range.start, range.end) : (JSON.stringify(value) ?? 'null') }
    },
  }
}

function tokensFor(ranges: readonly Range[]): Edit[] {
  return ranges.map(({ start, end }, place) => ({ start, end, text: JSON.stringify(keptMark + place) }))
}

/**
 * Finds the objects and arrays that are values of these keys, and returns their ranges in order. A value inside another
 * found value is left out.
 */
function findValues(text: string, keys: readonly string[]): Range[] {
  const starts: number[] = []
  for (const key of keys) {
    const needle = `"${key}"`
    for (const at of placesOf(text, needle)) {
      // If the opening quote is escaped, the match is inside a longer string. The closing quote cannot be escaped,
      // because no key ends with a backslash.
      if (text[at - 1] === '\\') continue
      let i = skipSpaceIn(text, at + needle.length)
      if (text[i] !== ':') continue
      i = skipSpaceIn(text, i + 1)
      if (text[i] === '{' || text[i] === '[') starts.push(i)
    }
  }
  starts.sort((a, b) => a - b)
  const ranges: Range[] = []
  let covered = 0
  for (const start of starts) {
    if (start < covered) continue
    covered = endOfContainer(text, start)
    ranges.push({ start, end: covered })
  }
  return ranges
}

function skipSpaceIn(text: string, index: number): number {
  let i = index
  while (text[i] === ' ' || text[i] === '\n' || text[i] === '\r' || text[i] === '\t') i++
  return i
}

/** Returns the position after the object or array that begins at `start`. */
function endOfContainer(text: string, start: number): number {
  let depth = 0
  for (let i = start; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === quote) i = endOfString(text, i)
    else if (code === openObject || code === openArray) depth++
    else if (code === closeObject || code === closeArray) {
      if (--depth === 0) return i + 1
    }
  }
  return text.length
}

const scalarEnds = /[,}\]\s]|$/g

/**
 * Returns the position after the value that begins at `start`. If the value is unfinished, the position may be beyond
 * the end of the text.
 */
export function endOfValue(text: string, start: number): number {
  const code = text.charCodeAt(start)
  if (code === quote) return endOfString(text, start) + 1
  if (code === openObject || code === openArray) return endOfContainer(text, start)
  scalarEnds.lastIndex = start
  return scalarEnds.exec(text)!.index
}

/**
 * The number of characters that a loop checks before a native search takes over. Up to this length, the search costs as
 * much as the loop.
 */
const walkedCharacters = 32

/**
 * Returns the index of the closing quote of the string that opens at `start`. Returns the length of the text if the
 * string is unfinished.
 */
export function endOfString(text: string, start: number): number {
  let i = start + 1
  for (const walked = Math.min(i + walkedCharacters, text.length); i < walked; i++) {
    const code = text.charCodeAt(i)
    if (code === quote) return i
    if (code === backslash) i++
  }
  for (i = text.indexOf('"', i); i >= 0; i = text.indexOf('"', i + 1)) {
    let slashes = 0
    while (text.charCodeAt(i - 1 - slashes) === backslash) slashes++
    if (slashes % 2 === 0) return i
  }
  return text.length
}

/** Returns the parsed value if it is a plain object, or else undefined. */
export function asObject(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined
}

/** Makes a number that JSON writes with exactly these digits. TypeScript has no types for `JSON.rawJSON` yet. */
const { rawJSON: rawJson } = JSON as typeof JSON & { rawJSON(text: string): unknown }

const longNumber = /\d{16}/

/**
 * Parses JSON that will be written again. A number whose digits would change becomes an object that is written with the
 * digits of the text (ruling T16).
 */
export function parseExactly(text: string): unknown {
  if (!longNumber.test(text)) return JSON.parse(text)
  const read = (_: string, value: unknown, { source = '' }: { source?: string } = {}) =>
    typeof value === 'number' && longNumber.test(source) && String(value) !== source ? rawJson(source) : value
  return JSON.parse(text, read as (key: string, value: unknown) => unknown)
}

/** Parses a text. Returns undefined unless the text is a JSON object. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    return asObject(JSON.parse(text))
  } catch {
    return undefined
  }
}

/**
 * Finds the places of an ASCII word in a text or in bytes. The native search is fast only for words of up to six
 * characters. It looks for a longer word at each match of its first character. So at most six characters of the word
 * are searched for: those from its first underscore or digit on, which are rare in texts. A word without either is
 * searched for by its last six characters.
 */
export function* placesOf(text: string | Buffer, word: string): Generator<number, void> {
  for (let at = placeOf(text, word, 0); at >= 0; at = placeOf(text, word, at + 1)) yield at
}

/** Whether a text or bytes contain a word. */
export function holdsWord(text: string | Buffer, word: string): boolean {
  return placeOf(text, word, 0) >= 0
}

/** Returns the first place of the word at or after `from`; -1 if the word does not occur. */
function placeOf(text: string | Buffer, word: string, from: number): number {
  const rare = rareAt(word)
  const part = word.slice(rare, rare + 6)
  for (let at = text.indexOf(part, from + rare); at >= 0; at = text.indexOf(part, at + 1))
    if (isAt(text, word, at - rare)) return at - rare
  return -1
}

/** Returns the index at which the searched part of the word begins (see `placesOf`). */
function rareAt(word: string): number {
  for (let i = 0; i < word.length; i++) {
    const code = word.charCodeAt(i)
    if (code === 0x5f || (code >= 0x30 && code <= 0x39)) return i
  }
  return Math.max(0, word.length - 6)
}

function isAt(text: string | Buffer, word: string, start: number): boolean {
  if (typeof text === 'string') return text.startsWith(word, start)
  return text.toString('latin1', start, start + word.length) === word
}

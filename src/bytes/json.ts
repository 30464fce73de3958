import { isUtf8 } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { placesOf } from './search.ts'

/** JSON whose source text is kept as the peer wrote it: numbers beyond 2^53 and key order survive (ruling T16). */
export type RawJson = { source: string }

/*
 * JSON as bytes. A body is checked to the letter of RFC 8259 in one pass that builds nothing but a list of the
 * top-level members, so that the few fields a gateway edits can be spliced in place and all else stays as it came
 * (ruling P1). Costs and thresholds: bench/json.bench.ts.
 */

/**
 * Nesting and size that a body may have; more is refused within the scan (reliability §3). So many tokens are what 100 ms of
 * the loop allow: a body of nothing but tiny turns or calls takes some 80 ms to be checked and translated (B25).
 */
export const jsonDepthMax = 128
export const jsonTokensMax = 150_000
/** Top-level fields; each is kept track of, and no request has a hundred. */
export const jsonMembersMax = 10_000

/** What a text may have beyond its depth. */
export type JsonLimits = { tokensMax: number; membersMax: number }

const requestLimits: JsonLimits = { tokensMax: jsonTokensMax, membersMax: jsonMembersMax }

/** One member of the outermost object. Offsets are bytes; the value's text is `bytes.subarray(start, end)`. */
export type JsonMember = {
  /** Decoded: `"mod\u0065l"` is `model`. */
  key: string
  /** Where the member begins: the opening quote of its key. */
  keyStart: number
  start: number
  end: number
  /** Those of its value, where the scan was told to look into it and it is an object. */
  members?: JsonMember[]
}

/** What a scan notes beside the outermost members, so that one is enough. */
export type JsonLook = {
  /** The key of the outermost object whose own members are listed too. */
  inside?: string | undefined
  /** A key of plain ASCII: where its value is an object or an array, at any depth, the range is added to `found`. */
  key?: string | undefined
  found?: { start: number; end: number }[]
  /** What is noted of its strings, keys and values, is added. */
  notes?: Set<Note>
}

/**
 * Words that decide whether a body needs a closer look where they are a whole string. A native search for one costs as much as a
 * fifth of the scan, and twice as much as all of it where most is an image; here only strings of its length are compared with it.
 */
const notedWords = ['developer', 'reasoning', 'signature', 'item_reference', 'id'] as const

/** The same where a string ends in them. */
const notedEndings = ['mcp', 'shell', 'computer'] as const

export type NotedWord = (typeof notedWords)[number]
export type NotedEnding = (typeof notedEndings)[number]
/** A word that is a whole string, or an ending of one. */
export type Note = NotedWord | `…${NotedEnding}`

const notedBytesMax = Math.max(...notedWords.map(({ length }) => length)) + 2
/** By their lengths with both quotes. */
const notedOfLength = Array.from({ length: notedBytesMax + 1 }, (_, length) =>
  notedWords.filter((word) => word.length + 2 === length),
)
/** 1 for the last bytes of endings, by which nearly all strings are passed over. */
const endsNoted = new Uint8Array(256)
for (const ending of notedEndings) endsNoted[ending.charCodeAt(ending.length - 1)] = 1

/** Why a text is not a JSON object we take. The words are ours: a parser's message would quote the input. */
export class JsonError extends Error {}

const quote = 0x22
const backslash = 0x5c
const openObject = 0x7b
const closeObject = 0x7d
const openArray = 0x5b
const closeArray = 0x5d
const comma = 0x2c
const colon = 0x3a

/** How long the escape is whose second byte this is; 0 for a byte that may not follow a backslash. */
const escapeBytes = new Uint8Array(256)
for (const character of '"\\/bfnrt') escapeBytes[character.charCodeAt(0)] = 2
escapeBytes[0x75] = 6

/** The kinds of the containers around the place a scan has come to. One for all scans: none begins within another. */
const containers = new Uint8Array(jsonDepthMax + 1)
const lookAtNothing: JsonLook = {}

/** Up to here a run of ordinary bytes is walked; beyond, native search finds its end (a call costs about that much). */
const walkBytes = 256

/**
 * The members of the outermost object, in order, duplicates included.
 * @throws JsonError when the text is not exactly one JSON object in UTF-8 within the limits.
 */
export function scanObject(bytes: Uint8Array, limits = requestLimits, look = lookAtNothing): JsonMember[] {
  const { tokensMax, membersMax } = limits
  const { inside, key: wanted = '', found, notes } = look
  if (!isUtf8(bytes)) throw new JsonError('is not valid UTF-8')
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const members: JsonMember[] = []
  let depth = 0
  let tokens = 0
  let key = ''
  let keyStart = 0
  let valueStart = 0
  // The same of the object that is looked into, while the scan is in it.
  let inner: JsonMember[] | undefined
  let innerKey = ''
  let innerKeyStart = 0
  let innerStart = 0
  // Where the value of a wanted key begins, and the depth to which the scan comes back behind it; 0: it is in none.
  let foundStart = 0
  let foundDepth = 0

  let at = skipSpace(bytes, 0)
  if (bytes[at] !== openObject) throw new JsonError('is not a JSON object')
  containers[++depth] = openObject
  at = skipSpace(bytes, at + 1)
  let isFirst = true

  // One turn of the loop is one member or element of the innermost container, and every end that follows it.
  while (depth > 0) {
    const isObject = containers[depth] === openObject
    let byte = bytes[at]
    if (!(isFirst && byte === (isObject ? closeObject : closeArray))) {
      let isWanted = false
      if (isObject) {
        if (byte !== quote) throw invalid()
        const start = at
        at = skipString(bytes, words, at + 1)
        if (notes !== undefined) noteString(bytes, start, at, notes)
        if (depth === 1) {
          if (members.length === membersMax) throw new JsonError(`has more than ${membersMax} fields in one object`)
          keyStart = start
          key = decodeKey(bytes, start + 1, at - 1)
        } else if (depth === 2 && inner !== undefined) {
          innerKeyStart = start
          innerKey = decodeKey(bytes, start + 1, at - 1)
        }
        if (found !== undefined && foundDepth === 0) isWanted = isKey(bytes, start + 1, at - 1, wanted)
        if (bytes[at] !== colon) at = skipSpace(bytes, at)
        if (bytes[at] !== colon) throw invalid()
        tokens++
        at = skipSpace(bytes, at + 1)
        byte = bytes[at]
        if (depth === 1) valueStart = at
        else if (depth === 2) innerStart = at
      }
      if (byte === openObject || byte === openArray) {
        if (isWanted) {
          foundStart = at
          foundDepth = depth
        }
        if (depth === 1) inner = byte === openObject && key === inside ? [] : undefined
        if (++depth > jsonDepthMax) throw new JsonError(`is nested deeper than ${jsonDepthMax} levels`)
        if (++tokens > tokensMax) throw tooMany()
        containers[depth] = byte
        isFirst = true
        at = skipSpace(bytes, at + 1)
        continue
      }
      if (byte === quote) {
        const start = at
        at = skipString(bytes, words, at + 1)
        if (notes !== undefined) noteString(bytes, start, at, notes)
      } else at = skipScalar(bytes, at)
      if (depth === 1) members.push({ key, keyStart, start: valueStart, end: at })
      else if (depth === 2) inner?.push({ key: innerKey, keyStart: innerKeyStart, start: innerStart, end: at })
      at = skipSpace(bytes, at)
    }
    // Behind a value, or at the end of an empty container: a comma, or the end of one or more containers.
    for (;;) {
      if (++tokens > tokensMax) throw tooMany()
      const next = bytes[at]
      if (next === comma) {
        isFirst = false
        at = skipSpace(bytes, at + 1)
        break
      }
      if (next !== (containers[depth] === openObject ? closeObject : closeArray)) throw invalid()
      depth--
      at++
      if (depth === foundDepth && depth > 0) {
        found?.push({ start: foundStart, end: at })
        foundDepth = 0
      }
      if (depth === 0) break
      if (depth === 1) {
        const member: JsonMember = { key, keyStart, start: valueStart, end: at }
        if (inner !== undefined) member.members = inner
        inner = undefined
        members.push(member)
      } else if (depth === 2) inner?.push({ key: innerKey, keyStart: innerKeyStart, start: innerStart, end: at })
      at = skipSpace(bytes, at)
    }
  }
  if (skipSpace(bytes, at) !== bytes.length) throw invalid()
  return members
}

/** @param start of the opening quote. @param end behind the closing one */
function noteString(bytes: Uint8Array, start: number, end: number, notes: Set<Note>): void {
  if (end - start <= notedBytesMax) {
    for (const word of notedOfLength[end - start]!) if (isKey(bytes, start + 1, end - 1, word)) notes.add(word)
  }
  if (endsNoted[bytes[end - 2]!] === 0) return
  for (const ending of notedEndings) {
    const from = end - 1 - ending.length
    if (from > start && isKey(bytes, from, end - 1, ending)) notes.add(`…${ending}`)
  }
}

/** Whether a key is written as exactly these characters. One with escapes is not, whatever it means. */
function isKey(bytes: Uint8Array, start: number, end: number, wanted: string): boolean {
  if (end - start !== wanted.length) return false
  for (let i = 0; i < wanted.length; i++) if (bytes[start + i] !== wanted.charCodeAt(i)) return false
  return true
}

function skipSpace(bytes: Uint8Array, index: number): number {
  let i = index
  for (;;) {
    const byte = bytes[i]!
    // Hardly ever is there any.
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) return i
    i++
  }
}

/**
 * The top bit of bytes in a little-endian word that are a quote, a backslash or a control character. Only the lowest can be
 * relied on: the subtractions borrow from the bytes above it.
 */
function specialBytes(word: number): number {
  const borrows = ((word ^ 0x22222222) - 0x01010101) | ((word ^ 0x5c5c5c5c) - 0x01010101) | (word - 0x20202020)
  return borrows & ~word & 0x80808080
}

/** What one turn of the walk through a string looks at, in bytes: the loop itself costs about as much as a look at a word. */
const turnBytes = 16

/**
 * From behind the opening quote to behind the closing one. Up to `walkBytes` without anything special are walked, a word at
 * a time; for what is longer native search is cheaper, and it does for the last bytes of all.
 */
function skipString(bytes: Uint8Array, words: DataView, index: number): number {
  const length = bytes.length
  const lastTurn = length - turnBytes + 1
  let i = index
  // Found once each and searched again only when passed: the scan of one string stays linear.
  let nextQuote = -1
  let nextBackslash = -1
  for (;;) {
    let walked = i + walkBytes < lastTurn ? i + walkBytes : lastTurn
    while (i < walked) {
      let special = specialBytes(words.getInt32(i, true))
      if (special === 0) {
        i += 4
        special = specialBytes(words.getInt32(i, true))
      }
      if (special === 0) {
        i += 4
        special = specialBytes(words.getInt32(i, true))
      }
      if (special === 0) {
        i += 4
        special = specialBytes(words.getInt32(i, true))
      }
      if (special === 0) {
        i += 4
        continue
      }
      i += (31 - Math.clz32(special & -special)) >> 3
      if (bytes[i] === quote) return i + 1
      if (bytes[i] !== backslash) throw invalid()
      i = skipEscape(bytes, i)
      walked = i + walkBytes < lastTurn ? i + walkBytes : lastTurn
    }
    if (nextQuote < i) nextQuote = bytes.indexOf(quote, i)
    if (nextQuote < 0) throw invalid()
    if (nextBackslash < i) {
      nextBackslash = bytes.indexOf(backslash, i)
      if (nextBackslash < 0) nextBackslash = length
    }
    const end = nextQuote < nextBackslash ? nextQuote : nextBackslash
    if (hasControl(bytes, i, end)) throw invalid()
    if (end === nextQuote) return end + 1
    i = skipEscape(bytes, end)
  }
}

function skipEscape(bytes: Uint8Array, index: number): number {
  const size = escapeBytes[bytes[index + 1]!]
  if (size === 2) return index + 2
  if (size !== 6) throw invalid()
  for (let i = index + 2; i < index + 6; i++) if (!isHex(bytes[i])) throw invalid()
  // `\\u0020` to `\\u007f`, but for the signs that writers of JSON for pages escape: " & ' < > and DEL.
  if (bytes[index + 2] === 0x30 && bytes[index + 3] === 0x30 && isLetterEscape(bytes[index + 4]!, bytes[index + 5]!))
    letterEscapes++
  return index + 6
}

let letterEscapes = 0

/** How many letters, digits and signs of ASCII have been written as `\\u00…` in what was scanned so far, in this process. */
export function escapedLetters(): number {
  return letterEscapes
}

function isLetterEscape(high: number, low: number): boolean {
  if (high < 0x32 || high > 0x37) return false
  const code = (high - 0x30) * 16 + Number.parseInt(String.fromCharCode(low), 16)
  return code !== 0x22 && code !== 0x26 && code !== 0x27 && code !== 0x3c && code !== 0x3e && code !== 0x7f
}

function skipScalar(bytes: Uint8Array, index: number): number {
  const byte = bytes[index]
  if (byte === 0x74) return skipWord(bytes, index, 'true')
  if (byte === 0x66) return skipWord(bytes, index, 'false')
  if (byte === 0x6e) return skipWord(bytes, index, 'null')
  let i = index
  if (byte === 0x2d) i++
  if (bytes[i] === 0x30) i++
  else i = skipDigits(bytes, i)
  if (bytes[i] === 0x2e) i = skipDigits(bytes, i + 1)
  if (bytes[i] === 0x65 || bytes[i] === 0x45) {
    i++
    if (bytes[i] === 0x2b || bytes[i] === 0x2d) i++
    i = skipDigits(bytes, i)
  }
  return i
}

function skipWord(bytes: Uint8Array, index: number, word: string): number {
  for (let i = 0; i < word.length; i++) if (bytes[index + i] !== word.charCodeAt(i)) throw invalid()
  return index + word.length
}

function skipDigits(bytes: Uint8Array, index: number): number {
  let i = index
  while (bytes[i]! >= 0x30 && bytes[i]! <= 0x39) i++
  if (i === index) throw invalid()
  return i
}

function decodeKey(bytes: Uint8Array, start: number, end: number): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8')
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text
}

function isHex(byte: number | undefined): boolean {
  if (byte === undefined) return false
  return (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66)
}

function invalid(): JsonError {
  return new JsonError('is not valid JSON')
}

function tooMany(): JsonError {
  return new JsonError(`has more than ${jsonTokensMax} JSON tokens`)
}

/** Whether a byte below 0x20 lies in the range; four bytes at a time, the only search that has no native form. */
function hasControl(bytes: Uint8Array, start: number, end: number): boolean {
  let i = start
  while (i < end && (bytes.byteOffset + i) % 4 !== 0) if (bytes[i++]! < 0x20) return true
  const words = (end - i) >> 2
  if (words > 0) {
    const view = new Int32Array(bytes.buffer, bytes.byteOffset + i, words)
    for (let w = 0; w < words; w++) {
      const word = view[w]!
      // A byte below 0x20 borrows into its top bit, and only such a byte had that bit clear (the classic "hasless").
      if (((word - 0x20202020) | 0) & ~word & 0x80808080) return true
    }
    i += words * 4
  }
  while (i < end) if (bytes[i++]! < 0x20) return true
  return false
}

/** Replaces a byte range by text. An insertion has `start === end`. */
export type Edit = { start: number; end: number; text: string }

/** The bytes with all edits made. The edits may come in any order; they must not overlap. */
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

/** The source text of a member's value. */
export function memberText(bytes: Uint8Array, member: JsonMember): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + member.start, member.end - member.start).toString('utf8')
}

/** A parsed JSON value whose chosen members kept their source text. */
export type KeptJson = {
  value: unknown
  /** The source of a value found under one of the kept keys; any other value is written anew. */
  raw: (value: unknown) => RawJson
}

/** Drawn anew by every process, so that no text of a client's can pass for one. */
const keptMark = `\u0000kept-${randomBytes(9).toString('base64url')}:`

/**
 * Parses JSON and keeps, for every member with one of the keys whose value is an object or an array, the exact
 * source text (numbers beyond 2^53, key order; ruling T16): in `value` such a member holds a token that `raw` turns
 * into its source. A scan and one native parse; a reviver with source access would cost ten times as much.
 * @param text has been found to be JSON as a whole: nobody looks into what is kept
 */
export function parseKeeping(text: string, keys: readonly string[]): KeptJson {
  const sources: string[] = []
  let rest = ''
  let at = 0
  for (const [start, end] of findValues(text, keys)) {
    rest += `${text.slice(at, start)}${JSON.stringify(keptMark + sources.length)}`
    sources.push(text.slice(start, end))
    at = end
  }
  const value: unknown = JSON.parse(at === 0 ? text : rest + text.slice(at))
  return {
    value,
    raw: (kept) => {
      if (typeof kept === 'string' && kept.startsWith(keptMark)) {
        const source = sources[Number(kept.slice(keptMark.length))]
        if (source !== undefined) return { source }
      }
      return { source: JSON.stringify(kept) ?? 'null' }
    },
  }
}

/** Ranges of the object and array values under the keys, outermost ones only, in order. */
function findValues(text: string, keys: readonly string[]): [number, number][] {
  const starts: number[] = []
  for (const key of keys) {
    const needle = `"${key}"`
    for (const at of placesOf(text, needle)) {
      // Its closing quote is not escaped, so it is real; an escaped opening quote means the tail of a longer key.
      if (text[at - 1] === '\\') continue
      let i = skipSpaceIn(text, at + needle.length)
      if (text[i] !== ':') continue
      i = skipSpaceIn(text, i + 1)
      if (text[i] === '{' || text[i] === '[') starts.push(i)
    }
  }
  starts.sort((a, b) => a - b)
  const ranges: [number, number][] = []
  let covered = 0
  for (const start of starts) {
    if (start < covered) continue
    covered = endOfContainer(text, start)
    ranges.push([start, covered])
  }
  return ranges
}

function skipSpaceIn(text: string, index: number): number {
  let i = index
  while (text[i] === ' ' || text[i] === '\n' || text[i] === '\r' || text[i] === '\t') i++
  return i
}

/** Behind the container that begins there. */
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

/** So many characters of a string are walked; native search, which costs as much as these, finds the end of longer ones. */
const walkedCharacters = 32

/** Index of the closing quote of the string that opens at `start`; the length of the text where it does not end. */
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

/** The parsed value if it is a plain object, else undefined. */
export function asObject(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined
}

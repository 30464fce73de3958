import { type JsonMember, keptMark, keptPlace } from './scan.ts'
import { placesOf } from './search.ts'

/** JSON with its source text as the peer wrote it, so that numbers beyond 2^53 and key order survive (ruling T16). */
export type RawJson = { source: string }

const quote = 0x22
const backslash = 0x5c
const openObject = 0x7b
const closeObject = 0x7d
const openArray = 0x5b
const closeArray = 0x5d

/** The members of a parsed JSON object; their values are not checked. */
export type JsonObject = Record<string, unknown>

/** A part of a larger text, in UTF-16 units, or of bytes. */
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

/** Makes the edits in a text. Here they must come in order. */
export function spliceText(text: string, edits: readonly Edit[]): string {
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
  /** The source of a value found under one of the kept keys; any other value is serialized again. */
  raw: (value: unknown) => RawJson
}

/**
 * Parses JSON and keeps the exact source text (numbers beyond 2^53, key order; ruling T16) of some members. These are the
 * members with one of the keys whose value is an object or an array. In `value` such a member holds a token that `raw` turns
 * into its source. This is one native parse; a reviver with source access would cost ten times as much.
 * @param text known to be valid JSON as a whole, because the kept parts are not parsed
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

/** Finds the object and array values under the keys. Returns the ranges of the outermost ones, in order. */
function findValues(text: string, keys: readonly string[]): Range[] {
  const starts: number[] = []
  for (const key of keys) {
    const needle = `"${key}"`
    for (const at of placesOf(text, needle)) {
      // The closing quote is not escaped, so it is real. An escaped opening quote would be the end of a longer key.
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

/** Returns the position after the value that begins at `start`; more than the text's length if it does not end. */
export function endOfValue(text: string, start: number): number {
  const code = text.charCodeAt(start)
  if (code === quote) return endOfString(text, start) + 1
  if (code === openObject || code === openArray) return endOfContainer(text, start)
  scalarEnds.lastIndex = start
  return scalarEnds.exec(text)!.index
}

/** The number of characters that are walked before a native search, which costs as much, finds the end of the string. */
const walkedCharacters = 32

/** Returns the index of the closing quote of the string that opens at `start`; the length of the text if it does not end. */
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

/** Parses a text; undefined unless it is a JSON object. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    return asObject(JSON.parse(text))
  } catch {
    return undefined
  }
}

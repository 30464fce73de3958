/*
 * Checks a JSON text to the letter of RFC 8259, sixteen bytes at a time, and notes where the members of its outermost object
 * lie. AssemblyScript, which becomes src/bytes/scan-code.ts by `npm run generate`; src/bytes/scan.ts puts the text into
 * the memory, calls it and reads what it has noted (docs/decisions/0056-a-scan-in-webassembly.md).
 */

/** What `scan` returns of a text that is refused; else it is how many records there are. */
export const invalid: i32 = -1
export const noObject: i32 = -2
export const tooDeep: i32 = -3
export const tooManyTokens: i32 = -4
export const tooManyMembers: i32 = -5

/** Deepest nesting; by depth, the bytes that end the containers around the place that the scan has come to. */
export const depthMax: i32 = 128
const containersAt: usize = 0x000

/** The key that the caller asks for, written there by it. */
export const insideAt: usize = 0x100
/**
 * Strings are compared with words that are whole, with their endings, and with the keys that the caller wants the values of: eight
 * words, eight endings and fifteen keys at most. A slot has a length and its bytes, that of a key also the kinds of values in its
 * last byte. A length of 0 ends them.
 */
export const wordsAt: usize = 0x180
export const endingsAt: usize = 0x2c0
export const wantedAt: usize = 0x400
export const slotBytes: usize = 0x20
/** Kinds of values, as bits: objects and arrays; long strings. */
export const wantsContainer: u8 = 1
export const wantsText: u8 = 2
/** 1 for the last bytes of endings, by which nearly all strings are passed over. */
const lastBytesAt: usize = 0x600
/** The beginning of a token, which `outline` writes in the place of a value: its length and its bytes. */
export const tokenAt: usize = 0x700
/** Where the text begins. Behind it there are a zero, which stops whatever runs, and the records. */
export const textAt: usize = 0x740

/** A record is five numbers: its kind, where its key begins and ends with its quotes, where its value begins and ends. */
export const member: i32 = 0
/** A member of the object that is looked into; those of one stand before its own record. */
export const innerMember: i32 = 1
/** A member whose own members stand before it. */
export const memberWithInner: i32 = 2
/** A value of a wanted key, of a kind that is wanted. */
export const found: i32 = 3
export const recordNumbers: usize = 5
const recordBytes: usize = 4 * recordNumbers

/** Bits of what is noted of strings: from 0 on the words that some are, from here on the endings that some have. */
export const endingsBit: u32 = 8
/** A letter, digit or sign is written as an escape. */
export const escapedLetterBit: u32 = 16
/** A string begins like a data URL, whose scheme may be written in any case (RFC 3986). */
export const dataUrlBit: u32 = 17
/** `data` in small letters, as the number that four bytes are read as. */
const dataScheme: u32 = 0x61746164

const space: u8 = 0x20
const quote: u8 = 0x22
const backslash: u8 = 0x5c
const openObject: u8 = 0x7b
const closeObject: u8 = 0x7d
const openArray: u8 = 0x5b
const closeArray: u8 = 0x5d
/** Every second bit, beginning with the second one. */
const oddBits: u32 = 0xaaaaaaaa

/** Bits of the lengths that words have. */
let wordLengths: u32 = 0
let records: usize = 0
let recordsEnd: usize = 0
let noted: u32 = 0
let textEnd: usize = 0
/** How many records are of values of wanted keys. */
let foundCount: usize = 0

/** Where the first record is. */
export function recordsAt(): usize {
  return records
}

/** What was noted of strings, as bits. */
export function notes(): u32 {
  return noted
}

/** Behind the last word and ending that was written. */
export function prepare(): void {
  wordLengths = lengthsOf(wordsAt)
  for (let slot = endingsAt; load<u8>(slot) !== 0; slot += slotBytes)
    store<u8>(lastBytesAt + load<u8>(slot + load<u8>(slot)), 1)
}

// What is known of the member of the outermost object that the scan is in, and of that of the object that is looked into.
let key: usize = 0
let keyEnd: usize = 0
let value: usize = 0
let isInside: bool = false
let innerKey: usize = 0
let innerKeyEnd: usize = 0
let innerValue: usize = 0

/**
 * @param length of the text, in bytes of UTF-8
 * @param hasWanted whether values of wanted keys are noted, but for those inside one that is noted
 * @param textBytesMin the bytes, with quotes, from which on a string is long
 * @param insideLength of the outermost key whose object is looked into, -1 for none; one with an escape may be that one
 * @param notesStrings whether strings are compared with words and endings
 */
export function scan(
  length: usize,
  tokensMax: i32,
  membersMax: i32,
  hasWanted: bool,
  textBytesMin: usize,
  insideLength: isize,
  notesStrings: bool,
): i32 {
  const end = textAt + length
  textEnd = end
  foundCount = 0
  records = (end + 4) & ~3
  recordsEnd = records
  noted = 0
  isInside = false
  const wantedLengths = hasWanted ? lengthsOf(wantedAt) : 0
  let depth: i32 = 1
  let tokens: i32 = 0
  let members: i32 = 0
  // Where the value of a wanted key begins, and the depth to which the scan comes back behind it; 0: it is in none.
  let foundStart: usize = 0
  let foundDepth: i32 = 0

  let at = skipSpace(textAt)
  if (load<u8>(at) !== openObject) return noObject
  store<u8>(containersAt + 1, closeObject)
  at = skipSpace(at + 1)
  let isFirst = true

  // One turn of the loop is one member or element of the innermost container, and every end that follows it.
  while (depth > 0) {
    const close = load<u8>(containersAt + depth)
    let byte = load<u8>(at)
    if (!(isFirst && byte === close)) {
      let wanted: u8 = 0
      if (close === closeObject) {
        if (byte !== quote) return invalid
        const start = at
        at = takeString(start, notesStrings)
        if (at === 0) return invalid
        if (depth === 1) {
          if (members++ === membersMax) return tooManyMembers
          key = start
          keyEnd = at
        } else if (depth === 2) {
          innerKey = start
          innerKeyEnd = at
        }
        if (foundDepth === 0 && hasBit(wantedLengths, at - start - 2)) wanted = wantsOf(start, at)
        at = skipSpace(at)
        if (load<u8>(at) !== 0x3a) return invalid
        tokens++
        at = skipSpace(at + 1)
        byte = load<u8>(at)
        if (depth === 1) value = at
        else if (depth === 2) innerValue = at
      }
      if (byte === openObject || byte === openArray) {
        if ((wanted & wantsContainer) !== 0) {
          foundStart = at
          foundDepth = depth
        }
        if (depth === 1) isInside = byte === openObject && insideLength >= 0 && mayBeInside(insideLength)
        if (++depth > depthMax) return tooDeep
        if (++tokens > tokensMax) return tooManyTokens
        store<u8>(containersAt + depth, byte === openObject ? closeObject : closeArray)
        isFirst = true
        at = skipSpace(at + 1)
        continue
      }
      const start = at
      at = byte === quote ? takeString(at, notesStrings) : skipScalar(at)
      if (at === 0) return invalid
      if ((wanted & wantsText) !== 0 && byte === quote && at - start >= textBytesMin) recordFound(start, at)
      endValue(depth, at)
      at = skipSpace(at)
    }
    // Behind a value, or at the end of an empty container: a comma, or the end of one or more containers.
    while (true) {
      if (++tokens > tokensMax) return tooManyTokens
      const next = load<u8>(at)
      if (next === 0x2c) {
        isFirst = false
        at = skipSpace(at + 1)
        break
      }
      if (next !== load<u8>(containersAt + depth)) return invalid
      depth--
      at++
      if (depth === foundDepth && depth > 0) {
        recordFound(foundStart, at)
        foundDepth = 0
      }
      if (depth === 0) break
      endValue(depth, at)
      at = skipSpace(at)
    }
  }
  if (skipSpace(at) !== end) return invalid
  return i32((recordsEnd - records) / recordBytes)
}

/** Behind a value, at the depth of the container that it stands in. */
function endValue(depth: i32, at: usize): void {
  if (depth === 1) {
    record(isInside ? memberWithInner : member, key, keyEnd, value, at)
    isInside = false
  } else if (depth === 2 && isInside) record(innerMember, innerKey, innerKeyEnd, innerValue, at)
}

/** Places are told from the beginning of the text. */
function record(kind: i32, keyStart: usize, keyStop: usize, start: usize, stop: usize): void {
  if (recordsEnd + recordBytes > usize(memory.size()) << 16) memory.grow(1)
  store<i32>(recordsEnd, kind)
  store<i32>(recordsEnd + 4, i32(keyStart - textAt))
  store<i32>(recordsEnd + 8, i32(keyStop - textAt))
  store<i32>(recordsEnd + 12, i32(start - textAt))
  store<i32>(recordsEnd + 16, i32(stop - textAt))
  recordsEnd += recordBytes
}

function recordFound(start: usize, stop: usize): void {
  record(found, 0, 0, start, stop)
  foundCount++
}

/**
 * Writes the text of the last scan behind its records, with a token in the place of each value that was found: `"`, the beginning
 * of tokens, the number of the value, `"`.
 * @returns the length of what was written
 */
export function outline(): usize {
  const tokenBytes = usize(load<u8>(tokenAt))
  outlineStart = recordsEnd
  // A number has at most ten digits.
  const stop = outlineStart + (textEnd - textAt) + foundCount * (tokenBytes + 12)
  const size = usize(memory.size()) << 16
  if (stop > size) memory.grow(i32((stop - size + 0xffff) >> 16))
  let to = outlineStart
  let from = textAt
  let number: u32 = 0
  for (let at = records; at < recordsEnd; at += recordBytes) {
    if (load<i32>(at) !== found) continue
    to = put(to, from, textAt + usize(load<i32>(at + 12)) - from)
    store<u8>(to++, quote)
    to = put(to, tokenAt + 1, tokenBytes)
    to = putNumber(to, number++)
    store<u8>(to++, quote)
    from = textAt + usize(load<i32>(at + 16))
  }
  return put(to, from, textEnd - from) - outlineStart
}

let outlineStart: usize = 0

/** Where the outline is. */
export function outlineAt(): usize {
  return outlineStart
}

/** @returns the place after the copy */
function put(to: usize, from: usize, length: usize): usize {
  memory.copy(to, from, length)
  return to + length
}

function putNumber(to: usize, number: u32): usize {
  const behind = number > 9 ? putNumber(to, number / 10) : to
  store<u8>(behind, 0x30 + u8(number % 10))
  return behind + 1
}

function mayBeInside(insideLength: isize): bool {
  if (isText(key + 1, keyEnd - 1, insideAt, usize(insideLength))) return true
  for (let i = key; i < keyEnd; i++) if (load<u8>(i) === backslash) return true
  return false
}

/** Whether these characters are written there. */
function isText(start: usize, stop: usize, word: usize, length: usize): bool {
  if (stop - start !== length) return false
  for (let i: usize = 0; i < length; i++) if (load<u8>(start + i) !== load<u8>(word + i)) return false
  return true
}

/** Bits of the lengths of what is in these slots. */
function lengthsOf(slots: usize): u32 {
  let lengths: u32 = 0
  for (let slot = slots; load<u8>(slot) !== 0; slot += slotBytes) lengths |= 1 << load<u8>(slot)
  return lengths
}

function hasBit(bits: u32, place: usize): bool {
  return place < 32 && (bits & (1 << u32(place))) !== 0
}

/** The kinds of values that are wanted of a key, as bits. @param stop behind its closing quote */
function wantsOf(start: usize, stop: usize): u8 {
  for (let slot = wantedAt; load<u8>(slot) !== 0; slot += slotBytes)
    if (isText(start + 1, stop - 1, slot + 1, load<u8>(slot))) return load<u8>(slot + slotBytes - 1)
  return 0
}

/** From the opening quote to behind the closing one; 0 where it is no string. */
function takeString(start: usize, notesStrings: bool): usize {
  const stop = skipString(start + 1)
  if (notesStrings && stop !== 0) noteString(start, stop)
  return stop
}

/** @param start of the opening quote. @param stop behind the closing one */
function noteString(start: usize, stop: usize): void {
  const length = stop - start - 2
  // If the string is shorter, the check also reads its closing quote. A quote is not among these characters, so there is no match.
  if ((load<u32>(start + 1) | 0x20202020) === dataScheme && load<u8>(start + 5) === 0x3a) noted |= 1 << dataUrlBit
  if (hasBit(wordLengths, length)) {
    for (let slot = wordsAt, bit: u32 = 1; load<u8>(slot) !== 0; slot += slotBytes, bit <<= 1)
      if (isText(start + 1, stop - 1, slot + 1, load<u8>(slot))) noted |= bit
  }
  if (load<u8>(lastBytesAt + load<u8>(stop - 2)) === 0) return
  for (let slot = endingsAt, bit: u32 = 1 << endingsBit; load<u8>(slot) !== 0; slot += slotBytes, bit <<= 1) {
    const size: usize = load<u8>(slot)
    if (length >= size && isText(stop - 1 - size, stop - 1, slot + 1, size)) noted |= bit
  }
}

function skipSpace(from: usize): usize {
  let at = from
  while (true) {
    const byte = load<u8>(at)
    // Hardly ever is there any.
    if (byte > space || (byte !== space && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) return at
    at++
  }
}

/** From behind the opening quote to behind the closing one; 0 where it is no string. */
function skipString(from: usize): usize {
  const quotes = i8x16.splat(i8(quote))
  const backslashes = i8x16.splat(i8(backslash))
  const spaces = i8x16.splat(i8(space))
  let block = from
  while (true) {
    const bytes = v128.load(block)
    const ends = v128.or(i8x16.eq(bytes, quotes), i8x16.eq(bytes, backslashes))
    const special: u32 = i8x16.bitmask(v128.or(ends, i8x16.lt_u(bytes, spaces)))
    if (special !== 0) {
      const at = block + usize(ctz(special))
      const byte = load<u8>(at)
      if (byte === quote) return at + 1
      return byte === backslash ? skipEscapes(block) : 0
    }
    block += 16
  }
}

/**
 * Skips the rest of a string.
 * @param from a place in the string, after any escape
 * @returns the place after the closing quote; 0 if the string is invalid
 */
function skipEscapes(from: usize): usize {
  const quotes = i8x16.splat(i8(quote))
  const backslashes = i8x16.splat(i8(backslash))
  const spaces = i8x16.splat(i8(space))
  const lowHalf = i8x16.splat(0x0f)
  // The characters of short escapes, each at the place that the low half of its code names. A quote and `b` share the
  // place of `r`: the quote is looked for anyway, and `b` is rare.
  const escapes = i8x16(1, 0, 0x72, 0, 0x74, 0, 0x66, 0, 0, 0, 0, 0, 0x5c, 0, 0x6e, 0x2f)
  let block = from
  // 1 if the last byte of the block before begins an escape.
  let carry: u32 = 0
  while (true) {
    const bytes = v128.load(block)
    const quoteBytes = i8x16.eq(bytes, quotes)
    const slashBytes = i8x16.eq(bytes, backslashes)
    const controlBytes = i8x16.lt_u(bytes, spaces)
    const special: u32 = i8x16.bitmask(v128.or(v128.or(quoteBytes, slashBytes), controlBytes))
    if ((special | carry) === 0) {
      block += 16
      continue
    }
    // Of several backslashes in a row, every second one is escaped. A subtraction finds them all at once, since its
    // carry runs through a row to the end (the method is simdjson's, https://arxiv.org/abs/1902.08318).
    const slashes: u32 = i8x16.bitmask(slashBytes)
    const free = slashes & ~carry
    const series = (((free << 1) | oddBits) - free) ^ oddBits
    const escaped = series ^ (slashes | carry)
    const stops: u32 = (i8x16.bitmask(quoteBytes) & ~escaped) | i8x16.bitmask(controlBytes)
    // The bits below the first stop, or all bits of the block without a stop.
    const before = ((stops & (0 - stops)) - 1) & 0xffff
    const short: u32 = i8x16.bitmask(
      v128.or(quoteBytes, i8x16.eq(i8x16.swizzle(escapes, v128.and(bytes, lowHalf)), bytes)),
    )
    const others = escaped & ~short & before
    if (others !== 0) {
      // The first of these escapes is `\b`, has six bytes, or is invalid. A text in another script can be a row of such escapes.
      let at = block + usize(ctz(others)) - 1
      if (load<u8>(at + 1) === 0x62) at += 2
      else {
        if (!isUnicodeEscape(at)) return 0
        do at += 6
        while (isUnicodeEscape(at))
      }
      block = at
      carry = 0
      continue
    }
    if (stops !== 0) {
      const at = block + usize(ctz(stops))
      return load<u8>(at) === quote ? at + 1 : 0
    }
    carry = ((series & slashes) >> 15) & 1
    block += 16
  }
}

/**
 * Whether an escape of six bytes is there. Notes what is written as `\u0020` to `\u007f`, but for the signs that writers of JSON for
 * pages escape: " & ' < > and DEL.
 */
function isUnicodeEscape(at: usize): bool {
  if (load<u16>(at) !== 0x755c) return false
  let code: i32 = 0
  for (let i = at + 2; i < at + 6; i++) {
    const digit = hexValue(load<u8>(i))
    if (digit < 0) return false
    code = (code << 4) | digit
  }
  if (code < 0x20 || code > 0x7e) return true
  if (code !== 0x22 && code !== 0x26 && code !== 0x27 && code !== 0x3c && code !== 0x3e) noted |= 1 << escapedLetterBit
  return true
}

function hexValue(byte: u8): i32 {
  if (byte >= 0x30 && byte <= 0x39) return i32(byte) - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? i32(letter) - 0x57 : -1
}

/** Behind a number, `true`, `false` or `null`; 0 where there is none. */
function skipScalar(from: usize): usize {
  const word = load<u32>(from)
  if (word === 0x65757274 || word === 0x6c6c756e) return from + 4
  if (word === 0x736c6166) return load<u8>(from + 4) === 0x65 ? from + 5 : 0
  let at = from
  if (load<u8>(at) === 0x2d) at++
  if (load<u8>(at) === 0x30) at++
  else at = skipDigits(at)
  if (at !== 0 && load<u8>(at) === 0x2e) at = skipDigits(at + 1)
  if (at !== 0 && (load<u8>(at) | 0x20) === 0x65) {
    at++
    if (load<u8>(at) === 0x2b || load<u8>(at) === 0x2d) at++
    at = skipDigits(at)
  }
  return at
}

/** 0 where there is none. */
function skipDigits(from: usize): usize {
  let at = from
  while (load<u8>(at) - 0x30 <= 9) at++
  return at === from ? 0 : at
}

/*
 * Weighs blocks of a JSON text for the estimate of its tokens, sixteen bytes at a time. AssemblyScript, which becomes
 * src/inference/estimate-code.ts by `npm run generate`; src/inference/estimate.ts says what is weighed and why, puts
 * the text into the memory and adds up (docs/decisions/0057-the-estimate-in-webassembly.md).
 */

/** The weights, 32 bits each, written there by the caller in this order. */
export const weightsAt: usize = 0x00
const perByte: usize = 0x00
const perWord: usize = 0x04
const perMarks: usize = 0x08
const perDigit: usize = 0x0c
const perEscape: usize = 0x10
const perFurtherEscape: usize = 0x14
const perUnicodeEscape: usize = 0x18
const perHighByte: usize = 0x1c

/** Where the text begins. Behind it there is a zero, and as much memory as a load may reach into. */
export const textAt: usize = 0x40
export const blockBytes: usize = 128

const quote: u8 = 0x22
const backslash: u8 = 0x5c
const letterN: u8 = 0x6e
const letterR: u8 = 0x72
const letterU: u8 = 0x75
const slash: u8 = 0x2f

let weightSum: i32 = 0
let weighed: i32 = 0
let isRun: bool = false

/** What the blocks weighed. */
export function weight(): i32 {
  return weightSum
}

/** How many bytes they had. */
export function weighedBytes(): i32 {
  return weighed
}

/** Whether the text at the place that was come to is none: a whole block of what base64 is made of, which was not weighed. */
export function isOpaque(): bool {
  return isRun
}

/** Whether the block has something that base64 has not. */
let isProse: bool = false

// What the first half of a block leaves to the second: as bits, how its last byte counts; of an escape that begins in it, how many
// bytes are left and whether they are a mark; and where an escape ended that is no mark, from the beginning of the second.
let afterLetter: u64 = 0
let afterUpper: u64 = 0
let afterMark: u64 = 0
let bytesLeft: i32 = 0
let isMarkLeft: bool = false
let escapeEnd: i32 = -1

/**
 * Weighs one block in `stride` bytes.
 * @param from where in the text the first block begins
 * @param stop where none begins any more
 * @param length of the text, which the last block ends with
 * @returns where the next block begins
 */
export function weigh(from: usize, stop: usize, length: usize, stride: usize): usize {
  weightSum = 0
  weighed = 0
  isRun = false
  let at = from
  while (at < stop) {
    const size = min(blockBytes, length - at)
    const before = weightSum
    isProse = false
    afterLetter = 0
    afterUpper = 0
    afterMark = 0
    bytesLeft = 0
    escapeEnd = -1
    weighHalf(textAt + at, i32(min(64, size)))
    if (size > 64) weighHalf(textAt + at + 64, i32(size - 64))
    if (!isProse && size === blockBytes) {
      weightSum = before
      isRun = true
      return at
    }
    // The escape that it ends in is weighed with it.
    const read = size + usize(bytesLeft)
    weighed += i32(read)
    at += max(read, stride)
  }
  return at
}

/** At most 64 bytes, each of them a bit in the masks of what it is. */
function weighHalf(start: usize, size: i32): void {
  let lower: u64 = 0
  let upper: u64 = 0
  let digit: u64 = 0
  let blank: u64 = 0
  let high: u64 = 0
  let slashes: u64 = 0
  for (let i = 0; i < size; i += 16) {
    const bytes = v128.load(start + i)
    lower |= maskOf(isAmong(bytes, 0x61, 26)) << i
    upper |= maskOf(isAmong(bytes, 0x41, 26)) << i
    digit |= maskOf(isAmong(bytes, 0x30, 10)) << i
    const tabOrLine = v128.or(isAmong(bytes, 0x09, 2), i8x16.eq(bytes, i8x16.splat(0x0d)))
    blank |= maskOf(v128.or(tabOrLine, i8x16.eq(bytes, i8x16.splat(0x20)))) << i
    high |= maskOf(bytes) << i
    slashes |= maskOf(i8x16.eq(bytes, i8x16.splat(i8(backslash)))) << i
  }
  const all: u64 = size === 64 ? ~0 : lowest(size)
  // Those that count as what they are: not the ones that an escape is made of.
  let plain = all & ~lowest(bytesLeft)
  let escapedMarks: u64 = bytesLeft > 0 && isMarkLeft ? 1 : 0
  bytesLeft = max(0, bytesLeft - size)
  slashes &= plain
  while (slashes !== 0) {
    const place = i32(ctz(slashes))
    const letter = load<u8>(start + place + 1)
    const isMark = letter === quote || letter === backslash
    const length = letter === letterU ? 6 : 2
    // Some clients escape the marks of base64, some break it into lines.
    const isOfBase64 = letter === letterU ? isEscapedMark(start + place + 2) : letter === slash || letter === letterN
    if (!isOfBase64 && letter !== letterR) isProse = true
    const taken: u64 = lowest(length) << place
    plain &= ~taken
    slashes &= ~taken
    if (isMark) {
      weightSum += load<i32>(perByte)
      escapedMarks |= taken
    } else if (letter === letterU) weightSum += load<i32>(perUnicodeEscape)
    else {
      weightSum += load<i32>(place === escapeEnd ? perFurtherEscape : perEscape)
      escapeEnd = place + 2
    }
    if (place + length > size) {
      bytesLeft = place + length - size
      isMarkLeft = isMark
    }
  }
  escapeEnd -= 64
  lower &= plain
  upper &= plain
  const letters = lower | upper
  const ownMarks = plain & ~(letters | digit | blank | high)
  const marks = ownMarks | escapedMarks
  weightSum +=
    count(plain) * load<i32>(perByte) +
    count((lower & ~((letters << 1) | afterLetter)) | (upper & ~((upper << 1) | afterUpper))) * load<i32>(perWord) +
    count(marks & ~((marks << 1) | afterMark)) * load<i32>(perMarks) +
    count(digit & plain) * load<i32>(perDigit) +
    count(high & plain) * load<i32>(perHighByte)
  afterLetter = letters >> 63
  afterUpper = upper >> 63
  afterMark = marks >> 63
  if (!isProse) isProse = ((blank | high) & plain) !== 0 || hasForeignMark(start, ownMarks)
}

/** Whether these are the four digits of a plus sign (002B), a slash (002F) or an equals sign (003D). */
function isEscapedMark(at: usize): bool {
  if (load<u16>(at) !== 0x3030) return false
  const last = load<u8>(at + 3) | 0x20
  return load<u8>(at + 2) === 0x32 ? last === 0x62 || last === 0x66 : load<u8>(at + 2) === 0x33 && last === 0x64
}

/** Whether one of these is a mark that occurs in neither alphabet of base64. */
function hasForeignMark(start: usize, marks: u64): bool {
  for (let left = marks; left !== 0; left &= left - 1) {
    const byte = load<u8>(start + usize(ctz(left)))
    if (byte !== 0x2b && byte !== slash && byte !== 0x3d && byte !== 0x2d && byte !== 0x5f) return true
  }
  return false
}

function isAmong(bytes: v128, first: u8, count: u8): v128 {
  return i8x16.lt_u(i8x16.sub(bytes, i8x16.splat(i8(first))), i8x16.splat(i8(count)))
}

function maskOf(bytes: v128): u64 {
  return u64(u16(i8x16.bitmask(bytes)))
}

/** So many bits, fewer than 64. */
function lowest(length: i32): u64 {
  return (u64(1) << length) - 1
}

function count(bits: u64): i32 {
  return i32(popcnt(bits))
}

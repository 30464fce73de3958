import { type Constant, type Memory, readAssembly } from '../bytes/assembly.ts'
import { estimateCode } from './estimate-code.ts'
import { estimateMediaTokens, findPlainMedia, imageTokensMax, mediaHeadChars } from './estimate-media.ts'
import { scripts } from './estimate-scripts.ts'
import { digitGroupWeight, pieceWeights, scriptWeights } from './estimate-weights.ts'

/*
 * Estimates the tokens of a text without any model's vocabulary. A modern tokenizer first cuts a text into pieces: a
 * word with the blank before it, three digits, a run of punctuation, an indentation. Then it replaces each piece by
 * entries of its vocabulary. The cutting follows fixed rules, which this module repeats in one pass. The second step
 * is approximated by the usual number of tokens for a piece of that kind and length, fitted by
 * scripts/fit-estimate.ts. Rule and accuracy: docs/token-estimate.md.
 */

/**
 * The denominator of all weights. Weights are whole numbers of 1/1024 token, so that sums do not depend on the order
 * of additions.
 */
export const weightUnit = 1024

/**
 * The number of weights of each kind of piece. The weight at index n is that of a piece of n characters. A longer piece
 * has the last weight, plus the weight at index 0 for each further character.
 */
export const lengthSlots = 16

/**
 * The kinds of pieces. Each kind has a row of `lengthSlots` weights, which `sumWeights` finds by this order. `Title` is
 * one capital and small letters, and `UPPERlower` is several capitals and small letters. `alone`: neither a blank nor a
 * mark comes before the word.
 */
export const pieceKinds = [
  'lower after blank',
  'lower after mark',
  'lower alone',
  'Title after blank',
  'Title after mark',
  'Title alone',
  'UPPER after blank',
  'UPPER after mark',
  'UPPER alone',
  'UPPERlower after blank',
  'UPPERlower after mark',
  'UPPERlower alone',
  'marks',
  'marks after blank',
  'marks before newline',
  'marks after blank, before newline',
  'one mark repeated',
  'blanks',
  'newlines',
] as const

const marks = 12
const repeatedMark = 16
const blanks = 17
const newlines = 18

/** Weights in units of 1/1024 token. */
type WeightTable = Int32Array

/** Classes of code units. The classes from `firstScript` on are the scripts, in the order of `scripts`. */
const mark = 0
const lower = 1
const upper = 2
const digit = 3
const blank = 4
const newline = 5
const firstScript = 6
/** The class of the script `typographic`. This script and all later ones consist of signs, not of letters. */
const typographic = firstScript + Object.keys(scripts).indexOf('typographic')
const end = 255

/** In a run of the same mark or sign, this many characters count in full. A longer run is usually a drawn line. */
const spelledTimes = lengthSlots - 1
/** After the first `spelledTimes` characters of a run, this many characters count as one. */
const longRunShare = 16

const space = 0x20

const classOf = new Uint8Array(0x10000)
classOf.fill(lower, 0x61, 0x7b)
classOf.fill(upper, 0x41, 0x5b)
classOf.fill(digit, 0x30, 0x3a)
classOf[space] = blank
classOf[0x09] = blank
classOf[0x0a] = newline
classOf[0x0d] = newline
Object.values(scripts).forEach((ranges, script) => {
  for (const [first, last] of ranges.toReversed()) {
    for (let code: number = first; code <= last; code++)
      if (classOf[code] === mark) classOf[code] = firstScript + script
  }
})

/** Estimates the tokens of a text in one pass. The same text always gives the same number (bench/estimate.bench.ts). */
export function estimateTextTokens(text: string): number {
  return text === '' ? 0 : tokensOfWeight(sumWeights(text, pieceWeights, scriptWeights))
}

/**
 * An upper bound for the estimated tokens of any text with this many UTF-16 units. The worst text alternates capitals
 * with signs of other scripts, and has 1.32 tokens a unit. The ends of a text add less than one token.
 */
export function mostTokensOf(characters: number): number {
  return 1.35 * characters + 1
}

/** Converts a weight to tokens. Even the shortest text has one token. */
export function tokensOfWeight(weight: number): number {
  return Math.max(1, Math.round(weight / weightUnit))
}

/** Returns the weight of a text. If a text is cut at `lastBorder`, the weights of its parts add up to this weight. */
export function weighText(text: string): number {
  return sumWeights(text, pieceWeights, scriptWeights)
}

/** Returns the start of the last piece that does not depend on the text before it; 0 if there is no such piece. */
export function lastBorder(text: string): number {
  for (let at = text.length - 1; at > 0; at--) {
    const before = classOf[text.charCodeAt(at - 1)]!
    const kind = classOf[text.charCodeAt(at)]!
    // A blank or mark is in the same piece as the characters after it. A capital is in the same piece as the small
    // letters after it.
    if (before === kind || before === blank || before === mark) continue
    if (before !== upper || kind !== lower) return at
  }
  return 0
}

/**
 * Sums the weights of all pieces of a text. Exported for scripts/fit-estimate.ts.
 * @param pieces rows and slots as in `pieceKinds`
 * @param perScript two weights for each of `scripts`: one for a run, one for every character in the run
 */
export function sumWeights(text: string, pieces: WeightTable, perScript: WeightTable): number {
  const length = text.length
  let sum = 0
  let i = 0
  // The character before the next piece: 0 for a blank, 1 for a mark, 2 for neither.
  let lead = 2
  // The class of the character at `i`, or `end` after the last character.
  let kind = length > 0 ? classOf[text.charCodeAt(0)]! : end
  while (i < length) {
    const start = i
    if (kind === lower || kind === upper) {
      while (kind === upper) kind = ++i < length ? classOf[text.charCodeAt(i)]! : end
      const uppers = i - start
      while (kind === lower) kind = ++i < length ? classOf[text.charCodeAt(i)]! : end
      const shape = uppers === 0 ? 0 : i - start === uppers ? 2 : uppers === 1 ? 1 : 3
      sum += pieceWeight(pieces, lead + 3 * shape, i - start)
      lead = 2
    } else if (kind === blank) {
      while (kind === blank) kind = ++i < length ? classOf[text.charCodeAt(i)]! : end
      if (kind === newline || kind === end) {
        while (kind === newline) kind = ++i < length ? classOf[text.charCodeAt(i)]! : end
        sum += pieceWeight(pieces, newlines, i - start)
        lead = 2
      } else if (kind === digit) {
        sum += pieceWeight(pieces, blanks, i - start)
        lead = 2
      } else {
        // The last blank belongs to the word or the punctuation after it. A tab belongs only to a word. A word after a
        // tab has the weight of a word after punctuation.
        if (i - start > 1) sum += pieceWeight(pieces, blanks, i - start - 1)
        const isTab = text.charCodeAt(i - 1) !== space
        if (isTab && kind === mark) sum += pieceWeight(pieces, blanks, 1)
        lead = !isTab ? 0 : kind === mark ? 2 : 1
      }
    } else if (kind === mark) {
      const first = text.charCodeAt(i)
      let isRepeated = true
      kind = ++i < length ? classOf[text.charCodeAt(i)]! : end
      while (kind === mark) {
        if (text.charCodeAt(i) !== first) isRepeated = false
        kind = ++i < length ? classOf[text.charCodeAt(i)]! : end
      }
      const size = spelledOf(text, start, i)
      if (size === 1 && lead !== 0 && (kind === lower || kind === upper)) {
        lead = 1
        continue
      }
      let row = marks
      if (lead === 0) row += 1
      if (kind === newline) {
        while (kind === newline) kind = ++i < length ? classOf[text.charCodeAt(i)]! : end
        row += 2
      }
      if (size > 2 && isRepeated) row = repeatedMark
      sum += pieceWeight(pieces, row, size)
      lead = 2
    } else if (kind === newline) {
      while (kind === newline) kind = ++i < length ? classOf[text.charCodeAt(i)]! : end
      sum += pieceWeight(pieces, newlines, i - start)
      lead = 2
    } else if (kind === digit) {
      while (kind === digit) kind = ++i < length ? classOf[text.charCodeAt(i)]! : end
      sum += Math.ceil((i - start) / 3) * digitGroupWeight
      lead = 2
    } else {
      const script = kind
      while (kind === script) kind = ++i < length ? classOf[text.charCodeAt(i)]! : end
      const row = (script - firstScript) * 2
      sum += perScript[row]! + perScript[row + 1]! * (script < typographic ? i - start : spelledOf(text, start, i))
      lead = 2
    }
  }
  return sum
}

/** The number of characters that count in a run of marks or signs. Long repetitions of one sign count less. */
function spelledOf(text: string, start: number, end: number): number {
  const size = end - start
  let more = 0
  if (size > spelledTimes)
    for (let i = start + 1, times = 1; i < end; i++) {
      times = text.charCodeAt(i) === text.charCodeAt(i - 1) ? times + 1 : 1
      if (times > spelledTimes) more++
    }
  return size - more + Math.ceil(more / longRunShare)
}

function pieceWeight(pieces: WeightTable, kind: number, length: number): number {
  const row = kind * lengthSlots
  if (length < lengthSlots) return pieces[row + length]!
  return pieces[row + lengthSlots - 1]! + pieces[row]! * (length - lengthSlots + 1)
}

/*
 * Estimates the tokens of a JSON body before it is parsed (rulings C2, C3). The estimate decides how much credit is set
 * aside for a request. If the model reports no usage, the estimate is billed. It is coarser and much cheaper than the
 * estimate of a text. Words, marks, digits and escapes are counted in samples of the body. Base64 is skipped. JSON keys
 * and brackets count too, because the model gets other text in their place.
 */

/** Bodies up to this size are read whole. Of larger bodies, one block in `sampleEvery` is read. */
const wholeBytes = 8_192
const sampleEvery = 8

/** Bytes per token of a long run without blanks that is no image and no PDF: sealed reasoning, a hash, or padding. */
const opaqueBytesPerToken = 4

/**
 * Weights in 1/1024 token: a rounded least-squares fit to the samples of the text estimate. The tests of this module
 * print the accuracy. The weights are in the order of assembly/estimate.ts.
 */
const byteWeights = {
  /** The weight of each byte outside of an escape. An escaped quote or backslash has the same weight. */
  perByte: 59,
  /**
   * Added once for each run of small letters or of capitals. Small letters directly after capitals belong to the same
   * run.
   */
  perWord: 650,
  /** Added once for each run of marks. Marks are quotes, backslashes and other punctuation. */
  perMarks: 780,
  perDigit: 650,
  /**
   * Added for each escape that is no quote, backslash or Unicode escape. In a run of newlines and tabs, only the first
   * weighs this much. The others weigh `perFurtherEscape`.
   */
  perEscape: 900,
  perFurtherEscape: 250,
  perUnicodeEscape: 740,
  perHighByte: 100,
}

/**
 * Marks the ASCII characters that cannot be inside a long run such as base64. The search for the beginning of a run
 * stops at such a character.
 */
const isBorder = Array.from({ length: 128 }, (_, code) => !/[\w \t\r\n\\+/=-]/.test(String.fromCharCode(code)))

const quote = 0x22

/** The exports of assembly/estimate.ts. */
type EstimateExports = { [Name in 'weightsAt' | 'textAt' | 'blockBytes']: Constant } & {
  memory: Memory
  weigh: (from: number, stop: number, length: number, stride: number) => number
  weight: () => number
  weighedBytes: () => number
  isOpaque: () => boolean
}

const start = readAssembly<EstimateExports>(estimateCode)

/** The most bytes of a body that are in the WebAssembly memory at once. */
const windowBytes = 65_536

/** The WebAssembly estimator, with memory for one window (a part of a body). It handles one body at a time. */
class Scales {
  readonly #exports = start()
  readonly #memory = Buffer.from(this.#exports.memory.buffer)
  readonly #textAt = this.#exports.textAt.value
  readonly #blockBytes = this.#exports.blockBytes.value

  constructor() {
    new Int32Array(this.#memory.buffer, this.#exports.weightsAt.value).set(Object.values(byteWeights))
  }

  estimate(body: Buffer): number {
    const stride = body.length <= wholeBytes ? this.#blockBytes : this.#blockBytes * sampleEvery
    let weight = 0
    let weighedBytes = 0
    let opaqueBytes = 0
    let opaqueTokens = 0
    let at = 0
    while (at < body.length) {
      const begin = at
      const { length, stop } = this.#put(body, begin)
      while (at < begin + stop) {
        at = begin + this.#exports.weigh(at - begin, stop, length, stride)
        weight += this.#exports.weight()
        weighedBytes += this.#exports.weighedBytes()
        if (!this.#exports.isOpaque()) continue
        const run = findRun(body, at, Math.max(0, at - stride))
        opaqueTokens += run.tokens
        opaqueBytes += run.end - run.start
        at = run.end
      }
    }
    const textBytes = Math.max(0, body.length - opaqueBytes)
    const textTokens = weighedBytes === 0 ? 0 : (weight / 1_024) * (textBytes / weighedBytes)
    return body.length === 0 ? 0 : Math.max(1, Math.round(textTokens + opaqueTokens))
  }

  /**
   * Copies the next window of the body into memory.
   * @returns `length`: the number of copied bytes. `stop`: a place in the window. A block of bytes that begins before
   *   this place also ends in the window
   */
  #put(body: Buffer, begin: number): { length: number; stop: number } {
    const piece = body.subarray(begin, begin + windowBytes)
    this.#memory.set(piece, this.#textAt)
    this.#memory[this.#textAt + piece.length] = 0
    const isLast = begin + piece.length === body.length
    return { length: piece.length, stop: isLast ? piece.length : piece.length - this.#blockBytes }
  }
}

let scales: Scales | undefined

/**
 * Estimates the tokens of a JSON text in UTF-8, in at most one pass. The result is deterministic.
 * @param mayHoldDataUrl false if the caller knows that no string is a data URL. Then no data URL is searched for
 */
export function estimateBytesTokens(bytes: Uint8Array, mayHoldDataUrl = true): number {
  scales ??= new Scales()
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  let [at, tokens] = [0, 0]
  // Pictures in a small body are estimated as text. This is quicker, and gives no more tokens.
  for (const media of mayHoldDataUrl && body.length > wholeBytes ? findPlainMedia(body) : []) {
    tokens += scales.estimate(body.subarray(at, media.start)) + media.tokens
    at = media.end
  }
  return tokens + scales.estimate(at === 0 ? body : body.subarray(at))
}

/**
 * Matches the text before an image's data: the head of a data URL, or the member `media_type` and then the key `data`.
 */
const imageLead =
  /(?:data:image\\?\/[^,"]{1,200};\s*base64\s*(?:;[^,"]{0,99})?,|"media_type"\s*:\s*"image\\?\/[^"]{1,99}"\s*,(?:[^{}]*,)?\s*"data"\s*:\s*")$/i
/** The text directly before and after the data of an image, if the member `media_type` follows the data. */
const dataLead = /"data"\s*:\s*"$/
const imageTail = /^"\s*,(?:[^{}]*,)?\s*"media_type"\s*:\s*"image\\?\//i
const besideBytes = 256

/**
 * Whether the text beside the data declares an image. The media type can come before or after the data. HEIC, SVG and
 * some other formats have no first bytes that identify them.
 */
function isCalledImage(body: Buffer, start: number, end: number): boolean {
  const lead = body.toString('latin1', Math.max(0, start - besideBytes), start)
  return (
    imageLead.test(lead) || (dataLead.test(lead) && imageTail.test(body.toString('latin1', end, end + besideBytes)))
  )
}

/** Finds the text around `at`, from the last border (or `from`) to the next quote, and estimates its tokens. */
function findRun(body: Buffer, at: number, from: number): { start: number; end: number; tokens: number } {
  let start = at
  while (start > from && !isBorder[body[start - 1]!]) start--
  const quoteAt = body.indexOf(quote, at)
  const end = quoteAt < 0 ? body.length : quoteAt
  const head = body
    .toString('latin1', start, Math.min(end, start + mediaHeadChars))
    .replace(/\\(?:[nr]|(?=\/))/g, '')
    .replace(/\\u00(2b|2f|3d)/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
  return {
    start,
    end,
    tokens:
      estimateMediaTokens(head, end - start) ??
      (isCalledImage(body, start, end) ? imageTokensMax : Math.ceil((end - start) / opaqueBytesPerToken)),
  }
}

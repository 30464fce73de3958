import { type Constant, type Memory, readAssembly } from '../bytes/assembly.ts'
import { estimateCode } from './estimate-code.ts'
import { estimateMediaTokens, imageTokensMax, mediaHeadChars } from './estimate-media.ts'

/*
 * Estimates the tokens of a JSON body before parsing (rulings C2, C3). The estimate decides how much credit is set
 * aside for a request, and bills it if the model reports nothing. It is coarser and much cheaper than that of a text.
 * Words, marks, digits and escapes are counted in samples of the body. Base64 is skipped. Keys and brackets count as
 * text, because models see other text in their place.
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
  /** For every byte outside of an escape, and for an escaped quote or backslash. */
  perByte: 59,
  /** For each start of a run of small letters or of capitals. Small letters after a capital continue its run. */
  perWord: 650,
  /** For the start of each run of marks. Marks are quotes, backslashes and other punctuation. */
  perMarks: 780,
  perDigit: 650,
  /** For every other escape. Newlines and tabs form one indentation, so the second of two neighbours weighs less. */
  perEscape: 900,
  perFurtherEscape: 250,
  perUnicodeEscape: 740,
  perHighByte: 100,
}

/** ASCII characters outside of words, blanks, escapes and base64. A run can begin after such a character. */
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

/** Bytes of a body that are in the WebAssembly memory at a time. */
const windowBytes = 65_536

/** The WebAssembly estimator with memory for one window of a body. It handles one body after the other. */
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
   * @returns the bytes copied, and the position from which on no block may begin, because a block must also end in the
   * window
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

/** Estimates the tokens of a piece of JSON text in UTF-8. Deterministic; takes one pass at most. */
export function estimateBytesTokens(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
  scales ??= new Scales()
  return scales.estimate(Buffer.from(bytes.buffer, bytes.byteOffset + start, Math.max(0, end - start)))
}

/** The text before the data of an image: a data URL's head, or a source with its media type before the data. */
const imageLead =
  /(?:data:image\\?\/[^,"]{1,200};base64,|"media_type"\s*:\s*"image\\?\/[^"]{1,99}"\s*,(?:[^{}]*,)?\s*"data"\s*:\s*")$/i
/** The text before and after the data of a source whose media type comes later. */
const dataLead = /"data"\s*:\s*"$/
const imageTail = /^"\s*,(?:[^{}]*,)?\s*"media_type"\s*:\s*"image\\?\//
const besideBytes = 256

/**
 * Whether the text beside the data declares an image. HEIC, SVG and some other formats have no first bytes that
 * identify them. The members of a source may be in any order.
 */
function isCalledImage(body: Buffer, start: number, end: number): boolean {
  const lead = body.toString('latin1', Math.max(0, start - besideBytes), start)
  return (
    imageLead.test(lead) || (dataLead.test(lead) && imageTail.test(body.toString('latin1', end, end + besideBytes)))
  )
}

/** The string around `at`, and its tokens. The search for its beginning stops at `from`. */
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

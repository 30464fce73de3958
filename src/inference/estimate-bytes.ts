import { type Constant, type Memory, readAssembly } from '../bytes/assembly.ts'
import { estimateCode } from './estimate-code.ts'
import { estimateMediaTokens, imageTokensMax, mediaHeadChars } from './estimate-media.ts'

/*
 * The tokens of a JSON body before it is parsed: for holds, and for bills without the model's word (rulings C2, C3).
 * The count is coarser than the estimate of a text and far cheaper. Words, marks, digits and escapes are counted in
 * samples of the body, and base64 is skipped. Keys and brackets count like text: models are shown something in their
 * place.
 */

/** Bodies up to here are read whole; of larger ones one block in `sampleEvery`. */
const wholeBytes = 8_192
const sampleEvery = 8

/** A long run without blanks that is no image and no PDF: sealed reasoning, a hash, somebody's padding. */
const opaqueBytesPerToken = 4

/**
 * In 1/1024 token: a least-squares fit to the samples of the text estimate, rounded. Its tests print how well it does. In the
 * order in which assembly/estimate.ts has them.
 */
const byteWeights = {
  /** Of every byte that is not part of an escape, and of an escaped quote or backslash. */
  perByte: 59,
  /** For each beginning of small letters or of capitals; small letters continue a capital. */
  perWord: 650,
  /** The weight of the start of each run of marks. Marks are quotes, backslashes and the like. */
  perMarks: 780,
  perDigit: 650,
  /** For each other escape. Newlines and tabs make one indentation, so those right after one add less. */
  perEscape: 900,
  perFurtherEscape: 250,
  perUnicodeEscape: 740,
  perHighByte: 100,
}

/** ASCII outside of words, blanks, escapes and base64: a run begins after it. */
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

/** So much of a body is in the memory at a time. */
const windowBytes = 65_536

/** The code that weighs, with a memory for a piece of a body. It serves one body after the other. */
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

  /** @returns how much of the body is there now, and where in that no block begins: what it ends in is to be there too */
  #put(body: Buffer, begin: number): { length: number; stop: number } {
    const piece = body.subarray(begin, begin + windowBytes)
    this.#memory.set(piece, this.#textAt)
    this.#memory[this.#textAt + piece.length] = 0
    const isLast = begin + piece.length === body.length
    return { length: piece.length, stop: isLast ? piece.length : piece.length - this.#blockBytes }
  }
}

let scales: Scales | undefined

/** The tokens of a piece of JSON text in UTF-8, estimated; deterministic, and never longer than one pass. */
export function estimateBytesTokens(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
  scales ??= new Scales()
  return scales.estimate(Buffer.from(bytes.buffer, bytes.byteOffset + start, Math.max(0, end - start)))
}

/** The text before the data of a picture: of a data URL, or of a source that names a media type. */
const imageLead = /(?:data:image\\?\/[\w.+-]+;base64,|"media_type"\s*:\s*"image\\?\/[\w.+-]+"\s*,\s*"data"\s*:\s*")$/i
const leadBytes = 96

/**
 * Whether data are called a picture, whatever its format: HEIC, SVG and others have no first bytes that identify them.
 */
function isCalledImage(body: Buffer, start: number): boolean {
  return imageLead.test(body.toString('latin1', Math.max(0, start - leadBytes), start))
}

/** The string around `at`, looked for no further back than `from`, and what it counts. */
function findRun(body: Buffer, at: number, from: number): { start: number; end: number; tokens: number } {
  let start = at
  while (start > from && !isBorder[body[start - 1]!]) start--
  const quoteAt = body.indexOf(quote, at)
  const end = quoteAt < 0 ? body.length : quoteAt
  const head = body.toString('latin1', start, Math.min(end, start + mediaHeadChars)).replace(/\\(?:[nr]|(?=\/))/g, '')
  return {
    start,
    end,
    tokens:
      estimateMediaTokens(head, end - start) ??
      (isCalledImage(body, start) ? imageTokensMax : Math.ceil((end - start) / opaqueBytesPerToken)),
  }
}

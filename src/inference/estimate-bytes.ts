import { estimateMediaTokens, mediaHeadChars } from './estimate-media.ts'

/*
 * The tokens of a JSON body, before anybody has parsed it: for holds, and for bills without the model's word (rulings
 * C2, C3). Coarser than the estimate of a text and far cheaper: words, marks, digits and escapes are counted in samples
 * of the body, and base64 is leapt over. Keys and brackets count like text: models are shown something in their place.
 */

/** Bodies up to here are read whole; of larger ones one block in `sampleEvery`. */
const wholeBytes = 8_192
const blockBytes = 128
const sampleEvery = 8

/** A long run without blanks that is no image and no PDF: sealed reasoning, a hash, somebody's padding. */
const opaqueBytesPerToken = 4

/** In 1/1024 token: a least-squares fit to the samples of the text estimate, rounded. Its tests print how well it does. */
const byteWeights = {
  perByte: 59,
  perWord: 650,
  perMarks: 780,
  perDigit: 650,
  perEscape: 900,
  perFurtherEscape: 250,
  perUnicodeEscape: 740,
  perHighByte: 100,
}

const mark = 0
const lower = 1
const upper = 2
const digit = 3
const blank = 4
const high = 5
const backslash = 6
/** The marks that occur in base64, of either alphabet. */
const base64Mark = 7

const classOf = new Uint8Array(256)
classOf.fill(lower, 0x61, 0x7b)
classOf.fill(upper, 0x41, 0x5b)
classOf.fill(digit, 0x30, 0x3a)
classOf.fill(high, 0x80)
for (const character of ' \t\r\n') classOf[character.charCodeAt(0)] = blank
for (const character of '+/=-_') classOf[character.charCodeAt(0)] = base64Mark
classOf[0x5c] = backslash

/** What a byte adds, by its class and the one before it: `before * 8 + class`. */
const steps = new Int32Array(64)
for (let before = 0; before < 8; before++) {
  const isLetter = before === lower || before === upper
  const isMark = before === mark || before === base64Mark
  for (let now = 0; now < 8; now++) {
    let step = byteWeights.perByte
    if (now === lower && !isLetter) step += byteWeights.perWord
    if (now === upper && before !== upper) step += byteWeights.perWord
    if ((now === mark || now === base64Mark) && !isMark) step += byteWeights.perMarks
    if (now === digit) step += byteWeights.perDigit
    if (now === high) step += byteWeights.perHighByte
    steps[before * 8 + now] = step
  }
}

/** Classes that never occur in base64. */
const proseClasses = (1 << mark) | (1 << blank) | (1 << high) | (1 << backslash)

/** The second bytes of escapes that base64 may have: some clients write `\\/`, some break it into lines. */
const base64Escapes = new Set([0x2f, 0x6e, 0x72])

const quote = 0x22

/** The tokens of a piece of JSON text in UTF-8, estimated; deterministic, and never longer than one pass. */
export function estimateBytesTokens(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset + start, Math.max(0, end - start))
  const stride = body.length <= wholeBytes ? blockBytes : blockBytes * sampleEvery
  let weight = 0
  let weighedBytes = 0
  let opaqueBytes = 0
  let opaqueTokens = 0
  let at = 0
  while (at < body.length) {
    const stop = Math.min(body.length, at + blockBytes)
    let seen = 0
    let before = blank
    let blockWeight = 0
    let i = at
    while (i < stop) {
      const now = classOf[body[i]!]!
      if (now === backslash) {
        const letter = body[i + 1]!
        seen |= base64Escapes.has(letter) ? 1 << base64Mark : 1 << backslash
        if (letter === 0x75) {
          blockWeight += byteWeights.perUnicodeEscape
          before = high
          i += 6
          continue
        }
        // An escaped quote or backslash is a mark; newlines and tabs make one indentation.
        const isMark = letter === quote || letter === 0x5c
        if (isMark) blockWeight += steps[before * 8 + mark]!
        else blockWeight += before === backslash ? byteWeights.perFurtherEscape : byteWeights.perEscape
        before = isMark ? mark : backslash
        i += 2
        continue
      }
      seen |= 1 << now
      blockWeight += steps[before * 8 + now]!
      before = now
      i++
    }
    if ((seen & proseClasses) === 0 && stop - at === blockBytes) {
      const run = findRun(body, at, Math.max(0, at - stride))
      opaqueTokens += run.tokens
      opaqueBytes += run.end - run.start
      at = run.end
      continue
    }
    weight += blockWeight
    weighedBytes += i - at
    at = Math.max(i, at + stride)
  }
  const textBytes = Math.max(0, body.length - opaqueBytes)
  const textTokens = weighedBytes === 0 ? 0 : (weight / 1_024) * (textBytes / weighedBytes)
  return body.length === 0 ? 0 : Math.max(1, Math.round(textTokens + opaqueTokens))
}

/** The string around `at`, looked for no further back than `from`, and what it counts. */
function findRun(body: Buffer, at: number, from: number): { start: number; end: number; tokens: number } {
  let start = at
  while (start > from && classOf[body[start - 1]!] !== mark) start--
  const quoteAt = body.indexOf(quote, at)
  const end = quoteAt < 0 ? body.length : quoteAt
  const head = body.toString('latin1', start, Math.min(end, start + mediaHeadChars)).replace(/\\(?:[nr]|(?=\/))/g, '')
  return {
    start,
    end,
    tokens: estimateMediaTokens(head, end - start) ?? Math.ceil((end - start) / opaqueBytesPerToken),
  }
}

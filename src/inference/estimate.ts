export { estimateBytesTokens } from './estimate-bytes.ts'

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
 * The number of slots per kind of piece. Slot n is the weight of a piece of n characters. Slot 0 is the weight of
 * each character beyond the last slot.
 */
export const lengthSlots = 16

/** The kinds of pieces, each a row of `lengthSlots` weights. `lead` and `shape` in `sumWeights` give a word's row. */
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

/** Weights as whole numbers of 1/1024 token. */
type WeightTable = Int32Array

/** Classes of code units. Those from `firstScript` on are the scripts, in the order of their table. */
const mark = 0
const lower = 1
const upper = 2
const digit = 3
const blank = 4
const newline = 5
const firstScript = 6
/** The first script of drawing signs. All scripts after this one are signs too. */
const typographic = firstScript + Object.keys(scripts).indexOf('typographic')
const end = 255

/** In a run of equal marks or signs, this many count one by one. A longer run is usually a drawn line. */
const spelledTimes = lengthSlots - 1
/** Beyond `spelledTimes`, this many characters of a run count as one. */
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
 * An upper bound for the estimated tokens of any text with this many UTF-16 units. The worst case is 1.32 tokens a
 * unit: capitals alternating with signs of other scripts. The ends of a text add less than one token.
 */
export function mostTokensOf(characters: number): number {
  return 1.35 * characters + 1
}

/** Converts a weight to tokens. Even the shortest text has one token. */
export function tokensOfWeight(weight: number): number {
  return Math.max(1, Math.round(weight / weightUnit))
}

/** The weight of a text. Parts that are cut at `lastBorder` add up to the weight of the whole text. */
export function weighText(text: string): number {
  return sumWeights(text, pieceWeights, scriptWeights)
}

/** Returns the start of the last piece that does not depend on the text before it; 0 if there is no such piece. */
export function lastBorder(text: string): number {
  for (let at = text.length - 1; at > 0; at--) {
    const before = classOf[text.charCodeAt(at - 1)]!
    const kind = classOf[text.charCodeAt(at)]!
    // Blanks and marks join the text after them, and capitals join the small letters after them.
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
        // The last blank belongs to the word or marks after it. A tab belongs only to a word, which then has the
        // weight of a word after a mark.
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

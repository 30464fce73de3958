import { writeFileSync } from 'node:fs'
import { lengthSlots, pieceKinds, sumWeights, weightUnit } from '../src/inference/estimate.ts'
import { scripts } from '../src/inference/estimate-scripts.ts'
import { otherLanguages, readSamples, type Sample } from '../test/inference/samples.ts'

/*
 * Fits the weights of the token estimate on one half of the samples, and prints the accuracy on both halves. `--write`
 * writes src/inference/estimate-weights.ts. The fit minimizes the squares of the relative error. A kind with more
 * samples counts more, but less than in proportion. The weights of neighbouring lengths are regularized towards each
 * other and towards a first guess, so that a rare length cannot get an extreme weight.
 *
 *     node bin/node.mjs scripts/fit-estimate.ts [--write]
 */

const pieceCount = pieceKinds.length * lengthSlots
const scriptCount = Object.keys(scripts).length * 2
const size = pieceCount + scriptCount
const digitGroupWeight = weightUnit

/** The strength of the regularization towards the guess, and towards the weight of the previous length. */
const holdStrength = 0.01
const smoothStrength = 0.03

const samples = readSamples()
const weights = fit(samples.filter((sample) => sample.half === 'fit'))
const rounded = weights.map((weight) => Math.round(weight * weightUnit))
report(rounded)
if (process.argv.includes('--write')) write(rounded)

function fit(chosen: Sample[]): number[] {
  const guess = guessWeights()
  const gram = Array.from({ length: size }, () => new Float64Array(size))
  const aim = new Float64Array(size)
  const perKind = Map.groupBy(chosen, (sample) => sample.kind)
  for (const sample of chosen) {
    const share = perKind.get(sample.kind)!.length ** -0.5 / 20
    const { row, fixed } = countPieces(sample.text)
    const target = 1 - fixed / sample.tokens
    const used = row.flatMap((count, index) => (count > 0 ? [[index, count / sample.tokens] as const] : []))
    for (const [a, x] of used) {
      aim[a]! += share * x * target
      for (const [b, y] of used) gram[a]![b]! += share * x * y
    }
  }
  for (let i = 0; i < size; i++) {
    gram[i]![i]! += holdStrength ** 2
    aim[i]! += holdStrength ** 2 * guess[i]!
    if (i >= pieceCount || i % lengthSlots < 2) continue
    const step = guess[i]! - guess[i - 1]!
    const strength = smoothStrength ** 2
    gram[i]![i]! += strength
    gram[i - 1]![i - 1]! += strength
    gram[i]![i - 1]! -= strength
    gram[i - 1]![i]! -= strength
    aim[i]! += strength * step
    aim[i - 1]! -= strength * step
  }
  // Coordinate descent is used because weights may not be negative.
  const weights = guess.slice()
  for (let round = 0; round < 3_000; round++) {
    for (let i = 0; i < size; i++) {
      let slope = aim[i]!
      for (let j = 0; j < size; j++) slope -= gram[i]![j]! * weights[j]!
      weights[i] = Math.max(0, weights[i]! + slope / gram[i]![i]!)
    }
  }
  return weights
}

/** Returns the first guesses: one token for short pieces, and more for long words and long runs of marks. */
function guessWeights(): number[] {
  const guess = new Array<number>(size).fill(0.5)
  pieceKinds.forEach((kind, row) => {
    const isRun = kind === 'blanks' || kind === 'newlines' || kind === 'one mark repeated'
    const perCharacter = isRun ? 0.01 : kind.includes('mark') && !kind.includes('after mark') ? 0.35 : 0.12
    const free = isRun ? 1 : kind.includes('UPPER') ? 2 : kind.includes('blank') ? 7 : 5
    guess[row * lengthSlots] = perCharacter
    for (let slot = 1; slot < lengthSlots; slot++) {
      guess[row * lengthSlots + slot] = 1 + perCharacter * Math.max(0, slot - free)
    }
  })
  return guess
}

/** Counts how often each weight applies to a text, and its tokens without a weight: each group of digits is one. */
function countPieces(text: string): { row: number[]; fixed: number } {
  const one = new Int32Array(pieceCount)
  const oneScript = new Int32Array(scriptCount)
  const fixed = sumWeights(text, one, oneScript) / weightUnit
  const row: number[] = []
  for (let i = 0; i < size; i++) {
    const [weights, at] = i < pieceCount ? [one, i] : [oneScript, i - pieceCount]
    weights[at] = 1
    row.push(Math.round(sumWeights(text, one, oneScript) - fixed * weightUnit))
    weights[at] = 0
  }
  return { row, fixed }
}

function report(weights: number[]): void {
  const pieces = Int32Array.from(weights.slice(0, pieceCount))
  const perScript = Int32Array.from(weights.slice(pieceCount))
  for (const half of ['fit', 'report'] as const) {
    const errors = samples
      .filter((sample) => sample.half === half)
      .map((sample) => {
        const estimate = sumWeights(sample.text, pieces, perScript) / weightUnit
        return { ...sample, error: estimate / sample.tokens - 1 }
      })
    console.log(`\n${half} half`)
    for (const [kind, group] of [
      ...Map.groupBy(errors, (each) => each.kind),
      ['promised', errors.filter((each) => each.kind !== otherLanguages)] as const,
    ]) {
      const within = group.filter((each) => Math.abs(each.error) <= 0.15).length / group.length
      const mean = group.reduce((sum, each) => sum + Math.abs(each.error), 0) / group.length
      const worst = group.reduce((a, b) => (Math.abs(b.error) > Math.abs(a.error) ? b : a))
      console.log(
        kind.padEnd(12),
        String(group.length).padStart(4),
        `within 15 %: ${percent(within)}  mean ${percent(mean)}  worst ${percent(worst.error)} ${worst.source}`,
      )
    }
  }
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`.padStart(8)
}

function write(weights: number[]): void {
  const rows = pieceKinds.map((kind, index) => {
    const row = weights.slice(index * lengthSlots, (index + 1) * lengthSlots)
    return `  // Pieces of the kind: ${kind}\n  ${row.join(', ')},`
  })
  const scriptRows = Object.keys(scripts).map((name, index) => {
    return `  ${weights[pieceCount + index * 2]}, ${weights[pieceCount + index * 2 + 1]}, // ${name}`
  })
  writeFileSync(
    new URL('../src/inference/estimate-weights.ts', import.meta.url),
    `// Written by scripts/fit-estimate.ts; in 1/1024 token.

/** A group of up to three digits is one token. */
export const digitGroupWeight = ${digitGroupWeight}

/**
 * A row of weights for each of \`pieceKinds\` in estimate.ts, whose comment explains the names. The first weight is for
 * each character beyond the last slot. The others are for pieces of 1, 2, … characters.
 */
// biome-ignore format: one kind is one line.
export const pieceWeights = new Int32Array([
${rows.join('\n')}
])

/** Two weights for each script: one for each run of its characters, and one for each character in the run. */
// biome-ignore format: one script is one line.
export const scriptWeights = new Int32Array([
${scriptRows.join('\n')}
])
`,
  )
}

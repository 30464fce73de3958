import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { outcomeColours, outcomesMax } from '../../console/src/pure/colours.ts'
import { outcomes } from '../../src/accounts/ledger.ts'

type Rgb = readonly [number, number, number]

const style = readFileSync(join(import.meta.dirname, '../../console/style/colours.css'), 'utf8')
/** In the order in which series get them: neighbours touch in stacks, and all others together are the highest part. */
const names = ['s1', 's2', 's3', 's4', 's5', 's6', 'other'] as const
const themes = ['light', 'dark'] as const

function colourOf(name: string, theme: (typeof themes)[number]): string {
  const [, light, dark] = new RegExp(`--${name}: light-dark\\((#[0-9a-f]{6}), (#[0-9a-f]{6})\\)`).exec(style)!
  return theme === 'light' ? light! : dark!
}

/** Light of each primary colour, from 0 to 1 (sRGB, IEC 61966-2-1). */
function lightOf(hex: string): Rgb {
  const parts = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
  return parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)) as unknown as Rgb
}

/** The contrast of WCAG 2.2, "contrast ratio". */
function contrast(a: string, b: string): number {
  const [x, y] = [a, b].map((hex) => {
    const [red, green, blue] = lightOf(hex)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05
  }) as [number, number]
  return Math.max(x, y) / Math.min(x, y)
}

/**
 * Light as people with a missing kind of cones see it: the matrices of Machado, Oliveira and Fernandes, "A
 * Physiologically-based Model for Simulation of Color Vision Deficiency" (2009), at full severity.
 */
const eyes: Readonly<Record<string, readonly Rgb[]>> = {
  usual: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
}

/** The distance of two colours in OKLab (Björn Ottosson, 2020), times 100: 2 is just noticeable. */
function distance(a: string, b: string, eye: readonly Rgb[]): number {
  const [x, y] = [a, b].map((hex) => {
    const seen = eye.map((row) => Math.min(1, Math.max(0, dot(row, lightOf(hex)))))
    return okLab(seen as unknown as Rgb)
  }) as [Rgb, Rgb]
  return 100 * Math.hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2])
}

function okLab(light: Rgb): Rgb {
  const cones = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
  ].map((row) => Math.cbrt(dot(row as unknown as Rgb, light))) as unknown as Rgb
  return [
    [0.2104542553, 0.793617785, -0.0040720468],
    [1.9779984951, -2.428592205, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.808675766],
  ].map((row) => dot(row as unknown as Rgb, cones)) as unknown as Rgb
}

function dot(a: Rgb, b: Rgb): number {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

for (const theme of themes)
  test(`CON-14 neighbours in a stack have a contrast of at least 2 : 1, ${theme}`, () => {
    for (const [at, name] of names.slice(1).entries()) {
      const ratio = contrast(colourOf(names[at]!, theme), colourOf(name, theme))
      assert.ok(ratio >= 2, `${names[at]} and ${name}: ${ratio.toFixed(2)}`)
    }
  })

for (const theme of themes)
  test(`CON-14 any two colours are distinguishable, because hidden series make others neighbours, ${theme}`, () => {
    for (const [at, one] of names.entries())
      for (const other of names.slice(at + 1))
        for (const [eye, matrix] of Object.entries(eyes)) {
          const apart = distance(colourOf(one, theme), colourOf(other, theme), matrix)
          const least = eye === 'usual' ? 11 : 7
          assert.ok(apart >= least, `${one} and ${other}, ${eye}: ${apart.toFixed(1)}`)
        }
  })

for (const theme of themes)
  test(`CON-14 every colour of a series has a contrast of at least 3 : 1 to the plot (WCAG 2.2, 1.4.11), ${theme}`, () => {
    for (const name of names) {
      const ratio = contrast(colourOf(name, theme), colourOf('panel', theme))
      assert.ok(ratio >= 3, `${name}: ${ratio.toFixed(2)}`)
    }
  })

test('a registered colour starts as that of the light theme', () => {
  for (const name of names) {
    const [, initial] = new RegExp(`@property --${name} \\{[^}]*initial-value: (#[0-9a-f]{6})`).exec(style)!
    assert.equal(initial, colourOf(name, 'light'), name)
  }
})

test('a plot by outcome asks for every outcome', () => {
  assert.equal(outcomesMax, outcomes.length)
  for (const name of Object.keys(outcomeColours))
    assert.ok(
      outcomes.some((outcome) => outcome === name),
      name,
    )
})

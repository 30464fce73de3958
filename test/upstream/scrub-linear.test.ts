import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import test from 'node:test'
import { type Node, parse } from 'acorn'
import { scrub } from '../../src/upstream/scrub.ts'
import { nothing } from './scrub-context.ts'

/*
 * Whoever makes a model repeat his words chooses what the scrub reads. What one character of a text may cost is bounded by
 * the form of the patterns, which is looked at here; the clock is only asked whether that is true at all.
 */

const folder = join(import.meta.dirname, '../../src/upstream')

/** In so many ways a pattern may be tried at one character: the product of the choices its quantifiers have. */
const waysMax = 1_024

/** The code a model's text passes. */
const scrubbing = ['over-long.ts', 'revealing.ts', 'scrub.ts', 'verdict.ts']

const patterns = scrubbing.flatMap((file) => readPatterns(file))

test('B1, U11: no pattern of the scrub has an unbounded quantifier, or bounds whose product is large', () => {
  assert.ok(patterns.length >= 30, `${patterns.length} patterns`)
  const faults = patterns.flatMap(({ file, source }) =>
    faultsOf(source).map((fault) => `${file}: ${fault}: /${source}/`),
  )
  assert.deepEqual(faults, [])
})

test('B1, U11: the check recognises the forms that are not linear', () => {
  for (const bad of ['a+b', '[^x]*', 'a{3,}', '(?:a{1,50}){1,50}', 'a{1,40}b{1,40}'])
    assert.equal(faultsOf(bad).length, 1)
  for (const good of ['\\+', '[+*]', 'a{3}', 'a{1,1000}?', 'ab?c', '\\{3,']) assert.deepEqual(faultsOf(good), [], good)
})

const shapes: Record<string, string> = {
  letters: 'a',
  capitals: 'X1',
  'keys that begin': 'sk-',
  'labels that begin': 'a.',
  'labels with hyphens': 'a-',
  'an address that begins': 'a@',
  'organisations that begin': 'org-',
  'a region that begins': 'us-east',
  regions: 'east',
  'paths that begin': ' /a',
  'dots and slashes': './',
  digits: '1',
  'numbers with dots': '1.',
  'hexadecimal with colons': 'ab:',
  'long prompts': 'prompt is too long: ',
  'long contexts': 'maximum context length is ',
  'long requests': '(12 tokens) exceeds the available context size (',
  spaces: ' ',
  'line ends': '\n',
  'open parentheses': '(',
  'links in parentheses': '(see https://x.com/docs ',
  sentences: 'See a.com. ',
  'ids of calls': 'call_1 ',
  'the name of the model': 'mini ',
  'the name of the upstream': 'up-mini ',
  'a word that is hidden': 'hidden-1 ',
  'a path of ours': '/v1/messages ',
  surrogates: '😀',
}

const bytes = 65_536

test('B1, U11: every pattern takes less than 20 ms for 64 KB of every hostile shape', () => {
  const slow = patterns.flatMap(({ source, flags }) =>
    Object.entries(shapes).flatMap(([name, unit]) => {
      const text = fill(unit)
      const pattern = new RegExp(source, flags.includes('g') ? flags : `${flags}g`)
      const spentMs = leastMs(() => text.replace(pattern, ''))
      return spentMs < 20 ? [] : [`${name}: ${spentMs.toFixed(1)} ms: /${source}/`]
    }),
  )
  assert.deepEqual(slow, [])
})

test('B1, U11: the scrub takes less than 20 ms for 64 KB, and for 8 MB, of every hostile shape', () => {
  const context = {
    ...nothing,
    modelId: 'mini',
    upstreamModels: ['up-mini'],
    hidden: Array.from({ length: 100 }, (_, i) => `hidden-${i}`),
    ownPaths: ['/v1/messages'],
  }
  const slow = Object.entries(shapes).flatMap(([name, unit]) =>
    [fill(unit), unit.repeat(8_388_608 / unit.length)].flatMap((text) => {
      const spentMs = leastMs(() => scrub(text, context))
      return spentMs < 20 ? [] : [`${name}, ${text.length}: ${spentMs.toFixed(1)} ms`]
    }),
  )
  assert.deepEqual(slow, [])
})

test('B1, U11: only the first 1,000 characters of a text are judged', () => {
  const say = (text: string) => scrub(text, { ...nothing, modelId: 'mini', upstreamModels: ['up-mini'] })
  const filler = 'ab '.repeat(400)
  assert.equal(say(`${filler.slice(0, 975)}https://x.example`), 'generic')
  assert.equal(say(`${filler.slice(0, 1_001)}https://x.example`), `${filler.slice(0, 399)}…`)
})

function fill(unit: string): string {
  return unit.repeat(Math.ceil(bytes / unit.length)).slice(0, bytes)
}

/** Time of this thread's processor alone, at best of a few: what else the machine does counts as little as can be. */
function leastMs(work: () => unknown): number {
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < 4 && least >= 20; i++) {
    const before = process.threadCpuUsage()
    work()
    const { user, system } = process.threadCpuUsage(before)
    least = Math.min(least, (user + system) / 1_000)
  }
  return least
}

type Found = { file: string; source: string; flags: string }

/** Every pattern that stands in a file, those made of text included. */
function readPatterns(file: string): Found[] {
  const found: Found[] = []
  const code = stripTypeScriptTypes(readFileSync(join(folder, file), 'utf8'))
  visit(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }))
  return found

  function visit(node: unknown): void {
    if (typeof node !== 'object' || node === null) return
    const { regex, type, callee } = node as Node & {
      regex?: { pattern: string; flags: string }
      callee?: { name?: string }
    }
    if (regex) found.push({ file, source: regex.pattern, flags: regex.flags })
    if (type === 'NewExpression' && callee?.name === 'RegExp') {
      const {
        arguments: [first],
      } = node as unknown as { arguments: [{ quasis: { value: { cooked: string } }[] }] }
      found.push({ file, source: first.quasis.map(({ value }) => value.cooked).join('com|net'), flags: 'i' })
    }
    for (const child of Object.values(node)) visit(child)
  }
}

function faultsOf(source: string): string[] {
  // Neither classes nor what is escaped has a quantifier in it.
  const bare = source.replace(/\\(?:[pPuk]\{[^}]*\}|.)/gs, 'x').replace(/\[[^\]]*\]/g, 'x')
  if (/[*+]|\{\d+,\}/.test(bare)) return ['a quantifier without an end']
  const ranges = [...bare.matchAll(/\{(\d+),(\d+)\}/g)]
  const ways = ranges.reduce((product, [, min, max]) => product * (Number(max) - Number(min) + 1), 1)
  return ways <= waysMax ? [] : [`${ways} ways`]
}

test('B1, U11: every file that processes the text of a refusal is checked', () => {
  const withPatterns = globSync('*.ts', { cwd: folder }).filter((file) => readPatterns(file).length > 0)
  // A text of the upstream's does not come near these.
  const others = [
    'dial.ts',
    'key-command.ts',
    'hosting-words.ts',
    'http-fetch.ts',
    'http-way.ts',
    'refusal.ts',
    'transport-fault.ts',
    'way-connection.ts',
  ]
  assert.deepEqual(withPatterns.filter((file) => !others.includes(file)).sort(), [...scrubbing].sort())
})

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'

/*
 * Whoever meets a number in the code, a test or a page can look it up in this project: every citation is followed to
 * the page, the section, the row or the test it names. The kinds are listed at the end of docs/rulings.md.
 */

const root = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** Where a kind of citation is looked up. `find` gets the number as it was written. */
type Kind = { pattern: RegExp; find(id: string): boolean }

const faults = read('docs/faults.md')
const review = read('docs/review.md')
const findings = read('docs/findings.md')
const rulings = read('docs/rulings.md')
const rules = read('docs/translation/README.md')
const conformance = read('docs/conformance-tests.md')
const laws = read('src/inference/answer.ts')

/** A number of a section, or several: `2.2`, `§2–6`, `1.3, 5 and 7.3`. */
const numbers = String.raw`§?(\d+(?:\.\d+)*(?:(?:, |, and | and |–)§?\d+(?:\.\d+)*(?![\w.]*\w))*)`

const kinds: Readonly<Record<string, Kind>> = {
  fault: { pattern: /\b(F-[CUSP]\d+(?:–F-[CUSP]\d+)?)/g, find: (id) => faults.includes(`| ${id} |`) },
  review: { pattern: /(?<![\w.\-\\$/])(H-F\d+|m(?:09|[123]\d))(?![\w-]|\.\w)/g, find: hasFinding },
  finding: {
    pattern: /(?<![\w.\-\\$/])([BE][1-9]\d?|A[1-8])(?![\w-]|\.\w)/g,
    find: (id) => findings.includes(`| ${id} |`),
  },
  newcomer: { pattern: /(?<![\w.\-\\$/])(N-F\d+)(?![\w-])/g, find: (id) => findings.includes(`| ${id} |`) },
  ruling: {
    pattern: /(?<![\w.\-\\$/])([NRCPTUXY][1-9]\d?)(?![\w-]|\.\w)/g,
    find: (id) => rulings.includes(`**${id}** `),
  },
  law: { pattern: /(?<![\w.\-\\$/])(I[1-9]\d?)(?![\w-]|\.\w)/g, find: (id) => laws.includes(` * ${id} `) },
  case: {
    pattern: /(?<![\w.\-\\$/])([QA]\d{2,3})(?![\w-]|\.\w)/g,
    find: (id) => conformance.includes(`\n- **${id}**\n`),
  },
  property: { pattern: /\b(T[PS]\d+)\b/g, find: (id) => rules.includes(`| ${id} |`) },
  rule: { pattern: /\b(R-[A-Z]{2,}(?: \d(?!\.\d))?)/g, find: hasRule },
  spec: sections('spec', 'docs/interface.md'),
  translation: sections('translation', 'docs/translation/README.md'),
  reliability: sections('reliability', 'docs/reliability.md'),
  clients: sections('clients', 'docs/wires/clients.md', '§'),
  'message-wire': sections('messages?-wire', 'docs/wires/messages.md'),
  'chat-wire': sections('chat-wire', 'docs/wires/chat.md'),
  'responses-wire': sections('responses?-wire', 'docs/wires/responses.md'),
  decision: {
    pattern: new RegExp(String.raw`\bdecisions? ${numbers}`, 'g'),
    find: (id) => globSync(`docs/decisions/${id.padStart(4, '0')}-*.md`, { cwd: root }).length === 1,
  },
}

const files = globSync(
  ['{src,scripts,bench,clients,examples}/**/*.{ts,mjs,md}', 'test/**/*.{ts,md}', 'docs/**/*.md', '*.md'],
  { cwd: root, exclude: (path) => path.includes('node_modules') },
)
  .map((file) => file.replaceAll('\\', '/'))
  // The one is made from the titles of the tests, which are read themselves; the other is this file, with numbers that lead nowhere.
  .filter((file) => !file.endsWith('conformance-tests.md') && file !== 'test/citations.test.ts')
  .sort()

test('every citation leads to an existing place', () => {
  const lost = files.flatMap((file) => findLost(file, read(file)))
  assert.deepEqual(lost, [])
})

test('the pages have citations of every kind', () => {
  const text = files.map(read).join('\n')
  assert.deepEqual(
    Object.keys(kinds).filter((kind) => text.match(kinds[kind]!.pattern) === null),
    [],
  )
})

test('a citation that leads nowhere is detected, of each kind', () => {
  const text = [
    'as F-C99 says (H-F9, H-F1, m11, m21; B99, B1, A1, E9), and F-C1 (R99, C1, T1), law I11 and I10, case A999 and A01,',
    'TP9 and TP1, R-NOTHING, R-PAIR 9, R-PAIR 2, spec 9.9 and spec 2.2, 7.99, translation 4.9 and translation 4.2,',
    'reliability §12, reliability §1.11 and reliability §1.6, clients §70, message-wire 5.9, chat-wire §2–19,',
    'responses-wire 8.66 and responses-wire 8.6, decision 99 and decision 12.',
  ].join('\n')
  assert.deepEqual(findLost('x.ts', text), [
    'x.ts:1: fault F-C99',
    'x.ts:1: review H-F9',
    'x.ts:1: review m11',
    'x.ts:1: finding B99',
    'x.ts:1: finding E9',
    'x.ts:1: ruling R99',
    'x.ts:1: law I11',
    'x.ts:1: case A999',
    'x.ts:2: property TP9',
    'x.ts:2: rule R-NOTHING',
    'x.ts:2: rule R-PAIR 9',
    'x.ts:2: spec 9.9',
    'x.ts:2: spec 7.99',
    'x.ts:2: translation 4.9',
    'x.ts:3: reliability 12',
    'x.ts:3: reliability 1.11',
    'x.ts:3: clients 70',
    'x.ts:3: message-wire 5.9',
    'x.ts:3: chat-wire 19',
    'x.ts:4: responses-wire 8.66',
    'x.ts:4: decision 99',
  ])
})

test('no page has the same number twice', () => {
  const rows = [
    ...faults.matchAll(/^\| (F-[CUSP]\d+) \|/gm),
    ...findings.matchAll(/^\| ([BAE]\d+) \|/gm),
    ...rulings.matchAll(/\*\*([NRCPTUX]\d+)\*\* /g),
  ]
  const ids = rows.map(([, id = '']) => id)
  assert.deepEqual(
    ids.filter((id, at) => ids.indexOf(id) !== at),
    [],
  )
})

/** File, line and number of each citation that leads nowhere. */
function findLost(file: string, text: string): string[] {
  const lost = Object.entries(kinds).flatMap(([kind, { pattern, find }]) =>
    [...text.matchAll(pattern)].flatMap(({ 1: cited = '', index }) =>
      idsOf(cited)
        .filter((id) => !find(id))
        .map((id) => ({ line: text.slice(0, index).split('\n').length, told: `${kind} ${id}` })),
    ),
  )
  return lost.sort((one, other) => one.line - other.line).map(({ line, told }) => `${file}:${line}: ${told}`)
}

/** What is cited in one breath, as numbers of their own; of a range both ends. */
function idsOf(cited: string): string[] {
  return cited.split(/, and |, | and |–/).map((id) => id.replace('§', ''))
}

function sections(word: string, page: string, mark = ''): Kind {
  const text = read(page)
  return { pattern: new RegExp(String.raw`\b${word} ${mark}${numbers}`, 'g'), find: (id) => hasSection(text, id) }
}

/** A heading, or a numbered rule below the heading that is left when its last number is taken away. */
function hasSection(text: string, section: string): boolean {
  const parts = text.split(/^#{2,4} /m)
  const find = (id: string) => parts.find((part) => part.startsWith(`${id} `) || part.startsWith(`${id}. `))
  if (find(section) !== undefined) return true
  const [, parent = '', item = ''] = /^(.*)\.(\d+)$/.exec(section) ?? []
  return parent !== '' && hasItem(find(parent), item)
}

/** A row of the review, which may hold several. */
function hasFinding(id: string): boolean {
  return new RegExp(`^\\| (?:[\\w-]+, )*${id}\\b`, 'm').test(review)
}

/** A heading of its own, and a numbered item below it where a number is cited. */
function hasRule(cited: string): boolean {
  const [rule, item] = cited.split(' ')
  const part = rules.split(/^#{2,4} /m).find((text) => text.startsWith(`${rule}\n`))
  return part !== undefined && (item === undefined || hasItem(part, item))
}

/** Whether a numbered list below a heading, which is the first line, has the number. */
function hasItem(part: string | undefined, item: string): boolean {
  return part?.includes(`\n${item}. `) ?? false
}

import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'

/*
 * Pages that people write are held to what is there: files they link to or name, and the numbers that tests cite.
 * Pages of test/pages and docs/translation, and docs/conformance.md, are made by scripts and checked there.
 */

const root = join(import.meta.dirname, '..')
const pages = globSync(['*.md', 'docs/*.md', 'docs/decisions/*.md', 'bench/*.md'], { cwd: root })
  .filter((page) => !page.endsWith('conformance.md'))
  .sort()

/** Links within the repository, without their anchors. */
const link = /\]\((?!https?:|#)([^)#\s]+)(?:#[^)\s]*)?\)/g
/** Files of ours that a text names in code style; a name with a star or an ellipsis stands for several. */
const named = /`((?:src|test|scripts|bench|examples|docs|bin)\/[\w./-]+\.\w+)`/g

test('every link of a page leads to a file', () => {
  assert.deepEqual(
    pages.flatMap((page) => lost(page, link, dirname(page))),
    [],
  )
})

test('every file that a page names is there', () => {
  assert.deepEqual(
    pages.flatMap((page) => lost(page, named, '')),
    [],
  )
})

test('docs/rulings.md has every ruling that the tests can cite', () => {
  const text = readFileSync(join(root, 'docs/rulings.md'), 'utf8')
  const counts = { N: 3, R: 12, C: 8, P: 6, T: 18, U: 6, X: 5 }
  const rulings = Object.entries(counts).flatMap(([letter, count]) =>
    Array.from({ length: count }, (_, i) => `${letter}${i + 1}`),
  )
  assert.deepEqual(
    rulings.filter((ruling) => !text.includes(`**${ruling}** `)),
    [],
  )
})

test('docs/interface.md has every section that the tests cite', () => {
  const text = readFileSync(join(root, 'docs/interface.md'), 'utf8')
  const conformance = readFileSync(join(root, 'docs/conformance.md'), 'utf8')
  const cited = [...conformance.matchAll(/^- \*\*spec ([\d.]+)\*\*$/gm)].map(([, section = '']) => section)
  assert.ok(cited.length > 0)
  assert.deepEqual(
    cited.filter((section) => !hasSection(text, section)),
    [],
  )
})

function lost(page: string, pattern: RegExp, from: string): string[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(pattern)]
    .filter(([, path = '']) => !existsSync(join(root, from, path)))
    .map(([, path]) => `${page}: ${path}`)
}

/** A heading, or a numbered rule under the heading that is left when its last number is taken away. */
function hasSection(text: string, section: string): boolean {
  const sections = text.split(/^#{2,3} /m)
  if (sections.some((part) => part.startsWith(`${section} `) || part.startsWith(`${section}. `))) return true
  const [, parent, rule] = /^(.*)\.(\d+)$/.exec(section) ?? []
  const part = sections.find((text) => text.startsWith(`${parent} `) || text.startsWith(`${parent}. `))
  return part !== undefined && new RegExp(`^${rule}\\. `, 'm').test(part)
}

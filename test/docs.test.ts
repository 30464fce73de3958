import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'

/*
 * Pages that people write are held to what is there: files they link to or name, and defaults they repeat. That the
 * numbers they cite lead somewhere is test/citations.test.ts. Pages that scripts make are checked by the scripts.
 */

const root = join(import.meta.dirname, '..')
const pages = globSync(
  ['*.md', 'docs/*.md', 'docs/{decisions,wires}/*.md', 'docs/translation/README.md', 'bench/*.md'],
  { cwd: root },
)
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

function lost(page: string, pattern: RegExp, from: string): string[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(pattern)]
    .filter(([, path = '']) => !existsSync(join(root, from, path)))
    .map(([, path]) => `${page}: ${path}`)
}

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { findPages } from '../../scripts/pages.ts'
import { rewritePage } from './page.ts'

const pages = findPages()

test('translation 4.5 every situation has pages', () => {
  const numbers = new Set(pages.map(({ name }) => Number(name.slice(0, 2))))
  assert.deepEqual(
    [...numbers].sort((a, b) => a - b),
    Array.from({ length: 34 }, (_, i) => i + 1),
  )
})

for (const { path, client, upstream, name } of pages) {
  test(`translation 4.5 ${client} to ${upstream}: ${name}`, () => {
    const page = readFileSync(path, 'utf8')
    const rewritten = rewritePage(page, client, upstream)
    assert.deepEqual(rewritten.violations, [])
    assert.equal(rewritten.page, page, 'the translation has changed: npm run pages:update, then read the difference')
  })
}

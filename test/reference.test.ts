import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { errorRows } from '../scripts/reference/errors.ts'
import { logEvents } from '../scripts/reference/log-events.ts'
import { errorTable } from '../src/errors.ts'

const root = join(import.meta.dirname, '..')

test('docs/errors.md has each code of errorTable once', () => {
  const listed = Object.values(errorRows).flatMap((rows) => Object.keys(rows))
  assert.deepEqual(listed.toSorted(), Object.keys(errorTable).toSorted())
})

test('docs/log-events.md has each event that the code logs', () => {
  const logged = new Set<string>()
  for (const file of globSync('src/**/*.ts', { cwd: root })) {
    const text = readFileSync(join(root, file), 'utf8')
    for (const [, one, other] of text.matchAll(
      /(?:#?log|event|lineOf)\(\s*'(?:info|warn|error)',\s*(?:\w+ \? )?'([a-z_0-9]+)'(?: : '([a-z_0-9]+)')?/g,
    ))
      for (const event of [one, other]) if (event) logged.add(event)
    // The threads of the stores send their events to the server as objects.
    if (/^src\/store\/(?!sql\/)/.test(file))
      for (const [, event] of text.matchAll(/\bevent: '([a-z_0-9]+)'/g)) logged.add(event!)
  }
  const listed = new Set(
    Object.values(logEvents).flatMap((rows) => Object.keys(rows).flatMap((row) => row.split(', '))),
  )
  assert.ok(logged.size > 20, `${logged.size} events found`)
  assert.deepEqual(
    [...logged].filter((event) => !listed.has(event)),
    [],
  )
})

test('each row has a cause and a cure, in sentences', () => {
  for (const rows of [...Object.values(errorRows), ...Object.values(logEvents)]) {
    for (const [name, { cause, cure }] of Object.entries(rows)) {
      assert.match(cause, /^[A-Z`].*\.$/, name)
      assert.match(cure, /^[A-Z`].*\.$/, name)
    }
  }
})

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import test from 'node:test'

test('style §5 each type of src has a name of its own', () => {
  const declared = globSync('src/**/*.ts').flatMap((file) => {
    // Generated TypeScript in templates declares types of its own.
    const source = readFileSync(file, 'utf8').replace(/`[^`]*`/g, '``')
    const names = source.matchAll(/^(?:export )?(?:type|interface) (\w+)\b(?=[^;]*[={])/gm)
    return Array.from(names, ([, name]) => ({ name: name!, file }))
  })
  const files = Map.groupBy(declared, ({ name }) => name)
  assert.ok(files.size > 900, 'types are found')
  const twice = [...files].filter(([, places]) => places.length > 1)
  assert.deepEqual(
    twice.map(([name, places]) => `${name}: ${places.map(({ file }) => file).join(', ')}`),
    [],
  )
})

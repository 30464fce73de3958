import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import test from 'node:test'

test('style §5 each type of src has a unique name', () => {
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

const exports = /^export (?:async )?(?:type|interface|function\*?|const|let|class) (\w+)/gm

/** What the package offers, which nobody here has to import. */
const offered = ['src/process/start.ts', 'src/simulator/simulator.ts']

test('what a file of src exports is imported by another file', () => {
  const imported = new Set<string>()
  for (const file of globSync(
    '{src,console,test,scripts,bench,servers,clients,conformance,ops,bin}/**/*.{ts,tsx,mjs}',
  )) {
    const source = readFileSync(file, 'utf8')
    const resolve = (path: string) => posix.join(posix.dirname(file.replaceAll('\\', '/')), path)
    const lists = source.matchAll(/^(?:import|export)\s[^']*?(?:(\{[^}]*\})|\* as (\w+)) from '(\.[^']+)'/gm)
    for (const [, list = '', space, path = ''] of lists) {
      const names =
        space === undefined ? list : [...source.matchAll(new RegExp(`\\b${space}\\s*\\.(\\w+)`, 'g'))].join()
      for (const [name] of names.matchAll(/[\w$]+/g)) imported.add(`${name} of ${resolve(path)}`)
    }
    // A module that is imported later gives its names in several forms. Each word of the importing file may be one.
    const later = Array.from(source.matchAll(/\bimport\('(\.[^']+)'\)/g), ([, path = '']) => resolve(path))
    const words = later.length > 0 ? (source.match(/[\w$]+/g) ?? []) : []
    for (const word of words) for (const path of later) imported.add(`${word} of ${path}`)
  }
  const exported = globSync('src/**/*.ts')
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => !offered.includes(file))
    .flatMap((file) => {
      const names = readFileSync(file, 'utf8').matchAll(exports)
      return Array.from(names, ([, name]) => `${name} of ${file}`)
    })
  assert.ok(exported.length > 2500, 'exports are found')
  assert.deepEqual(
    exported.filter((one) => !imported.has(one)),
    [],
  )
})

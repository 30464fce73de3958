import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { findChangedTests, listChanged } from '../scripts/support/changed-tests.ts'

/** A small checkout: each file with its text. */
const checkout: Readonly<Record<string, string>> = {
  'package.json': '{}',
  LICENSE: '',
  'docs/guide.md': '',
  'docs/wires/a.md': '',
  'examples/one.yaml': '',
  'bin/program.mjs': "await launch('src/cli.ts')",
  'src/base.ts': 'export const a = 1',
  'src/shapes.ts': 'export type Shape = string',
  'src/middle.ts': "import { a } from './base.ts'\nimport type { Shape } from './shapes.ts'\nexport { a }",
  'src/worker.ts': "import { a } from './base.ts'",
  'src/cli.ts': "new Worker(new URL('./worker.ts', import.meta.url))\nconst page = 'docs/guide.md'",
  'src/late.ts': 'export const late = 1',
  'src/alone.ts': '',
  'test/support/run.ts': "spawn('bin/program.mjs')",
  'test/base.test.ts': "import { a } from '../src/base.ts'",
  'test/middle.test.ts': "import {\n  a,\n} from '../src/middle.ts'",
  'test/late.test.ts': "const { late } = await import('../src/late.ts')",
  'test/cli.test.ts': "import './support/run.ts'",
  'test/guide.test.ts': "readFileSync(join(root, 'docs/guide.md'))",
  'test/pages.test.ts': "globSync('docs/**/*.md')",
  'test/examples.test.ts': `for (const name of names) read(\`../examples/\${name}\`)`,
  'test/rules.test.ts': "globSync('**/*.ts', { cwd: new URL('../src/', import.meta.url) })",
}

const tests = (...names: string[]) => names.map((name) => `test/${name}.test.ts`)
const every = Object.keys(checkout).filter((file) => file.endsWith('.test.ts'))
const find = (...changed: string[]) =>
  findChangedTests([...new Set([...Object.keys(checkout), ...changed])], changed, (file) => checkout[file] ?? '')

test('a change affects the tests that import it through any number of modules, start it, or read it', () => {
  for (const [changed, names] of [
    ['src/base.ts', ['base', 'middle', 'cli', 'rules']],
    ['src/middle.ts', ['middle', 'rules']],
    ['src/late.ts', ['late', 'rules']],
    ['src/worker.ts', ['cli', 'rules']],
    ['bin/program.mjs', ['cli']],
    ['test/support/run.ts', ['cli']],
    ['test/base.test.ts', ['base']],
    ['docs/guide.md', ['guide', 'pages']],
    ['docs/wires/a.md', ['pages']],
    ['examples/one.yaml', ['examples']],
    // Types are gone when it runs.
    ['src/shapes.ts', ['rules']],
    // A file that is gone.
    ['docs/old.md', ['pages']],
  ] as const)
    assert.deepEqual(find(changed), { files: tests(...names), everythingBecause: [], untested: [] }, changed)
  assert.deepEqual(find('src/middle.ts', 'docs/wires/a.md').files, tests('middle', 'pages', 'rules'))
  assert.deepEqual(find(), { files: [], everythingBecause: [], untested: [] })
})

test('a changed file that no test names selects all tests and is named; a module that no test reaches is named too', () => {
  assert.deepEqual(find('LICENSE', 'src/middle.ts'), { files: every, everythingBecause: ['LICENSE'], untested: [] })
  assert.deepEqual(find('package.json'), { files: every, everythingBecause: ['package.json'], untested: [] })
  assert.deepEqual(find('scripts/tool.ts'), { files: [], everythingBecause: [], untested: ['scripts/tool.ts'] })
})

test('changed files are those since the branch left main, and those that are not committed or not tracked', () => {
  const asked: string[] = []
  const git =
    (answers: Record<string, string>) =>
    (...args: string[]) => {
      asked.push(args.join(' '))
      const answer = answers[args[0]!]
      if (answer === undefined) throw new Error('git failed')
      return answer
    }
  const diff = 'src/b.ts\0src/a a.ts\0'
  const others = 'docs/n.md\0'
  assert.deepEqual(listChanged(git({ 'merge-base': 'abc\n', diff, 'ls-files': others })), [
    'docs/n.md',
    'src/a a.ts',
    'src/b.ts',
  ])
  assert.deepEqual(listChanged(git({ diff: '', 'ls-files': '' })), [])
  assert.deepEqual(listChanged(git({ diff: '', 'ls-files': others }), 'v1'), ['docs/n.md'])
  const diffs = asked.filter((line) => line.startsWith('diff'))
  assert.deepEqual(
    diffs.map((line) => line.split(' ').slice(-2)[0]),
    ['abc', 'HEAD', 'v1'],
  )
  assert.ok(
    diffs.every((line) => line.includes('--no-renames')),
    'the old name of a file has changed too',
  )
  assert.throws(() => listChanged(git({})), /git failed/)
})

test('in this checkout pages, examples and the schema affect the tests that read them, and a module those that import it', () => {
  const root = join(import.meta.dirname, '..')
  const all = globSync('{bin,src,test,docs,examples,scripts,conformance}/**/*.*', { cwd: root }).map((file) =>
    file.replaceAll('\\', '/'),
  )
  all.push('triwire.schema.json', 'package.json')
  const found = (changed: string) =>
    findChangedTests(all, [changed], (file) => readFileSync(join(root, file), 'utf8')).files
  for (const [changed, test] of [
    ['docs/providers.md', 'test/stories/reach.test.ts'],
    ['docs/rulings.md', 'test/citations.test.ts'],
    ['triwire.schema.json', 'test/config/generated.test.ts'],
    ['examples/pools.yaml', 'test/config/generated.test.ts'],
    ['test/fixtures/tls/self-signed.key.pem', 'test/upstream/transport-faults.test.ts'],
    ['src/accounts/settlement.ts', 'test/accounts/settlement.test.ts'],
    ['src/accounts/settlement.ts', 'test/stories/credit.test.ts'],
    ['src/store/sqlite/worker.ts', 'test/store/ledger-client.test.ts'],
    ['src/cli/cli.ts', 'test/cli/cli.test.ts'],
    ['src/errors.ts', 'test/imports.test.ts'],
    ['conformance/src/wires/chat.ts', 'test/cli/doctor.test.ts'],
  ] as const)
    assert.ok(found(changed).includes(test), `${changed} affects ${test}`)
  assert.ok(!found('docs/providers.md').includes('test/accounts/settlement.test.ts'))
  assert.ok(!found('src/accounts/settlement.ts').includes('test/http1/chunked.test.ts'))
})

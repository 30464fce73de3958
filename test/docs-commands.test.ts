import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { isPrinted } from '../scripts/docs/compare.ts'
import { commandPages, readPage } from '../scripts/docs/page.ts'

// scripts/docs-commands.ts runs the commands of the pages by night. These tests show that it can read every page and that
// it notices a page which says something else than the program.

const root = join(import.meta.dirname, '..')

test('every page is read: its commands are in fenced sh blocks, and its marks are known', () => {
  for (const page of commandPages(root)) {
    try {
      readPage(readFileSync(join(root, page), 'utf8'))
    } catch (error) {
      assert.fail(`${page}: ${(error as Error).message}`)
    }
  }
})

const page = `# Page

<!-- try: read NAME as acme -->
<!-- try: not here 2: it needs a cluster -->
<!-- try: exit 3 -->

\`\`\`sh
triwire account create NAME \\
  --credit 5       # a comment
kubectl get pods
for one in a b; do
  echo "$one"
done
\`\`\`

It prints:

\`\`\`
a
…
\`\`\`

## Next

\`\`\`
no output of the commands above
\`\`\`
`

test('a page is read as its commands, their reasons, and their output', () => {
  const [read, ...steps] = readPage(page)
  assert.deepEqual(read, { kind: 'read', from: 'NAME', to: 'acme' })
  assert.deepEqual(
    steps.map((step) => (step.kind === 'command' ? [step.text.split('\n')[0], step.notHere, step.exit] : step.kind)),
    [
      ['triwire account create NAME \\', undefined, 0],
      ['kubectl get pods', 'it needs a cluster', 0],
      ['for one in a b; do', undefined, 3],
      'output',
    ],
  )
})

for (const [what, text, error] of [
  ['a mark that is not known', '<!-- try: skip -->', 'line 1: there is no mark "skip"'],
  ['a reason that is missing', '<!-- try: not here: -->', 'line 1: there is no mark "not here:"'],
  ['a command in an indented block', '\n    triwire serve', 'line 2: a command outside of a fenced sh block'],
  ['a command that bash cannot read', '```sh\nfor one in a\n```', 'line 2: bash cannot read this command'],
] as const) {
  test(`${what} is refused, with its line`, () => assert.throws(() => readPage(text), { message: error }))
}

for (const [what, expected, output, is] of [
  ['the same lines', 'a\nb', 'x\na\nb\ny', true],
  ['lines with another between', 'a\nb', 'a\nx\nb', false],
  ['any lines for …', 'a\n…\nb', 'a\nx\ny\nb', true],
  ['any text for … in a line', 'id … ok', 'id 4711 ok', true],
  ['columns of another width', 'a  b', 'a        b', true],
  ['another figure', 'balance 5', 'balance 6', false],
  ['another word', 'the ledger is right', 'the ledger is wrong', false],
  ['another id', '{"id":"acct_ckgwcv2rI9WDqzKN"}', '[{"id":"acct_DmHbdPbBYMCcWz1G"}]', true],
  ['another time', 'at 2026-11-27T23:19:09.885Z', 'at 2027-01-01T00:00:00.000Z', true],
  ['another folder', 'store /srv/data/triwire.db', 'store /tmp/x/data/triwire.db', true],
  ['another file', 'store /srv/data/triwire.db', 'store /srv/data/other.db', false],
  ['JSON with another member', '{"a":1,"b":2}', '{"a":1,"c":3,"b":2}', false],
  ['JSON on several lines', '{"a":1,\n "b":2}', '{"a":1,"b":2}', true],
  ['a member that is cut off', '{"a":1,…}', '{"a":1,"c":3}', true],
] as const) {
  test(`${what}: ${is ? 'printed' : 'not printed'}`, () => assert.equal(isPrinted(expected, output), is))
}

test('with `figures differ` other numbers are accepted, and other words are not', () => {
  assert.ok(isPrinted('spent 9.18 of acme', 'spent 0.000363 of acme', true))
  assert.ok(!isPrinted('spent 9.18 of acme', 'spent 9.18 of other', true))
})

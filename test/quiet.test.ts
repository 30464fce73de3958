import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'

const root = import.meta.dirname

/** What a test file may not say, but for the helpers that stand for it. */
const refused = [
  {
    words: /\btmpdir\b/,
    helpers: ['support/folder.ts'],
    instead: 'testFolder: what is written is searched for texts and keys',
  },
  {
    words: /\b(setTimeout|setInterval)\(|from 'node:timers/,
    helpers: ['support/waiting.ts', 'support/watch.ts', 'support/fault-proxy.ts'],
    instead: 'until, or a turned clock: on a busy machine no time is long enough',
  },
  {
    words: /\bstartServer\(/,
    helpers: ['support/gateway.ts', 'support/replica.ts'],
    instead: 'startTestGateway: it closes by itself',
  },
  {
    words: /\bunit: 'binary'/,
    helpers: [],
    instead: 'characters: the same, without a table of all characters, which takes a process a second',
  },
  { words: /\.listen\(0/, helpers: ['support/listen.ts'], instead: 'listen: it closes by itself' },
]

test('no test waits for the clock, writes outside the test folders, or starts what it does not close', () => {
  const offences = globSync('**/*.ts', { cwd: root })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => file !== 'quiet.test.ts')
    .flatMap((file) => {
      const lines = readFileSync(join(root, file), 'utf8').split('\n')
      return refused
        .filter(({ helpers }) => !helpers.includes(file))
        .flatMap(({ words, instead }) =>
          lines.flatMap((line, i) => (words.test(line) ? [`test/${file}:${i + 1}: use ${instead}`] : [])),
        )
    })
  assert.deepEqual(offences, [])
})

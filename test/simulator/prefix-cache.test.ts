import assert from 'node:assert/strict'
import test from 'node:test'
import { createPrefixCache, tokensOf } from '../../src/simulator/prefix-cache.ts'
import type { Prompt, Segment, SimulatorWire } from '../../src/simulator/prompt.ts'

/* Issue 48 (C1): the simulator's prompt cache does per wire what its vendor does. */

/** A segment of that many tokens. */
function segmentOf(name: string, tokens: number, mark?: Segment['mark']): Segment {
  const segment = { text: name, ...(mark && { mark }) }
  return { ...segment, extraTokens: tokens - tokensOf(segment) }
}

function promptOf(segments: Segment[], cacheKey = ''): Prompt {
  return { ...({ model: 'sim', cacheKey } as Prompt), segments }
}

const minuteMs = 60_000
const [short, long] = [segmentOf('tools', 1_000), segmentOf('tools', 1_500)]
const wires = ['messages', 'chat', 'responses'] as const
const automatic = ['chat', 'responses'] as const

type Asked = { segments: Segment[]; key?: string; account?: string; afterMs?: number }
type Row = [title: string, wires: readonly SimulatorWire[], asked: Asked[], read: number[], written?: number[]]

const marked = (name: string, tokens: number, mark: '5m' | '1h' = '5m') => segmentOf(name, tokens, mark)
const ask = (...segments: Segment[]): Asked => ({ segments })
const small = Array.from({ length: 25 }, (_, index) => segmentOf(`turn ${index}`, 10))

const rows: Row[] = [
  ['a prompt of less than 1,024 tokens is not cached', automatic, [ask(short), ask(short, small[0]!)], [0, 0]],
  ['nor is a marked one', ['messages'], [ask(marked('a', 1_000)), ask(marked('a', 1_000))], [0, 0], [0, 0]],
  ['a prefix is read in steps of 128 tokens', automatic, [ask(long), ask(long, small[0]!)], [0, 1_408]],
  [
    'the last token of a prompt is never read',
    automatic,
    [ask(segmentOf('a', 1_280)), ask(segmentOf('a', 1_280))],
    [0, 1_152],
  ],
  ['nothing is cached without a mark', ['messages'], [ask(long), ask(long)], [0, 0], [0, 0]],
  [
    'a marked prefix is written once, and read to its last token',
    ['messages'],
    [ask(marked('a', 1_500)), ask(marked('a', 1_500), small[0]!)],
    [0, 1_500],
    [1_500, 0],
  ],
  [
    'a prefix is found 20 segments before the mark, and no further',
    ['messages'],
    [
      ask(marked('a', 1_500)),
      ask(segmentOf('a', 1_500), ...small.slice(0, 19), marked('z', 10)),
      ask(marked('b', 1_500)),
      ask(segmentOf('b', 1_500), ...small.slice(0, 20), marked('z', 10)),
    ],
    [0, 1_500, 0, 0],
    [1_500, 200, 1_500, 1_710],
  ],
  ['automatic caching looks at all of the prompt', automatic, [ask(long), ask(long, ...small)], [0, 1_408]],
  [
    'a prefix is forgotten five minutes after it was last used',
    automatic,
    [
      ask(long),
      { ...ask(long, small[0]!), afterMs: 4 * minuteMs },
      { ...ask(long, small[1]!), afterMs: 4 * minuteMs },
      { ...ask(long, small[2]!), afterMs: 5 * minuteMs },
    ],
    [0, 1_408, 1_408, 0],
  ],
  [
    'and so is a marked one, but for a mark of an hour',
    ['messages'],
    [
      ask(marked('a', 1_500), marked('b', 10)),
      { ...ask(marked('a', 1_500), marked('b', 10)), afterMs: 5 * minuteMs },
      ask(marked('c', 1_500, '1h')),
      { ...ask(marked('c', 1_500, '1h')), afterMs: 59 * minuteMs },
      { ...ask(marked('c', 1_500, '1h')), afterMs: 60 * minuteMs },
    ],
    [0, 0, 0, 1_500, 0],
    [1_510, 1_510, 1_500, 0, 1_500],
  ],
  [
    'a marked prefix lives on when it is read, also from a later mark',
    ['messages'],
    [
      ask(marked('a', 1_500)),
      { ...ask(segmentOf('a', 1_500), marked('b', 10)), afterMs: 4 * minuteMs },
      { ...ask(segmentOf('a', 1_500), marked('c', 10)), afterMs: 4 * minuteMs },
    ],
    [0, 1_500, 1_500],
    [1_500, 10, 10],
  ],
  [
    'a key of the request leads to a cache of its own',
    automatic,
    [
      { ...ask(long), key: 'a' },
      { ...ask(long, small[0]!), key: 'b' },
      { ...ask(long, small[0]!), key: 'a' },
    ],
    [0, 0, 1_408],
  ],
  [
    'no account reads the cache of another',
    wires,
    [ask(marked('a', 1_500)), { ...ask(marked('a', 1_500), small[0]!), account: 'other' }],
    [0, 0],
  ],
]

for (const [title, of, asked, read, written] of rows)
  for (const wire of of)
    test(`issue 48 C1 ${wire}: ${title}`, () => {
      let nowMs = 0
      const cache = createPrefixCache({ length: 'vendors', clock: () => nowMs })
      const counts = asked.map(({ segments, key, account = 'one', afterMs = 0 }) => {
        nowMs += afterMs
        return cache.read(promptOf(segments, key), account, wire)
      })
      const readTokens = counts.map((one) => one.readTokens)
      assert.deepEqual(readTokens, read)
      if (written)
        assert.deepEqual(
          counts.map((one) => one.writtenTokens),
          written,
        )
      else if (wire !== 'messages') assert.ok(counts.every((one) => one.writtenTokens === 0))
    })

test('issue 48 C1 prompts of tests are cached from 64 tokens on, to the token', () => {
  const cache = createPrefixCache({ length: 'short', clock: () => 0 })
  const [first, second] = [segmentOf('a', 63), segmentOf('b', 70)]
  const read = [[first], [first, second], [first, second, small[0]!]].map(
    (segments) => cache.read(promptOf(segments), 'one', 'chat').readTokens,
  )
  assert.deepEqual(read, [0, 0, 133])
})

import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { allOperations, pathFields } from '../../src/operations/openapi.ts'
import { verifyOptions } from '../store/fixtures.ts'
import { characters } from '../support/characters.ts'
import { runsOf } from '../support/runs.ts'
import { startApi } from './api.ts'

/* Every field of every operation with unlikely values; `ask` checks each answer against the document. */

const odd = [
  ...[
    '',
    ' ',
    '\0',
    '\u202e',
    '\ud800',
    '../..',
    "'; DROP TABLE accounts; --",
    '%',
    '_',
    '<img src=x onerror=alert(1)>',
    '=1+1',
  ],
  ...[
    '-1',
    '0',
    '1e9',
    '9223372036854775808',
    '12.5',
    '0.0000000001',
    'NaN',
    '2026-02-30',
    '2026-11-21',
    'P1D',
    '24h',
    '999999d',
  ],
  ...[
    'tester',
    'b',
    'acct_',
    'key_',
    'op_',
    'sk-tri-',
    'tri-op-',
    'admin',
    'suspended',
    '-created',
    'constructor',
    '__proto__',
  ],
]
const text = fc.oneof(fc.constantFrom(...odd), fc.string({ unit: characters, maxLength: 40 }))
const json = fc.oneof(
  { weight: 6, arbitrary: text },
  { weight: 1, arbitrary: fc.constantFrom(null, true, 0, -1, 1e308, 12.5, [], {}, ['x'], { a: { b: 1 } }) },
)

test('issue 13: random input to any operation is answered as the document says, without a bug, and shows an owner nothing of others', async () => {
  const { ask, gateway, keyA, keyB, viewer } = await startApi()
  const { id } = gateway.store.createAccount('quetzal-of-b', 5_000_000_000n)
  const other = gateway.store.createKey(id, { label: 'hoatzin-of-b' })
  const others = [...gateway.store.listKeys('b'), other].map(({ prefix }) => prefix)
  others.push('quetzal-of-b', 'hoatzin-of-b', id, other.id)
  const body = { model: 'native-chat', messages: [{ role: 'user', content: 'hi' }] }
  await (await gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${other.key}` })).text()
  const tokens = [undefined, viewer, keyA] as const
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...allOperations.filter(({ id }) => !id.startsWith('session'))),
      fc.array(json, { minLength: 8, maxLength: 8 }),
      fc.constantFrom(...tokens),
      fc.constantFrom('all', 'some', 'more'),
      fc.constantFrom(
        {},
        { 'if-match': '*' },
        { 'if-match': '"x"' },
        { 'idempotency-key': 'k' },
        { accept: 'text/csv' },
      ),
      async (one, values, token, which, headers) => {
        const inPath = pathFields(one)
        const names = Object.keys(one.input.shape)
        const fields = Object.fromEntries(names.map((name, at) => [name, values[at % values.length]]))
        const path = one.path.replace(/\{(\w+)\}/g, (_, name: string) =>
          encodeURIComponent(wellFormed(fields[name]) || 'x'),
        )
        const rest = Object.entries(fields).filter(
          ([name], at) => !inPath.includes(name) && (which !== 'some' || at % 2),
        )
        if (which === 'more') rest.push(['more', values[7]])
        const hasBody = one.method === 'POST' || one.method === 'PATCH'
        const query = new URLSearchParams(rest.map(([name, value]) => [name, wellFormed(value)])).toString()
        gateway.advance(60_000)
        const told = await ask(one.method, hasBody || !query ? path : `${path}?${query}`, {
          token,
          headers: headers as Record<string, string>,
          ...(hasBody && { body: Object.fromEntries(rest) }),
        })
        assert.ok(told.status < 500, `${one.id} ${path} ${JSON.stringify(rest)}: ${told.text}`)
        if (token !== keyA) return
        assert.ok(told.status >= 400 || ['owner', 'own'].includes(one.role), one.id)
        for (const word of [...others, keyB]) assert.ok(!told.text.includes(word))
      },
    ),
    { numRuns: runsOf(200) },
  )
  assert.deepEqual(
    (await gateway.logLines()).filter(({ event }) => event === 'bug'),
    [],
  )
  const books = await gateway.store.verify(verifyOptions)
  assert.deepEqual(books, [])
})

function wellFormed(value: unknown): string {
  return (typeof value === 'string' ? value : JSON.stringify(value)).toWellFormed()
}

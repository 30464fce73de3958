import assert from 'node:assert/strict'
import test from 'node:test'
import { formatFields, formatTable, withoutSecrets, withoutSecretsIn } from '../../src/cli/print.ts'

test('a table has one row for each item', () => {
  const rows = Array.from({ length: 200_000 }, (_, at) => [`${at}`])
  assert.equal(formatTable(['name'], rows).split('\n').length, 200_001)
})

test('fields for people are never printed as JSON, and a dash stands for a missing value', () => {
  const fields = {
    clock: null,
    models: [],
    failing: ['a', 'b'],
    usage: { input_tokens: 6, calls: { web_search: 2 }, labels: ['a', 'b'], tier: null },
    heard: [
      { model: 'a', cause: 'timeout' },
      { model: 'b', cause: null },
    ],
  }
  assert.deepEqual(formatFields(fields).split(/\n?\w+ {2,}/), [
    '',
    '-',
    '-',
    'a,b',
    'input_tokens=6,calls=(web_search=2),labels=(a,b),tier=-',
    '(model=a,cause=timeout),(model=b,cause=-)',
  ])
})

test('U5 X13 a typed command line is shown in full except for its secrets', () => {
  for (const [typed, shown] of [
    ['sk-ant-api03-abcdefghijklmnop', 'sk-…'],
    ['gsk_abcdefghijklmnop', 'gsk_…'],
    ['http://user:hunter2@h:80/x', 'http://user:…@h:80/x'],
    ['postgres:/u:hun/ter2@h/d', 'postgres:/u:…@h/d'],
    ['https://a.example:8443/path?mail=a@b.example', 'https://a.example:8443/path?mail=a@b.example'],
    ['sk-short', 'sk-short'],
  ] as const) {
    assert.equal(withoutSecrets(typed), shown)
    assert.equal(withoutSecretsIn({ path: '--config', message: typed }).message, shown)
  }
})

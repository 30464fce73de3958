// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the configuration look like placeholders
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import test from 'node:test'
import { parse } from 'yaml'
import { type CatalogChange, type CatalogEntry, editCatalog } from '../../src/config/catalog-edit.ts'

const entry: CatalogEntry = {
  id: 'new',
  wire: 'chat',
  upstream: 'up',
  max_output_tokens: 100,
  context_window: 1000,
  profile: 'deepseek',
  prices: { input: '1', output: '2.50' },
}
const pinned = '2026-11-22'
const none: CatalogChange = { pinned, added: [], updated: [] }
const added = [{ entry, comment: 'prices of today' }]

const file = `# Ours. Ask before you change it.
listen: 127.0.0.1:9000   # behind nginx

catalog:
    pinned: 2026-01-01 # the day of the contract
    models:
    # the big one
    - id: opus
      wire: messages
      upstream: anthropic   # paid by card
      max_output_tokens: 64000
      prices: {input: "5", cache_read: "0.5", output: 25}   # with margin?

    - {id: fast, wire: chat, upstream: b, max_output_tokens: 9, prices: {input: "9", output: "9"}}  # in one line
    - id: steps
      prices:
        input: "1" # fresh
        output: "2"
        steps:
          - { above: 5, input: "2", output: "3" }

upstreams:
    anthropic:
        base_url: https://api.anthropic.com
        accounts:
        - {name: a, key: "\${A_KEY}"}
# the end
`

test('X15 a change of the catalog is put in its proper place, and no other character of the file changes', () => {
  const steps = [{ above: 200, input: '4', output: '6' }]
  const after = editCatalog(file, {
    pinned,
    upstream: { name: 'up', baseUrl: 'https://up.example', keyVariable: 'UP_KEY' },
    added,
    updated: [
      { place: 0, figures: { context_window: 500, prices: { input: '4', cache_write: '6', output: '25' } } },
      { place: 1, figures: { max_output_tokens: 90, prices: { input: '8', calls: { web_search: '0.01' } } } },
      { place: 2, figures: { prices: { input: '2', cache_read: '0.2', steps } } },
    ],
  })
  const expected = file
    .replace('2026-01-01', pinned)
    .replace(
      '{input: "5", cache_read: "0.5", output: 25}',
      '{input: "4", cache_read: "0.5", output: "25", cache_write: "6"}',
    )
    .replace('# with margin?\n', '# with margin?\n      context_window: 500\n')
    .replace(
      'max_output_tokens: 9, prices: {input: "9", output: "9"}',
      'max_output_tokens: 90, prices: {input: "8", output: "9", calls: { web_search: "0.01" }}',
    )
    .replace('"1" # fresh', '"2" # fresh')
    .replace(
      '- { above: 5, input: "2", output: "3" }\n',
      `[{ above: 200, input: "4", output: "6" }]
        cache_read: "0.2"
    # prices of today
    - id: new
      wire: chat
      upstream: up
      max_output_tokens: 100
      context_window: 1000
      profile: deepseek
      prices: { input: "1", output: "2.50" }
`,
    )
    .replace(
      '"${A_KEY}"}\n',
      `"\${A_KEY}"}
    up:
      base_url: https://up.example
      accounts:
        - { name: "main", key: "\${UP_KEY}" }
`,
    )
  assert.equal(after, expected)
  assert.deepEqual(parse(after).catalog.models[2].prices, { input: '2', output: '2', steps, cache_read: '0.2' })
})

test('X15 an empty file, one without a catalog, one without a final line end and one from Windows get a catalog', () => {
  const upstream = { name: 'up', baseUrl: 'https://up.example', keyVariable: 'UP_KEY' }
  const catalog = { pinned, models: [entry] }
  const upstreams = { up: { base_url: 'https://up.example', accounts: [{ name: 'main', key: '${UP_KEY}' }] } }
  for (const [source, rest] of [
    ['', {}],
    ['# only this\n', {}],
    ['listen: x', { listen: 'x' }],
    ['listen: x\nupstreams: {}\n', { listen: 'x' }],
  ] as const) {
    const after = editCatalog(source, { ...none, upstream, added })
    assert.deepEqual(parse(after), { ...rest, catalog, upstreams }, source)
    assert.ok(after.startsWith(source.replace('{}\n', '')), source)
  }
  const windows = editCatalog(file.replaceAll('\n', '\r\n'), { ...none, upstream, added })
  assert.equal(windows.replaceAll('\r\n', ''), editCatalog(file, { ...none, upstream, added }).replaceAll('\n', ''))
  assert.doesNotMatch(windows, /[^\r]\n/)
})

test('X15 a key without a value gets one, and its comment stays', () => {
  const upstream = { name: 'up', baseUrl: 'https://up.example', keyVariable: 'UP_KEY' }
  const calendars = { cn: { zone: 'UTC' } }
  const whole = editCatalog('', { ...none, upstream, calendars, added })
  for (const source of [
    'catalog:\nupstreams:\ncalendars:\n',
    'catalog: # ours\nupstreams: # ours\n  # up: {}\n\ncalendars: # ours\n',
    'catalog: {}\nupstreams: ~\ncalendars: null # ours\n',
    'upstreams:\ncatalog:\n  pinned:\n  models:\n',
    'upstreams:\ncatalog:\n  models: # ours\n  pinned: # ours\n',
    'catalog:\n  pinned:\n  models:',
  ]) {
    const after = editCatalog(source, { ...none, upstream, calendars, added })
    assert.deepEqual(parse(after), parse(whole), source)
    const comments = (text: string) => text.match(/# (?!prices).*/g) ?? []
    assert.deepEqual(comments(after), comments(source), source)
  }
})

test('X15 steps are written one to a line, and an existing upstream is left unchanged', () => {
  const steps = [{ above: 100, input: '2', output: '4' }]
  const long = { ...entry, prices: { input: '1', output: '2', steps } }
  const source = 'upstreams: { up: { base_url: x } }\ncatalog:\n  pinned: x\n  models: []\n'
  const after = editCatalog(source, {
    ...none,
    upstream: { name: 'up', baseUrl: 'https://other', keyVariable: 'K' },
    added: [{ entry: long, comment: 'c' }],
  })
  assert.match(after, /^ {10}- \{ above: 100, input: "2", output: "4" \}$/m)
  assert.deepEqual(parse(after), { upstreams: { up: { base_url: 'x' } }, catalog: { pinned, models: [long] } })
})

test('X15 a change that cannot be made in its place is refused, with nothing written', () => {
  const refused: [string, RegExp][] = [
    ['catalog: [', /not valid YAML/],
    ['- 1', /must be a map of keys/],
    ['catalog: { pinned: x, models: [] }', /written in one line/],
    ['catalog:\n  pinned: x\n', /has no list of models/],
    ['catalog:\n  models: [{ id: a }]\n', /written in one line/],
  ]
  for (const [source, text] of refused) assert.throws(() => editCatalog(source, { ...none, added }), text, source)
  const alias = 'x: &m { id: a }\ncatalog:\n  models:\n    - *m\n'
  const updated = [{ place: 0, figures: { context_window: 5 } }]
  assert.throws(() => editCatalog(alias, { ...none, updated }), /stands elsewhere in the file/)
})

test('X15 each example takes a model, an upstream and new figures, with every line at its place', () => {
  const folder = new URL('../../examples/', import.meta.url)
  for (const name of readdirSync(folder).filter((one) => /^(?!compose).*\.yaml$/.test(one))) {
    const source = readFileSync(new URL(name, folder), 'utf8')
    const upstream = { name: 'new', baseUrl: 'https://up.example', keyVariable: 'UP_KEY' }
    const updated = [{ place: 0, figures: { context_window: 123_456, prices: { input: '77', cache_write: '88' } } }]
    const after = editCatalog(source, { pinned, upstream, added, updated })
    const before = parse(source)
    const expected = structuredClone(before)
    expected.catalog.pinned = pinned
    expected.catalog.models[0].context_window = 123_456
    Object.assign(expected.catalog.models[0].prices, { input: '77', cache_write: '88' })
    expected.catalog.models.push(entry)
    expected.upstreams.new = { base_url: 'https://up.example', accounts: [{ name: 'main', key: '${UP_KEY}' }] }
    assert.deepEqual(parse(after), expected, name)
    const kept = source.split('\n').filter((line) => after.split('\n').includes(line))
    assert.ok(source.split('\n').length - kept.length <= 2, name)
  }
})

test('X15 after a text of several lines a key is on the next line', () => {
  const source = 'catalog:\n  models:\n    - id: a\n      note: |\n        one\n        two\nlisten: x\n'
  const after = editCatalog(source, { ...none, updated: [{ place: 0, figures: { context_window: 5 } }] })
  assert.deepEqual(parse(after), {
    catalog: { models: [{ id: 'a', note: 'one\ntwo\n', context_window: 5 }], pinned },
    listen: 'x',
  })
})

test('X15 a price that is added to a map of one line is inside it, whatever comment ends the last of its lines', () => {
  for (const last of ['output: "2" # list price', 'output: "2", # list price', 'output: "2",']) {
    const text = `catalog:\n  models:\n    - id: a\n      prices: {\n        input: "1",\n        ${last}\n      }\n`
    const after = editCatalog(text, { ...none, updated: [{ place: 0, figures: { prices: { cache_read: '0.1' } } }] })
    assert.deepEqual(parse(after).catalog.models[0].prices, { input: '1', output: '2', cache_read: '0.1' })
    assert.match(after, /list price|,/)
  }
})

test('BRK-6 a comment stays one line, whatever it contains', () => {
  for (const end of ['\n', '\r', '\r\n', '\u2028', '\u2029', '\u0085', '\u001b[2K']) {
    const comment = `figures of a${end}- { id: injected, wire: chat, upstream: u }${end}#`
    const after = parse(editCatalog(file, { pinned, added: [{ entry, comment }], updated: [] }))
    assert.deepEqual(
      after.catalog.models.map(({ id }: { id: string }) => id),
      ['opus', 'fast', 'steps', 'new'],
    )
  }
})

test('BRK-6 a text or a name stays one value, whatever it contains', () => {
  const hostile = [
    'a\nzz: 1',
    'a\n    - { id: b }',
    'x: "1", y',
    'a } b',
    '# a',
    'a # b',
    '- a',
    `a ${'b '.repeat(99)}- c`,
    "'",
    '"',
    '*a',
    '&a b',
    '!a',
  ]
  for (const text of hostile) {
    const upstream = { name: text, baseUrl: text, keyVariable: 'K', headers: { [text]: text } }
    const more = { entry: { ...entry, id: text, prices: { input: '1', calls: { [text]: text } } }, comment: text }
    const source = editCatalog(file, {
      pinned,
      upstream,
      calendars: { [text]: { [text]: text } },
      added: [more],
      updated: [],
    })
    const after = parse(source)
    const accounts = [{ name: 'main', key: '${K}' }]
    assert.deepEqual(after.catalog.models.slice(3), [more.entry], text)
    assert.deepEqual(after.upstreams[text], { base_url: text, headers: { [text]: text }, accounts }, text)
    assert.deepEqual(after.calendars, { [text]: { [text]: text } }, text)
  }
})

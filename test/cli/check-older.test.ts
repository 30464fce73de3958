import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { createBooks } from '../../src/accounts/books.ts'
import { digestKey } from '../../src/accounts/keys.ts'
import { findNewerKeys } from '../../src/config/newer-keys.ts'
import { clusterOfFile } from '../replicas/cluster.ts'
import { createDebitRow } from '../store/fixtures.ts'
import { openOperator } from '../store/postgres/opened.ts'
import { testFolder } from '../support/folder.ts'
import { openStore } from '../support/operator.ts'
import { withoutPostgres } from '../support/postgres.ts'
import { runWarm } from './run.ts'

const cluster = clusterOfFile()
const root = new URL('../../', import.meta.url)

type Schema = {
  $ref?: string
  properties?: Record<string, Schema>
  items?: Schema
  additionalProperties?: Schema | boolean
} & {
  [Name in 'anyOf' | 'oneOf' | 'allOf']?: Schema[]
}

/** The keys of the schema for editors, each with its path; `*` for any name, and `[]` for any item. */
function keysOf({ $defs, ...schema }: Schema & { $defs?: Record<string, Schema> }): Set<string> {
  const keys = new Set<string>()
  const walk = (node: Schema, path: string, depth: number): void => {
    if (depth > 30) return
    if (node.$ref) walk($defs![node.$ref.split('/').at(-1)!]!, path, depth + 1)
    for (const one of [node.anyOf, node.oneOf, node.allOf].flatMap((list) => list ?? [])) walk(one, path, depth + 1)
    for (const [name, one] of Object.entries(node.properties ?? {})) {
      const key = path === '' ? name : `${path}.${name}`
      keys.add(key)
      walk(one, key, depth + 1)
    }
    if (typeof node.additionalProperties === 'object') walk(node.additionalProperties, `${path}.*`, depth + 1)
    if (node.items) walk(node.items, `${path}[]`, depth + 1)
  }
  walk(schema, '', 0)
  return keys
}

/** A configuration in which the path stands, with `[]` as a list of one. */
function configWith(path: string): unknown {
  const steps = path.match(/[^.[\]]+|\[\]/g)!
  return steps.reduceRight<unknown>(
    (inner, step) => (step === '[]' ? [inner] : { [step === '*' ? 'any' : step]: inner }),
    1,
  )
}

test('issue 50 check --for 0.2 recognises each key that was added since, and reports no older one as new', () => {
  const old = new Set(readFileSync(new URL('test/fixtures/releases/keys-0.2.txt', root), 'utf8').trim().split('\n'))
  const now = keysOf(JSON.parse(readFileSync(new URL('triwire.schema.json', root), 'utf8')))
  assert.ok(now.size > old.size)
  for (const key of now) {
    const found = findNewerKeys('0.2', configWith(key))
    // Prices were a map; a row of a list of prices is new as a whole.
    assert.equal(found.length > 0, !old.has(key), key)
  }
})

test('issue 50 check --for 0.2 recognises newer values: profiles, keys in camelCase, and durations of days', () => {
  const profiles = [
    'anthropic-google-fixed-sampling',
    'anthropic-fixed-sampling',
    'anthropic-always-thinking',
    'zai',
    { extends: 'openai', cacheLife: '1h' },
  ]
  const timeouts = { total: '2d', idle: '24h', progress: '25h', body: 86_400_001, ping: 5_000, connect: `\${CONNECT}` }
  const value = { catalog: { models: profiles.map((profile) => ({ profile })) }, timeouts }
  assert.deepEqual(findNewerKeys('0.2', value), [
    'catalog.models[0].profile: anthropic-google-fixed-sampling',
    'catalog.models[2].profile: anthropic-always-thinking',
    'catalog.models[3].profile: zai',
    'catalog.models[4].profile.cache_life',
    'timeouts.total: 2d',
    'timeouts.progress: 25h',
    'timeouts.body: 86400001',
  ])
})

const catalog = `catalog:
  pinned: "2026-11-27"
  models:
    - { id: m, wire: chat, upstream: u, max_output_tokens: 9, prices: { input: "1", output: "1" } }
upstreams: { u: { base_url: "http://127.0.0.1:9/v1", accounts: [{ name: a, key: k }] } }
`

const foreign = {
  origin: 'litellm',
  accounts: [
    { name: 't', state: 'active', bounds: { requestsPerMinute: 3 }, creditNanos: 0n, reference: 'r' },
  ] as const,
  keys: ['sk-canary-1', 'sk-canary-2'].map((key, at) => ({
    ...{ digest: digestKey(key), prefix: 'sk-...x', label: undefined, account: 't', externalId: `u-${at}` },
    ...{ expiresMs: undefined, ownExpiresMs: undefined, bounds: { labels: ['a=b'] } },
  })),
}

const ignores = [
  '2 keys of another gateway get 401 there',
  '1 accounts with a budget, a rate, levels or a monthly grant are not bounded, warned of or given it there',
  '2 keys with labels: entries of that time name none',
  '2 persons: entries of that time name none, and their budgets do not count',
]

test('issue 50 check --for 0.2 names newer keys and values, data of the store that 0.2 ignores, and form 3', async () => {
  const cwd = testFolder('cli')
  mkdirSync(cwd, { recursive: true })
  const file = join(cwd, 'triwire.yaml')
  writeFileSync(file, `${catalog}store: ./s.db\n`)
  const check = async (...more: string[]) => runWarm(['check', '--for', '0.2', ...more], { cwd })
  const fresh = await check()
  assert.equal(fresh.code, 0, fresh.stderr)
  assert.match(fresh.stdout, /\n\n0\.2 would start with this configuration and store\.\n$/)
  const store = openStore(join(cwd, 's.db'))
  await createBooks(store.asked, Date.now).importForeign(foreign)
  const told = (await check('--json')).json as unknown as { ok: boolean; older: Record<string, unknown> }
  assert.deepEqual([told.ok, told.older], [true, { release: '0.2', refuses: [], ignores }])
  const { id } = store.createAccount('one', 10n ** 12n)
  const details = { person: 'per_1' }
  await store.postDebits([{ ...createDebitRow('req_1', id), details }])
  store.close()
  writeFileSync(
    file,
    `${catalog}store: ./s.db\nlabels: { a: [b] }\nwebhooks: [{ url: "https://h.example", secret: a secret of webhooks, events: [needs_changed] }]\n`,
  )
  const newer = await check()
  assert.equal(newer.code, 1)
  assert.match(
    newer.stdout,
    /0\.2 would not start:\n {2}labels is not known to it: take it away\n {2}webhooks\[0\]\.events\[0\]: needs_changed is not/,
  )
  assert.match(newer.stdout, /s\.db has entries of form 3 or months in archives, which it cannot read/)
  writeFileSync(file, 'store: ./s.db\ncredits: { name: EUR }\n')
  assert.match((await check()).stdout, /would not start:\n {2}credits is not known to it/, 'built-in models')
  const env = { TRIWIRE_CONFIG_YAML: `${catalog}store: ./s.db\nlabels: { a: [b] }\n` }
  const inVariable = await runWarm(['check', '--for', '0.2'], { cwd, env })
  assert.match(inVariable.stdout, /would not start:\n {2}labels is not known to it/)
  assert.equal((await runWarm(['check', '--for', '0.9'], { cwd })).code, 2)
})

test('issue 50 check --for 0.2 reads a database too', { skip: withoutPostgres() }, async () => {
  const cwd = testFolder('cli')
  mkdirSync(cwd, { recursive: true })
  const url = cluster().createDatabase('older')
  const books = await openOperator(url)
  await books.importForeign(foreign)
  const file = `${catalog}store: ${JSON.stringify(url)}\nstate_dir: ./state\nseal_key: ${Buffer.from('a seal key of thirty-two bytes..').toString('base64')}\n`
  writeFileSync(join(cwd, 'triwire.yaml'), file, { mode: 0o600 })
  const { json, stderr } = await runWarm(['check', '--for', '0.2', '--json'], { cwd })
  assert.deepEqual((json as unknown as { older: unknown }).older, { release: '0.2', refuses: [], ignores }, stderr)
})

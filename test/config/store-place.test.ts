import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { inspect } from 'node:util'
import { type ConfigOptions, loadConfig, loadText } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/problem.ts'
import { readStorePlace } from '../../src/config/store-place.ts'
import { testFolder } from '../support/folder.ts'

const folder = testFolder('store-place')
const sealKey = Buffer.alloc(32, 'canary-key').toString('base64')
const url = 'postgres://tri:secret-of-this-test@db.example:5433/books'
const shared = `store: ${url}\nstate_dir: ./state\nseal_key: ${sealKey}\n`

function messagesOf(run: () => unknown): string[] {
  try {
    run()
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError, `${error}`)
    return error.message.split('\n')
  }
}

const load = (options: ConfigOptions, env: NodeJS.ProcessEnv = {}) => loadConfig(options, env, folder)

test('X13 a store may be a URL of PostgreSQL, which is not a path, and is never shown with its password', () => {
  const below = join(folder, 'below')
  mkdirSync(below)
  writeFileSync(join(below, 'a.yaml'), shared)
  const config = load({ config: 'below/a.yaml' })
  assert.equal(config.store.engine === 'postgres' && config.store.url.reveal(), url)
  assert.equal(config.store.shown, 'postgres://tri@db.example:5433/books')
  assert.equal(config.stateDir, join(below, 'state'))
  assert.equal(config.earlierStore, undefined)
  for (const shown of [inspect(config, { depth: 9 }), JSON.stringify(config.store), `${config.store.shown}`])
    assert.doesNotMatch(shown, /secret-of-this-test/)
  // By flag and variable too: neither is resolved, and a folder in a variable is relative to the working folder (X4).
  const env = { TRIWIRE_STORE: url, TRIWIRE_STATE_DIR: 'here', TRIWIRE_SEAL_KEY: sealKey }
  assert.equal(load({}, env).store.shown, config.store.shown)
  assert.equal(load({}, env).stateDir, join(folder, 'here'))
  const other = 'postgresql://other@localhost/books'
  assert.equal(load({ store: other }, env).store.shown, 'postgres://other@localhost/books')
  assert.equal(load({ config: 'below/a.yaml' }, { TRIWIRE_STATE_DIR: 'here' }).stateDir, join(folder, 'here'))
})

test('X13 with SQLite the state folder is that of the store', () => {
  assert.equal(load({ store: 'x/y.db' }).stateDir, join(folder, 'x'))
  const { stateDir, warnings } = load({ store: 'x/y.db' }, { TRIWIRE_STATE_DIR: 'here' })
  assert.equal(stateDir, join(folder, 'x'))
  assert.deepEqual(
    warnings.map(({ message }) => message),
    ['state_dir counts with PostgreSQL only: with SQLite it is the folder of the store'],
  )
})

test('T7 X13 with PostgreSQL a state folder and a seal key are required', () => {
  assert.deepEqual(
    messagesOf(() => load({ store: url })),
    [
      'state_dir is needed with a store in PostgreSQL: a folder of its own for each server, on a disk that stays (or TRIWIRE_STATE_DIR)',
      'seal_key is needed with a store in PostgreSQL, the same for all its servers: 32 bytes in base64, `openssl rand -base64 32` makes one (or TRIWIRE_SEAL_KEY)',
    ],
  )
  // Who only wants to know where the store is needs neither.
  assert.equal(load({ store: url, isWithoutFiles: true }).store.engine, 'postgres')
})

const encoded =
  'must be a URL such as postgres://user:password@host:5432/database; in a user and a password write @ as %40, / as %2F, ? as %3F, # as %23, % as %25'
const noDatabase =
  'must name a database behind the host, and nothing else there, such as postgres://user:password@host:5432/database'
const noParameter =
  'must have no parameters behind its `?` but host, port, sslmode, sslrootcert, sslcert, sslkey, sslnegotiation, uselibpqcompat'

const wrong: readonly [name: string, store: string, message: string][] = [
  [
    'another database',
    'mysql://u:canary@h/d',
    'must be the path of a file, or a URL of PostgreSQL such as postgres://user:password@host:5432/database',
  ],
  [
    'a file URL',
    'file:///canary.db',
    'must be the path of a file, or a URL of PostgreSQL such as postgres://user:password@host:5432/database',
  ],
  ['no database', 'postgres://u:canary@h:5432', noDatabase],
  ['an empty database', 'postgres://u:canary@h:5432/', noDatabase],
  ['two databases', 'postgres://u:canary@h/a/b', noDatabase],
  ['an @ in the password', 'postgres://u:12@canary@h/d', encoded],
  ['a / in the password', 'postgres://u:12/canary@h/d', encoded],
  ['a ? in the password', 'postgres://u:12?canary@h/d', encoded],
  ['a # in the password', 'postgres://u:12#canary@h/d', encoded],
  ['a % in the password', 'postgres://u:100%canary@h/d', encoded],
  ['a blank', 'postgres://u:canary@h /d', encoded],
  ['a port that is none', 'postgres://u:canary@h:99999/d', encoded],
  ['a password as a parameter', 'postgres://u@h/d?password=canary', noParameter],
  ['settings of the session', 'postgres://u@h/d?options=-c%20canary', noParameter],
]

for (const [name, store, message] of wrong) {
  test(`N-F14 X13 a store URL with ${name} is refused without a quote of it`, () => {
    assert.deepEqual(
      messagesOf(() => load({ store })),
      [`--store ${message}`],
    )
    const place = readStorePlace(store, folder)
    if (place.engine === 'postgres') assert.equal(place.shown, 'postgres://…')
  })
}

const shown: readonly [url: string, shown: string][] = [
  ['postgres://u:canary%40x@h/d', 'postgres://u@h/d'],
  ['POSTGRESQL://u:canary@[::1]:5432/d', 'postgres://u@[::1]:5432/d'],
  ['postgres://h/d?sslmode=verify-full&sslkey=/canary.key', 'postgres://h/d?sslmode=verify-full'],
  ['postgres://u:canary@/d?host=/var/run/postgresql', 'postgres://u@/d?host=/var/run/postgresql'],
  ['postgres:///d', 'postgres:///d'],
  ['postgres://u%40corp:canary@h/d', 'postgres://u%40corp@h/d'],
]

test('X13 a store URL is shown with its host, database and user, and without secrets', () => {
  for (const [from, to] of shown) assert.equal(readStorePlace(from, folder).shown, to)
})

test('replicas with the same file derive the same digest from it, whatever settings are their own', () => {
  const text = 'limits: { requests_per_minute: 5, body_bytes_max: 2000 }\nheaders: { balance: true }\n'
  const digestOf = (text: string, options: ConfigOptions = {}) =>
    loadText(text, 'test', { store: 'a.db', ...options }, {}).digest
  const digest = digestOf(text)
  assert.match(digest, /^[\w-]{16}$/)
  const reordered = 'headers: { balance: true }\nlimits: { body_bytes_max: 2000, requests_per_minute: 5 }\n'
  const own = `listen: 127.0.0.1:1\nadmin_listen: 127.0.0.1:2\nlog: { level: error }\nstate_dir: ./b\nseal_key: ${sealKey}\n`
  for (const same of [reordered, text + own]) assert.equal(digestOf(same), digest)
  assert.equal(digestOf(text, { store: 'b.db', listen: '127.0.0.1:9' }), digest)
  assert.notEqual(digestOf(text.replace('5', '6')), digest)
})

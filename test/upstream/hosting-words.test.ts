import assert from 'node:assert/strict'
import test from 'node:test'
import { createCatalog } from '../../src/catalog/model.ts'
import { Secret, type Upstream } from '../../src/config/config.ts'
import { hostingWords } from '../../src/upstream/hosting-words.ts'
import { modelOf, routeOf } from '../native/models.ts'
import { upstreamAt } from '../support/upstream.ts'

/** @param models what each client calls a model, at which upstream, and what that calls it */
function wordsOf(upstream: Partial<Upstream>, models: [id: string, upstream: string, upstreamModel: string][] = []) {
  const entries = models.map(([id, name, upstreamModel]) => {
    const model = modelOf('chat', { id, upstreamModel })
    return { ...model, routes: [routeOf(model, { upstream: name })] }
  })
  const catalog = createCatalog(entries, 0, 'triwire')
  return hostingWords({ catalog }, upstreamAt(upstream.baseUrl ?? 'http://sim', upstream))
}

test('U11 the keys of all accounts of an upstream are hosting words, which are never revealed', () => {
  const accounts = ['canary-one', 'canary-two'].map((key) => ({ name: key, key: new Secret(key), isEnabled: true }))
  assert.deepEqual(wordsOf({ accounts }), ['canary-one', 'canary-two'])
})

test('U11 a configured header is a hosting word, as a whole and from its last space on', () => {
  const headers = new Map([
    ['x-tenant', 'Token of canary-3'],
    ['x-plain', 'canary-4'],
  ])
  assert.deepEqual(wordsOf({ headers }), ['Token of canary-3', 'canary-3', 'canary-4'])
})

const hosts: [baseUrl: string, words: string[]][] = [
  ['https://models.example.test/v1', ['models.example.test']],
  ['http://gpu-box.rack.test:8000', ['gpu-box.rack.test', 'gpu-box']],
  ['http://machine7', ['machine7']],
  ['http://[2001:db8::7]:9', ['2001:db8::7']],
]
test('U11 the host of an upstream is a hosting word, and so is its first label unless that is an ordinary word', () => {
  for (const [baseUrl, words] of hosts) assert.deepEqual(wordsOf({ baseUrl }), words, baseUrl)
})

test('U11 an upstream’s name for a model is a hosting word, unless clients may use it too', () => {
  const words = wordsOf({}, [
    ['small', 'sim', 'vendor/small'],
    ['open-large', 'sim', 'open-large'],
    ['alias', 'sim', 'open-large'],
    ['far', 'other', 'elsewhere-1'],
  ])
  assert.deepEqual(words, ['vendor/small'])
})

test('U11 words of fewer than 6 characters are not hosting words', () => {
  const accounts = ['abcde', 'abcdef'].map((key) => ({ name: key, key: new Secret(key), isEnabled: true }))
  assert.deepEqual(wordsOf({ accounts }), ['abcdef'])
})

test('U11 hosting words are collected once for each configuration, except the keys, which may be renewed', () => {
  let reads = 0
  let known = ['canary-old']
  const model = modelOf('chat', { id: 'small', upstreamModel: 'vendor/small' })
  const route = routeOf(model, { upstream: 'sim' })
  const read = () => {
    reads++
    return [route]
  }
  const entry = Object.defineProperty({ ...model }, 'routes', { get: read })
  const accounts = [{ name: 'a', key: new Secret(''), isEnabled: true }]
  const [one, other] = ['http://host-1.test', 'http://host-2.test'].map((url) => upstreamAt(url, { accounts }))
  const wordsUnder = (catalog: ReturnType<typeof createCatalog>, upstream = one!) =>
    hostingWords({ catalog }, upstream, () => ({ value: known[0], version: 0, known, doubt() {} }))
  const catalog = createCatalog([entry], 0, 'triwire')
  const expected = ['host-1.test', 'host-1', 'vendor/small']
  reads = 0
  assert.deepEqual(wordsUnder(catalog), ['canary-old', ...expected])
  known = ['canary-new', 'canary-old']
  assert.deepEqual(wordsUnder(catalog), ['canary-new', 'canary-old', ...expected])
  assert.equal(reads, 1)
  assert.deepEqual(wordsUnder(catalog, other), [...known, 'host-2.test', 'host-2', 'vendor/small'])
  const next = createCatalog([{ ...model, id: 'vendor/small', routes: [route] }], 0, 'triwire')
  assert.deepEqual(wordsUnder(next), [...known, 'host-1.test', 'host-1'])
})

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { stringify } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { testFolder } from '../support/folder.ts'

const path = join(testFolder('config'), 'triwire.yaml')

/** What is said of a model with this in its entry: the key, and the beginning of the sentence. */
function told(wire: string, prices: object, more: object = {}): string[] {
  const models = ['m', 'n'].map((id) => ({
    id,
    wire,
    upstream: 'up',
    max_output_tokens: 9,
    prices: { input: '1', output: '1', ...prices },
    ...more,
  }))
  const upstreams = { up: { base_url: 'https://up.example', accounts: [{ name: 'a', key: 'k' }] } }
  writeFileSync(path, stringify({ catalog: { pinned: '2026-11-01', models }, upstreams }))
  return loadConfig({ config: path }, {}).warnings.map(({ message }) => message.replace(/:.*$/, ''))
}

const calls = { calls: { web_search: '0' } }
const at = (place: number) => `catalog.models[${place}].prices`
const unmarked = { profile: { extends: 'anthropic', auto_cache: 'off' } }

test('N-F17 C11 a price that the provider charges and the entry lacks is reported: cache writes, also for an hour', () => {
  const [first, second] = [0, 1].map((place) => `${at(place)} has no \`cache_write\``)
  const hour = (place: number) => `${at(place)} has no \`cache_write_1h\``
  assert.deepEqual(told('messages', calls, unmarked), [first, second])
  assert.deepEqual(told('messages', { cache_write: '1', ...calls }, { profile: 'anthropic' }), [hour(0), hour(1)])
  assert.deepEqual(told('messages', { cache_write: '1', cache_write_1h: '2', ...calls }, { profile: 'anthropic' }), [])
  assert.deepEqual(told('messages', { cache_write: '1', ...calls }), [])
})

test('N-F17 money.md 1 a a missing price of a twelve-hour cache is reported if writes have a price', () => {
  const openai = { profile: 'openai-reasoning' }
  const half = (place: number) => `${at(place)} has no \`cache_write_12h\``
  for (const wire of ['chat', 'responses']) {
    assert.deepEqual(told(wire, calls, openai), [])
    assert.deepEqual(told(wire, { cache_write: '1', ...calls }, openai), [half(0), half(1)])
    assert.deepEqual(told(wire, { cache_write: '1', cache_write_12h: '2', ...calls }, openai), [])
  }
})

test('N-F17 T5 cache marks are reported if they are set: not for a wire without marks, whatever the profile says', () => {
  const [marked, ...others] = told('messages', calls)
  assert.equal(marked, `${at(0)} has no \`cache_write\``)
  assert.equal(others.length, 1)
  const ignored = { profile: { auto_cache: 'always' } }
  assert.deepEqual(
    told('chat', calls, ignored).filter((text) => text.includes('cache_write')),
    [],
  )
})

test('N-F17 C11 hosted tools passed on without a price are reported once for all models, unless refused or free of charge', () => {
  const [message, ...others] = told('responses', {})
  assert.deepEqual(others, [])
  assert.match(message!, /^catalog\.models\[0\] lets calls of the provider's own tools .* without a price for m, n$/)
  assert.deepEqual(told('responses', calls), [])
  assert.deepEqual(told('responses', {}, { hosted_tools: 'refuse' }), [])
  assert.deepEqual(told('chat', {}, { profile: 'vllm' }), [])
  assert.deepEqual(told('chat', {}, { profile: { charges: [] } }), [])
})

test('N-F17 C11 prices of a plan that lack what the model has a price for are reported: calls, and cache writes', () => {
  const toldOf = (own: object) => {
    const model = {
      ...{ id: 'm', wire: 'messages', upstream: 'up', max_output_tokens: 9, profile: 'anthropic' },
      prices: { input: '1', output: '1', cache_write: '1', cache_write_1h: '2', ...calls },
    }
    const upstreams = { up: { base_url: 'https://up.example', accounts: [{ name: 'a', key: 'k' }] } }
    const plans = { half: { times: '0.5' }, own: { models: { m: { input: '1', output: '1', ...own } } } }
    writeFileSync(path, stringify({ catalog: { pinned: '2026-11-01', models: [model] }, upstreams, plans }))
    return loadConfig({ config: path }, {}).warnings.map(({ message }) => message.replace(/[,:].*$/, ''))
  }
  const writes = { cache_write: '1', cache_write_1h: '2' }
  const missing = (kind: string) => `plans.own.models.m has no \`${kind}\``
  assert.deepEqual(toldOf({ ...writes, ...calls }), [])
  assert.deepEqual(toldOf(writes), [missing('calls')])
  assert.deepEqual(toldOf(calls), [missing('cache_write')])
})

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import type { Exchange } from '../../src/gateway/exchange.ts'
import { refuse } from '../../src/gateway/refuse.ts'
import { fixedKey } from '../../src/upstream/keyring.ts'
import { createPool } from '../../src/upstream/pool.ts'
import { createPoolMemory } from '../../src/upstream/pool-memory.ts'
import { judge } from '../../src/upstream/verdict.ts'
import { modelOf } from '../native/models.ts'
import { testFolder } from '../support/folder.ts'
import { startRig } from './rig.ts'

/* What a refusal may not tell is known from the configuration: its words are compared as they are (U11). */

const file = `
catalog:
  pinned: 2026-11-01
  models:
    - { id: swift, wire: chat, upstream: own, upstream_model: hawk-large, max_output_tokens: 9, prices: { input: "1", output: "1" } }
    - { id: slow, wire: chat, upstream: own, upstream_model: tortoise-small, max_output_tokens: 9, prices: { input: "1", output: "1" } }
    - { id: other, wire: chat, upstream: far, upstream_model: heron-mini, max_output_tokens: 9, prices: { input: "1", output: "1" } }
    - { id: open-finch, wire: chat, upstream: own, max_output_tokens: 9, prices: { input: "1", output: "1" } }
upstreams:
  own:
    base_url: http://gpu-node-7.rack.corp.example:8000/v1
    accounts: [{ name: a, key: lettersonlykey }]
    headers: { x-team: TEAMSECRET77, x-proxy: Basic PROXYSECRET, x-short: blue }
  far: { base_url: http://bighost, accounts: [{ name: a, key: otherskeyword }] }
`

function configOf() {
  const folder = testFolder('refuse')
  const path = join(folder, 'triwire.yaml')
  writeFileSync(path, file, { mode: 0o600 })
  return loadConfig({ config: path }, {}, folder)
}

const config = configOf()
const pool = createPool(
  config.upstreams,
  createPoolMemory(() => 0),
)
const exchange = { holds: () => false } as unknown as Exchange

/** What a client of a model hears of a 400. */
function say(text: string, id = 'swift'): string {
  const model = config.catalog.models.get(id)!
  const failure = { fault: { kind: 'rejected', status: 400, text }, cause: 'upstream_400' } as const
  const snapshot = { config, pool, upstreams: undefined as never, keyOf: fixedKey }
  const search = { requestId: 'req_1', affinity: undefined, tried: [], isLast: false }
  const target = pool.choose(model, search)?.target
  return refuse({ snapshot, model, exchange }, target, failure, judge(failure, model)).message
}

const generic = 'The model rejected the request.'

test('B22, U11: keys, header values, hosts and models of the upstream are not revealed, as whole words in any case', () => {
  const hidden = [
    'the key lettersonlykey has no access',
    'Key=LETTERSONLYKEY; denied',
    'team TEAMSECRET77 is over its quota',
    'header "teamsecret77" is unknown',
    'Basic PROXYSECRET is wrong',
    'credential PROXYSECRET is wrong',
    'gpu-node-7 ran out of memory',
    'worker gpu-node-7-b is gone',
    'rank 0 at GPU-NODE-7.rack.corp.example',
    'did you mean tortoise-small?',
    'hawk-large-v2 takes no images',
  ]
  assert.deepEqual(
    hidden.filter((text) => say(text) !== generic),
    [],
  )
})

test('B22, U11: words that are shorter, longer, another upstream’s or known to clients are relayed', () => {
  const told = [
    'blue is no colour of ours',
    'TEAMSECRET771 is not a team',
    'mylettersonlykeys are fine',
    'gpu-node-71 and gpu-node are not it',
    'otherskeyword, bighost and heron-mini belong to another upstream',
    'open-finch and swift take no images',
    'Basic is not a word to hide',
    'use /v1/responses, /v1/messages/count_tokens or /v1/chat/completions',
  ]
  assert.deepEqual(
    told.map((text) => say(text)),
    told,
  )
  assert.equal(say('hawk-large takes no images'), 'swift takes no images')
  assert.equal(say('bighost is full', 'other'), generic)
})

test('B22, U3: a stack trace or crash report is not relayed, with or without the folders of its files', () => {
  for (const text of [
    'Traceback (most recent call last): File server.py, line 3, in generate',
    'error in engine_core.py',
    'File "<string>", Traceback follows',
    'libcuda.so is missing',
    'cannot open model-00001-of-00004.safetensors',
    'read `/var/lib/models/x`',
  ])
    assert.equal(say(text), generic, text)
  assert.equal(say('Invalid value at /messages/0/content'), 'Invalid value at /messages/0/content')
})

test('B22, U11: the names of every target that a request went to are replaced', () => {
  const model = modelOf('chat', { id: 'ours', upstreamModel: 'first-name' })
  const { exchange, snapshot, sent } = startRig({ wire: 'chat', model })
  const target = { ...sent[0]!.target, model: { ...model, upstreamModel: 'second-name' } }
  const fault = { kind: 'rejected', status: 400, text: 'second-name is not first-name' } as const
  const failure = { fault, cause: 'upstream_400' }
  const told = refuse({ snapshot, model, exchange }, target, failure, judge(failure, model))
  assert.equal(told.message, 'ours is not ours')
})

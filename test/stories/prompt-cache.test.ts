import assert from 'node:assert/strict'
import test from 'node:test'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { loadConfig } from '../../src/config/load.ts'
import { startTestGateway, testModel } from '../support/gateway.ts'
import { asks, paths } from '../support/native.ts'

/*
 * Y18 (BRK-4): customers of one upstream account share the provider's prompt cache. `implicit_key` and `isolation` keep them
 * apart. The kind: all pairs with a model that has a field for a key, both ways to ask, keys of the client in every place.
 */

const accepts = { accepts: ['prompt_cache_key'] }
const models = (['chat', 'responses'] as const).flatMap((wire) =>
  (['off', 'account', 'conversation'] as const).map((key) =>
    testModel(`${wire}-${key}`, wire, { implicit_key: key, profile: accepts }),
  ),
)

async function start() {
  const gateway = await startTestGateway({ models })
  gateway.store.createAccount('other', 1_000_000_000_000n)
  const { key: otherKey } = gateway.store.createKey('other')
  await gateway.untilKnown(otherKey)
  /** @returns the cache key that the upstream got */
  const sentBy = async (
    key: string,
    wire: (typeof clientWireNames)[number],
    model: string,
    more: Record<string, unknown> = {},
    headers: Record<string, string> = {},
  ) => {
    const { simulator } = gateway
    const before = simulator.requests.length
    const response = await gateway.post(
      paths[wire],
      { ...asks[wire], model, ...more },
      { authorization: `Bearer ${key}`, ...headers },
    )
    assert.equal(response.status, 200, await response.text())
    assert.equal(simulator.requests.length, before + 1)
    return JSON.parse(simulator.requests.at(-1)!.body)['prompt_cache_key'] as unknown
  }
  return { gateway, own: gateway.key, other: otherKey, sentBy }
}

const digest = /^[0-9a-f]{63}$/

test('Y18 implicit_key sends an HMAC per account if the client sent no key, on every pair with a field for it', async () => {
  const { own, other, sentBy } = await start()
  for (const client of clientWireNames)
    for (const wire of ['chat', 'responses']) {
      const pair = `${client} to ${wire}`
      assert.equal(await sentBy(own, client, `${wire}-off`), undefined, pair)
      const unasked = await sentBy(own, client, `${wire}-off`, {}, { 'x-session-id': 'mine' })
      if (client === wire) assert.equal(unasked, undefined, `${pair}: a session does not replace the setting`)
      const key = await sentBy(own, client, `${wire}-account`)
      assert.match(String(key), digest, pair)
      assert.equal(await sentBy(own, client, `${wire}-account`, { stream: true }), key, pair)
      assert.match(String(await sentBy(other, client, `${wire}-account`)), digest, pair)
      assert.notEqual(await sentBy(other, client, `${wire}-account`), key, pair)
      const talk = await sentBy(own, client, `${wire}-conversation`)
      assert.match(String(talk), digest, pair)
      assert.notEqual(talk, key, pair)
      assert.notEqual(await sentBy(other, client, `${wire}-conversation`), talk, pair)
      const named = await sentBy(own, client, `${wire}-account`, {}, { 'x-session-id': 'mine' })
      assert.match(String(named), digest, pair)
      assert.notEqual(named, key, pair)
    }
})

test('Y18 a key of the client takes precedence; an empty one or null counts as absent', async () => {
  const { own, sentBy } = await start()
  for (const client of ['chat', 'responses'] as const)
    for (const wire of ['chat', 'responses']) {
      const implicit = await sentBy(own, client, `${wire}-account`)
      const plain = await sentBy(own, client, `${wire}-off`, { prompt_cache_key: 'mine' })
      assert.match(String(plain), digest)
      assert.equal(await sentBy(own, client, `${wire}-account`, { prompt_cache_key: 'mine' }), plain)
      assert.equal(await sentBy(own, client, `${wire}-account`, { prompt_cache_key: '' }), implicit)
      assert.equal(await sentBy(own, client, `${wire}-account`, { prompt_cache_key: null }), implicit)
    }
})

test('Y18 the key of a conversation depends on its opening alone, not on later turns or the places of cache marks', async () => {
  const { own, sentBy } = await start()
  const user = (content: unknown) => ({ role: 'user', content })
  const said = { role: 'assistant', content: 'Hello' }
  const mark = { cache_control: { type: 'ephemeral' } }
  const [hi, hiText] = [user('Hi'), user([{ type: 'text', text: 'Hi' }])]
  const turns = {
    messages: [
      { system: 'Be brief', messages: [hi] },
      { system: [{ type: 'text', text: 'Be brief', ...mark }], messages: [hiText, said, user('More')] },
    ],
    chat: [
      { messages: [{ role: 'system', content: 'Be brief' }, hi] },
      {
        messages: [
          { role: 'system', content: [{ type: 'text', text: 'Be brief', ...mark }] },
          hiText,
          said,
          user('More'),
        ],
      },
    ],
    responses: [
      { instructions: 'Be brief', input: 'Hi' },
      { instructions: 'Be brief', input: [user([{ type: 'input_text', text: 'Hi' }]), said, user('More')] },
    ],
  }
  for (const client of clientWireNames)
    for (const wire of ['chat', 'responses']) {
      const keys = new Set<unknown>()
      for (const turn of turns[client]) keys.add(await sentBy(own, client, `${wire}-conversation`, turn))
      assert.equal(keys.size, 1, `${client} to ${wire}`)
      const list = client === 'responses' ? 'input' : 'messages'
      keys.add(await sentBy(own, client, `${wire}-conversation`, { ...turns[client][0], [list]: [user('Another')] }))
      assert.equal(keys.size, 2)
    }
})

test('Y18 upstream accounts with an isolation serve only the customers it names, and these use no other accounts', async () => {
  const accounts = [
    { name: 'shared', key: 'upstream-key-shared' },
    { name: 'reserved', key: 'upstream-key-reserved', isolation: ['tester'] },
    { name: 'nobody', key: 'upstream-key-nobody', isolation: ['somebody', 'else'] },
  ]
  const gateway = await startTestGateway({
    cools: true,
    upstream: (url) => ({
      upstreams: { sim: { base_url: url, accounts }, full: { base_url: url, accounts: accounts.slice(1) } },
    }),
    models: [testModel('m', 'chat'), testModel('full', 'chat', { upstream: 'full' })],
  })
  gateway.store.createAccount('other', 1_000_000_000_000n)
  const { key } = gateway.store.createKey('other')
  await gateway.untilKnown(key)
  const ask = async (bearer: string, model: string, headers: Record<string, string> = {}) => {
    const before = gateway.simulator.requests.length
    const body = { ...asks.chat, model }
    const { status } = await gateway.post(paths.chat, body, { authorization: `Bearer ${bearer}`, ...headers })
    const used = gateway.simulator.requests
      .slice(before)
      .map((request) => request.headers.authorization?.split('-').at(-1))
    return `${status} ${used}`
  }
  for (let i = 0; i < 12; i++) {
    const headers = i % 2 ? { 'x-session-id': `talk ${i}` } : undefined
    assert.equal(await ask(gateway.key, 'm', headers), '200 reserved')
    assert.equal(await ask(key, 'm', headers), '200 shared')
  }
  assert.equal(await ask(gateway.key, 'full'), '200 reserved')
  assert.equal(await ask(key, 'full'), '503 ', 'no account is left for another customer')
  const id = gateway.store.listAccounts().find(({ name }) => name === 'other')!.id
  gateway.reload({
    upstreams: {
      sim: { base_url: gateway.simulator.url, accounts: [accounts[0], { ...accounts[1], isolation: [id] }] },
      full: { base_url: gateway.simulator.url, accounts: accounts.slice(1) },
    },
  })
  assert.equal(await ask(key, 'm'), '200 reserved', 'by its id')
  assert.equal(await ask(gateway.key, 'm'), '200 shared')
})

const mistakes: { config: Record<string, unknown>; says: RegExp }[] = [
  {
    config: { models: [testModel('m', 'messages', { implicit_key: 'account' })] },
    says: /catalog\.models\[0\]\.implicit_key.*messages wire has no field.*leave it out/s,
  },
  {
    config: { models: [testModel('m', 'chat', { implicit_key: 'conversation' })] },
    says: /catalog\.models\[0\]\.implicit_key.*prompt_cache_key.*accepts/s,
  },
  {
    config: {
      models: [
        testModel('m', 'chat', {
          implicit_key: 'account',
          profile: accepts,
          upstream: ['sim', { name: 'two', profile: 'vllm' }],
        }),
      ],
    },
    says: /catalog\.models\[0\]\.implicit_key.*upstream two.*prompt_cache_key/s,
  },
  {
    config: { models: [testModel('m', 'chat', { implicit_key: 'yes' })] },
    says: /catalog\.models\[0\]\.implicit_key.*off.*account.*conversation/s,
  },
  { config: { isolation: [] }, says: /accounts\[0\]\.isolation.*leave it out/s },
  { config: { isolation: ['a', 'a'] }, says: /accounts\[0\]\.isolation\[1\].*name it once/s },
  { config: { isolation: 'a' }, says: /accounts\[0\]\.isolation.*list/s },
  { config: { isolation: [''] }, says: /accounts\[0\]\.isolation\[0\].*name or the id/s },
]
for (const { config, says } of mistakes)
  test(`Y18 an invalid setting is an error that names the field and the cure: ${JSON.stringify(config).slice(0, 60)}`, () => {
    const { models: own = [testModel('m', 'chat')], ...account } = config
    const text = JSON.stringify({
      catalog: { pinned: '2026-11-01', models: own },
      upstreams: {
        sim: { base_url: 'http://127.0.0.1:1', accounts: [{ name: 'a', key: 'upstream-key-1', ...account }] },
        two: { base_url: 'http://127.0.0.1:1', accounts: [{ name: 'a', key: 'upstream-key-1' }] },
      },
    })
    assert.throws(() => loadConfig({}, { TRIWIRE_CONFIG_YAML: text }, '/'), says)
  })

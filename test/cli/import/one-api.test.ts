import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { parse } from 'yaml'
import { modelListOf, type OneApiDialect, planOneApiKeys } from '../../../src/cli/import/one-api-config.ts'
import { testFolder } from '../../support/folder.ts'
import { startTestGateway, testModel } from '../../support/gateway.ts'
import { until } from '../../support/waiting.ts'
import { runWarm } from '../run.ts'
import type { Entry } from './litellm-rows.ts'

/** The tables with those columns of model/*.go that are read, and some that are not (one-api and new-api, November 2026). */
const schemas: Record<OneApiDialect, string> = {
  'one-api': `
    CREATE TABLE channels (id integer PRIMARY KEY, type integer DEFAULT 0, key text, status integer DEFAULT 1, name text, weight integer DEFAULT 0,
      created_time bigint, base_url text DEFAULT '', other text, models text, "group" varchar(32) DEFAULT 'default', model_mapping varchar(1024) DEFAULT '',
      priority bigint DEFAULT 0, config text, system_prompt text);
    CREATE TABLE tokens (id integer PRIMARY KEY, user_id integer, key char(48), status integer DEFAULT 1, name text, expired_time bigint DEFAULT -1,
      remain_quota bigint DEFAULT 0, unlimited_quota numeric DEFAULT false, used_quota bigint DEFAULT 0, models text DEFAULT '', subnet text DEFAULT '');`,
  'new-api': `
    CREATE TABLE channels (id integer PRIMARY KEY, type integer DEFAULT 0, key text NOT NULL, open_ai_organization text, status integer DEFAULT 1, name text,
      weight integer DEFAULT 0, base_url text DEFAULT '', other text, models text, "group" varchar(64) DEFAULT 'default', model_mapping text,
      priority bigint DEFAULT 0, status_code_mapping varchar(1024) DEFAULT '', tag text, setting text, param_override text, header_override text, channel_info json);
    CREATE TABLE tokens (id integer PRIMARY KEY, user_id integer, key varchar(128), status integer DEFAULT 1, name text, expired_time bigint DEFAULT -1,
      remain_quota integer DEFAULT 0, unlimited_quota numeric, model_limits_enabled numeric, model_limits text, allow_ips text DEFAULT '',
      used_quota integer DEFAULT 0, "group" text DEFAULT '', deleted_at datetime);`,
}
const shared = `
  CREATE TABLE users (id integer PRIMARY KEY, username text, password text, status integer DEFAULT 1, quota bigint DEFAULT 0, "group" varchar(32) DEFAULT 'default');
  CREATE TABLE options (key text PRIMARY KEY, value text);`

function makeFile(dialect: OneApiDialect, rows: Record<string, Entry[]>): string {
  const cwd = testFolder('one-api')
  mkdirSync(cwd, { recursive: true })
  const db = new DatabaseSync(join(cwd, 'one-api.db'))
  db.exec(schemas[dialect] + shared)
  for (const [table, list] of Object.entries(rows))
    for (const row of list) {
      const names = Object.keys(row)
      const places = names.map(() => '?').join(', ')
      db.prepare(`INSERT INTO ${table} (${names.map((name) => `"${name}"`).join(', ')}) VALUES (${places})`).run(
        ...(Object.values(row) as string[]),
      )
    }
  db.close()
  return cwd
}

const options = [
  { key: 'ModelRatio', value: '{"gpt-x": 1.5, "claude-x": 1.5}' },
  { key: 'CompletionRatio', value: '{"gpt-x": 4, "claude-x": 5}' },
  { key: 'GroupRatio', value: '{"default": 1, "vip": 0.8}' },
]
const users = [
  { id: 1, username: 'root', password: 'hash', quota: 25_000_000 },
  { id: 2, username: 'ada', quota: 500_000, group: 'vip' },
  { id: 3, username: 'off', quota: 500_000, status: 2 },
]
const secretOf = (n: number) => `canary${n}`.padEnd(48, 'x')

const dialects: Record<OneApiDialect, { channels: Entry[]; tokens: Entry[] }> = {
  'one-api': {
    channels: [
      {
        id: 1,
        type: 1,
        key: 'k-openai',
        name: 'main',
        models: 'gpt-x,gpt-y',
        base_url: 'https://a.example',
        model_mapping: '{"gpt-x": "gpt-x-2026"}',
      },
      {
        id: 2,
        type: 1,
        key: 'k-spare',
        name: 'spare',
        models: 'gpt-x',
        base_url: 'https://b.example/v1',
        priority: -1,
        weight: 3,
      },
      {
        id: 3,
        type: 14,
        key: 'k-claude',
        name: 'claude',
        models: 'claude-x',
        group: 'default,vip',
        system_prompt: 'Be brief',
      },
      { id: 4, type: 36, key: 'k-ds', name: 'ds', models: 'deepseek-flash' },
      { id: 5, type: 18, key: 'a|b|c', name: 'spark', models: 'SparkDesk' },
      { id: 6, type: 1, key: 'k', name: 'off', status: 2, models: 'gpt-z' },
    ],
    tokens: [
      { id: 1, user_id: 1, key: secretOf(1), name: 'all', unlimited_quota: 1 },
      {
        id: 2,
        user_id: 2,
        key: secretOf(2),
        name: 'few',
        remain_quota: 250_000,
        models: 'claude-x',
        subnet: '10.0.0.0/8',
      },
      { id: 3, user_id: 1, key: secretOf(3), name: 'old', expired_time: 1_700_000_000 },
      { id: 4, user_id: 1, key: secretOf(4), name: 'off', status: 2 },
      { id: 5, user_id: 3, key: secretOf(5), name: 'of off', unlimited_quota: 1 },
      { id: 6, user_id: 9, key: secretOf(6), name: 'orphan', unlimited_quota: 1 },
      { id: 7, user_id: 1, key: secretOf(7), name: 'later', unlimited_quota: 1, expired_time: 4_000_000_000 },
    ],
  },
  'new-api': {
    channels: [
      {
        id: 1,
        type: 1,
        key: 'k-one\nk-two',
        name: 'main',
        models: 'gpt-x,gpt-y',
        base_url: 'https://a.example',
        model_mapping: '{"gpt-x": "gpt-x-2026"}',
        header_override: '{"x-a": "b"}',
      },
      {
        id: 2,
        type: 1,
        key: 'k-spare',
        name: 'spare',
        models: 'gpt-x',
        base_url: 'https://b.example/v1',
        priority: -1,
        weight: 3,
        param_override: '{"temperature": 0}',
      },
      { id: 3, type: 14, key: 'k-claude', name: 'claude', models: 'claude-x', group: 'default,vip' },
      { id: 4, type: 43, key: 'k-ds', name: 'ds', models: 'deepseek-flash' },
      { id: 5, type: 50, key: 'k', name: 'kling', models: 'kling-v1' },
    ],
    tokens: [
      { id: 1, user_id: 1, key: secretOf(1), name: 'all', unlimited_quota: 1 },
      {
        id: 2,
        user_id: 2,
        key: secretOf(2),
        name: 'few',
        remain_quota: 250_000,
        model_limits_enabled: 1,
        model_limits: 'claude-x',
        allow_ips: '10.0.0.1',
      },
      { id: 3, user_id: 1, key: secretOf(3), name: 'gone', unlimited_quota: 1, deleted_at: '2026-01-01' },
      { id: 5, user_id: 3, key: secretOf(5), name: 'of off', unlimited_quota: 1 },
      { id: 7, user_id: 1, key: secretOf(7), name: 'later', unlimited_quota: 1, expired_time: 4_000_000_000 },
    ],
  },
}

for (const [name, rows] of Object.entries(dialects)) {
  const dialect = name as OneApiDialect
  test(`issue 50 import ${dialect} makes models of channels, accounts of users and keys of tokens, which work unchanged`, async () => {
    const gateway = await startTestGateway({
      pollMs: 10,
      models: [testModel('gpt-x', 'chat'), testModel('claude-x', 'messages')],
    })
    const cwd = makeFile(dialect, { ...rows, users, options })
    const words = [
      'import',
      dialect,
      'one-api.db',
      '--output',
      'triwire.yaml',
      '--unpriced-free',
      '--store',
      gateway.storePath,
    ]
    const dry = await runWarm([...words, '--dry-run'], { cwd })
    assert.match(dry.stdout, /Nothing was written: --dry-run/)
    const run = await runWarm(words, { cwd })
    assert.equal(run.code, 0, run.stderr)
    assert.doesNotMatch(run.stdout + run.stderr, /canary|k-openai|k-spare|k-claude/)
    assert.equal(statSync(join(cwd, 'triwire.yaml')).mode & 0o777, 0o600)
    const { catalog, upstreams } = parse(readFileSync(join(cwd, 'triwire.yaml'), 'utf8'))
    const modelOf = (id: string) => catalog.models.find((model: Entry) => model['id'] === id)
    assert.deepEqual(catalog.models.map(({ id }: Entry) => id).sort(), ['claude-x', 'deepseek-flash', 'gpt-x', 'gpt-y'])
    const writes = dialect === 'new-api' && { cache_write: '3.75' }
    assert.deepEqual(modelOf('gpt-x').prices, { input: '3', output: '12', ...writes })
    assert.deepEqual(
      modelOf('gpt-x').upstream.map(({ name, upstream_model: model, priority = 1 }: Entry) => [
        upstreams[name as string].base_url,
        model,
        priority,
      ]),
      [
        ['https://a.example/v1', 'gpt-x-2026', 1],
        ['https://b.example/v1', 'gpt-x', 2],
      ],
    )
    assert.equal(modelOf('claude-x').wire, 'messages')
    if (dialect === 'new-api') assert.equal(upstreams[modelOf('gpt-x').upstream[0].name].accounts.length, 2)
    assert.match(
      run.stdout,
      dialect === 'one-api' ? /channel spark \(5\): channels of type 18/ : /channel kling \(5\): channels of type 50/,
    )
    assert.match(run.stdout, /user ada: their group vip pays 0\.8 times the price/)
    assert.match(run.stdout, /its addresses: a key is not bound to addresses/)
    const account = gateway.store.findAccount('ada')
    assert.equal(account.balanceNanos, 1_000_000_000n)
    assert.equal(gateway.store.findAccount('off').state, 'suspended')
    const few = gateway.store.listKeys('ada')[0]!
    assert.deepEqual([few.bounds.budget?.nanos, few.bounds.models, few.origin], [500_000_000n, ['claude-x'], dialect])
    await until(() => gateway.ledger.directory.hasForeignKeys === true)
    const ask = async (n: number, model: string) => {
      const response = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer sk-${secretOf(n)}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }], max_completion_tokens: 9 }),
      })
      await response.text()
      return response.status
    }
    assert.deepEqual([await ask(1, 'gpt-x'), await ask(7, 'gpt-x'), await ask(2, 'claude-x')], [200, 200, 200])
    // The token may not use the model, its user is off, or it is over.
    assert.deepEqual(
      [await ask(2, 'gpt-x'), await ask(5, 'gpt-x'), await ask(3, 'gpt-x')].map((status) => status >= 400),
      [true, true, true],
    )
    const again = await runWarm([...words, '--force'], { cwd })
    assert.match(again.stdout, /Brought in: 0 keys, 0 accounts, 0 people, 0 credits/)
  })
}

test('issue 50 import one-api accepts JSON of the tables, and refuses other input', async () => {
  const cwd = testFolder('one-api')
  mkdirSync(cwd, { recursive: true })
  const write = (name: string, text: string) => writeFileSync(join(cwd, name), text)
  write('t.json', JSON.stringify({ ...dialects['one-api'], users, options }))
  write('no.json', '{}')
  write('no.txt', 'x')
  const ask = (file: string) => runWarm(['import', 'one-api', file, '--output', 'o.yaml', '--dry-run'], { cwd })
  assert.match((await ask('t.json')).stdout, /4 keys of 3 accounts would be brought into \S+triwire\.db/)
  assert.match((await ask('no.json')).stderr, /no\.json has no channel/)
  assert.match((await ask('no.txt')).stderr, /no\.txt is neither a SQLite file nor JSON/)
  assert.match((await ask('gone.db')).stderr, /gone\.db.*ENOENT/)
})

test('issue 50 import one-api reads a SQLite file whose logs make it larger than the longest text', async () => {
  const cwd = makeFile('one-api', { channels: [{ id: 1, type: 36, key: 'k', name: 'ds', models: 'deepseek-flash' }] })
  // The rest is a hole, which takes no space.
  truncateSync(join(cwd, 'one-api.db'), 2 ** 30)
  const { code, stderr } = await runWarm(['import', 'one-api', 'one-api.db', '--output', 'o.yaml'], { cwd })
  // The runner reads all files that tests leave.
  rmSync(join(cwd, 'one-api.db'))
  assert.equal(code, 0, stderr)
})

test('issue 50 import one-api lists each model whose price is not of the tables, in words of one-api', async () => {
  const cwd = testFolder('one-api')
  mkdirSync(cwd, { recursive: true })
  const tables = {
    channels: [
      { id: 1, type: 36, key: 'k', name: 'ds', models: 'deepseek-flash,both,half' },
      { id: 2, type: 8, key: 'k', name: 'own', base_url: 'http://10.0.0.7:8000', models: 'qwen' },
    ],
    options: [
      { key: 'ModelRatio', value: '{"deepseek-flash": 5, "both": 1, "half": 1}' },
      { key: 'CompletionRatio', value: '{"both": 2}' },
    ],
  }
  writeFileSync(join(cwd, 't.json'), JSON.stringify(tables))
  const words = ['import', 'one-api', 't.json', '--output', 'o.yaml', '--dry-run']
  const { stdout } = await runWarm(words, { cwd })
  assert.match(
    stdout,
    /\n {2}deepseek-flash: the options lack its ModelRatio or CompletionRatio, so its price is that of/,
  )
  assert.match(stdout, /\n {2}channel ds \(1\), model half: no price is known: set both ModelRatio and CompletionRatio/)
  assert.match(stdout, /\n {2}qwen: it is on a server of your own; it costs nothing\./)
  assert.doesNotMatch(stdout, /both: the options|half: no price is known; it costs nothing|model_info|LiteLLM/)
  assert.match(
    (await runWarm([...words, '--unpriced-free'], { cwd })).stdout,
    /half: no price is known; it costs nothing/,
  )
})

/** Imports these channels of new-api, all of which have the model `gpt-x`. */
async function importChannels(...channels: Entry[]) {
  const rows = channels.map((channel, at) => ({ id: at + 1, name: `c${at + 1}`, models: 'gpt-x', ...channel }))
  const cwd = makeFile('new-api', { channels: rows, options })
  const run = await runWarm(['import', 'new-api', 'one-api.db', '--output', 'o.yaml'], { cwd })
  assert.equal(run.code, 0, run.stderr)
  const { catalog, upstreams } = parse(readFileSync(join(cwd, 'o.yaml'), 'utf8'))
  return { models: catalog.models as Entry[], upstreams, report: run.stdout }
}

test('issue 50 import new-api shares the weight of a channel among its keys, without keys that are switched off', async () => {
  const info = Buffer.from(JSON.stringify({ is_multi_key: true, multi_key_status_list: { 1: 2 } }))
  const { models, upstreams, report } = await importChannels(
    { type: 1, key: 'k1\nk2\nk3\nk6', base_url: 'https://a.example', weight: 2, channel_info: info },
    { type: 1, key: 'k4', base_url: 'https://b.example', weight: 1 },
    { type: 1, key: 'k5', base_url: 'https://c.example' },
  )
  assert.deepEqual(
    (models[0]!['upstream'] as Entry[]).map(({ name, weight = 1 }) => [upstreams[name as string].accounts, weight]),
    [
      [
        [
          { name: 'key-1', key: 'k1' },
          { name: 'key-2', key: 'k3' },
          { name: 'key-3', key: 'k6' },
        ],
        2,
      ],
      [[{ name: 'main', key: 'k4' }], 1],
      [[{ name: 'main', key: 'k5' }], 1],
    ],
  )
  assert.match(report, /channel c1 \(1\), 1 of its keys: they are switched off/)
})

test('issue 50 import new-api lists weights of channels that become accounts of one upstream', async () => {
  const { report } = await importChannels({ type: 1, key: 'k1', weight: 5 }, { type: 1, key: 'k2' })
  assert.match(report, /channel c1 \(1\), its weight: the keys of one upstream get equal shares/)
  assert.doesNotMatch(report, /c2 \(2\), its weight/)
})

test('issue 50 import new-api makes a chain of channels with different wires by their priority', async () => {
  const { models } = await importChannels(
    { type: 14, key: 'k1' },
    { type: 1, key: 'k2', base_url: 'https://b.example', priority: 5 },
  )
  assert.deepEqual(
    models.map(({ id, wire, chain }) => [id, wire ?? chain]),
    [
      ['gpt-x-only', 'chat'],
      ['gpt-x-messages', 'messages'],
      ['gpt-x', ['gpt-x-only', 'gpt-x-messages']],
    ],
  )
})

/** Returns the parameters of each model of one channel, and what is reported about the channel. */
function listOf(dialect: OneApiDialect, channel: Entry, ratios: Record<string, Entry> = {}) {
  const values = Object.entries(ratios).map(([key, value]) => ({ key, value: JSON.stringify(value) }))
  const channels = [{ id: 1, type: 1, key: 'k', name: 'c', models: 'a', ...channel }]
  const { source, settings } = modelListOf({ channels, options: values, users: [], tokens: [] }, dialect)
  const list = source.model_list as { litellm_params: Entry }[]
  return {
    params: list.map((one) => one.litellm_params),
    left: settings.map(({ setting, why }) => `${setting}: ${why}`),
  }
}

test('issue 50 import new-api follows a model_mapping to its end, and import one-api takes one step of it', () => {
  const channel = { models: 'a,b,x,self', model_mapping: '{"a": "b", "b": "c", "c": "c", "x": "y", "y": "x"}' }
  const modelsOf = (dialect: OneApiDialect) => listOf(dialect, channel).params.map(({ model }) => model)
  assert.deepEqual(modelsOf('new-api'), ['openai/c', 'openai/c', 'openai/self'])
  assert.deepEqual(listOf('new-api', channel).left, ['channel c (1), model x: its model_mapping goes in a circle'])
  assert.deepEqual(modelsOf('one-api'), ['openai/b', 'openai/c', 'openai/y', 'openai/self'])
})

test('issue 50 import one-api takes the ratios of the mapped name, and import new-api those of the name of clients', () => {
  const ratios = {
    ModelRatio: { a: 1, real: 2, 'real(1)': 3 },
    CompletionRatio: { a: 4, real: 5 },
    CacheRatio: { a: 0.5 },
    CreateCacheRatio: { a: 1.25 },
  }
  const pricesOf = (dialect: OneApiDialect, type: number, mapped: string) => {
    const channel = { type, model_mapping: JSON.stringify({ a: mapped }) }
    const [params] = listOf(dialect, channel, ratios).params
    return Object.fromEntries(Object.entries(params!).filter(([name]) => name.includes('_cost')))
  }
  assert.deepEqual(pricesOf('one-api', 1, 'real'), { input_cost_per_token: 6e-6, output_cost_per_token: 3e-5 })
  assert.deepEqual(pricesOf('one-api', 8, 'real'), { input_cost_per_token: 4e-6, output_cost_per_token: 2e-5 })
  const own = {
    ...{ input_cost_per_token: 2e-6, output_cost_per_token: 8e-6, cache_read_input_token_cost: 1e-6 },
    cache_creation_input_token_cost: 2.5e-6,
  }
  assert.deepEqual(pricesOf('one-api', 1, 'unknown'), own)
  assert.deepEqual(pricesOf('new-api', 1, 'real'), own)
  assert.deepEqual(pricesOf('new-api', 14, 'real'), { ...own, cache_creation_input_token_cost_above_1hr: 4e-6 })
})

test('issue 50 import one-api and new-api convert quota and prices by the same QuotaPerUnit', () => {
  for (const dialect of ['one-api', 'new-api'] as const) {
    const options = { ModelRatio: { a: 1 }, CompletionRatio: { a: 4 }, QuotaPerUnit: 1_000_000 as unknown as Entry }
    const [params] = listOf(dialect, {}, options).params
    assert.deepEqual([params!['input_cost_per_token'], params!['output_cost_per_token']], [1e-6, 4e-6])
    const users = [{ id: 1, username: 'u', quota: 1_000_000 }]
    const tokens = [{ id: 1, user_id: 1, key: 'k' }]
    const rows = { channels: [], users, tokens, options: [{ key: 'QuotaPerUnit', value: '1000000' }] }
    const { foreign } = planOneApiKeys(rows, { dialect, nowMs: 0 })
    // The quota pays for a million tokens of the ratio 1, before and after the import.
    assert.equal(foreign.accounts[0]!.creditNanos, 1_000_000_000n)
  }
})

test('issue 50 import new-api takes the usual ratio of cache writes, and lists reads whose ratio the options lack', () => {
  const ratios = { ModelRatio: { a: 1 }, CompletionRatio: { a: 4 } }
  const readOf = (dialect: OneApiDialect, more: Record<string, Entry>) => {
    const { params, left } = listOf(dialect, { type: 14 }, { ...ratios, ...more })
    const writes = ['', '_above_1hr'].map((end) => params[0]![`cache_creation_input_token_cost${end}`])
    return [writes, left.map((line) => line.split(': ')[0])]
  }
  assert.deepEqual(readOf('new-api', {}), [[2.5e-6, 4e-6], ['model a, its price of cache reads']])
  assert.deepEqual(readOf('new-api', { CacheRatio: {}, CreateCacheRatio: { a: 2 } }), [[4e-6, 6.4e-6], []])
  assert.deepEqual(readOf('one-api', {}), [[undefined, undefined], []])
})

test('issue 50 import new-api and one-api find the addresses to which each of them sends requests', () => {
  const at = (dialect: OneApiDialect, channel: Entry) => {
    const { params, left } = listOf(dialect, channel)
    return params[0]?.['api_base'] ?? left
  }
  const custom = { type: 8, base_url: 'https://a.example/api/{model}/chat/completions', models: 'm' }
  assert.equal(at('new-api', custom), 'https://a.example/api/m')
  assert.equal(at('one-api', { type: 8, base_url: 'https://a.example/' }), 'https://a.example/v1')
  assert.equal(at('new-api', { type: 25, base_url: 'kimi-coding-plan' }), 'https://api.kimi.com/coding/v1')
  for (const dialect of ['new-api', 'one-api'] as const) {
    assert.equal(at(dialect, { type: 25 }), 'https://api.moonshot.cn/v1')
    assert.equal(at(dialect, { type: 17, base_url: null }), 'https://dashscope.aliyuncs.com/compatible-mode/v1')
  }
  assert.equal(at('one-api', { type: 36, base_url: 'https://a.example' }), 'https://a.example/v1')
  const cloudflare = 'https://gateway.ai.cloudflare.com/v1/account/gateway/openai'
  for (const dialect of ['new-api', 'one-api'] as const) assert.equal(at(dialect, { base_url: cloudflare }), cloudflare)
  for (const [type, url] of [
    [8, 'https://a.example/v1/images/generations'],
    [1, 'some-plan'],
    [3, 'https://gateway.ai.cloudflare.com/v1/account/gateway/azure-openai/resource'],
  ])
    assert.deepEqual(at('new-api', { type, base_url: url }), [
      'channel c (1): its address has no place here: add the model by hand',
    ])
})

test('issue 50 import one-api and old channels of new-api name deployments of Azure without dots', () => {
  const nameOf = (dialect: OneApiDialect, channel: Entry) =>
    listOf(dialect, { type: 3, base_url: 'https://r.openai.azure.com', models: 'gpt-4.1', ...channel }).params[0]![
      'model'
    ]
  assert.equal(nameOf('one-api', { created_time: 1_800_000_000 }), 'azure/gpt-41')
  assert.equal(nameOf('new-api', { created_time: 1_746_835_199 }), 'azure/gpt-41')
  assert.equal(nameOf('new-api', { created_time: 1_746_835_200 }), 'azure/gpt-4.1')
  assert.equal(nameOf('one-api', { type: 1 }), 'openai/gpt-4.1')
})

test('issue 50 import new-api carries the organization and plain headers, and lists rules for headers and settings', () => {
  const channel = {
    open_ai_organization: 'org-1',
    header_override:
      '{"x-a": "b", "Authorization": "Bearer {api_key}", "*": "", "x-b": "{client_header:x-b}", "host": "h"}',
    setting: '{"proxy": "socks5://u:p@127.0.0.1:1080", "force_format": false, "system_prompt": ""}',
    settings: '{"allow_speed": true, "upstream_model_update_last_check_time": 5}',
  }
  const prices = { ModelPrice: { a: 0.1, other: 1 }, 'billing_setting.billing_mode': { a: 'ratio' } }
  const { params, left } = listOf('new-api', channel, prices)
  assert.deepEqual([params[0]!['organization'], params[0]!['extra_headers']], ['org-1', { 'x-a': 'b' }])
  assert.deepEqual(
    left.map((line) => line.replace(/^channel c \(1\)\./, '').split(': ')[0]),
    [
      'proxy',
      'allow_speed',
      ...['Authorization', '*', 'x-b', 'host'].map((name) => `header_override.${name}`),
      'model a, its price per call',
    ],
  )
  assert.doesNotMatch(left.join(), /u:p@/)
  const { api_version: version } = listOf('one-api', { type: 3, other: '1', config: '{"api_version":"2"}' }).params[0]!
  assert.equal(version, '2')
})

test('issue 50 a token without models of its own may use those of the group of its user', () => {
  const channels = [
    { id: 1, type: 1, models: 'a,b', group: 'default' },
    { id: 2, type: 1, models: 'c', group: 'vip' },
    // The group of a channel that is switched off cannot use its models, even if another channel has them.
    { id: 3, type: 1, models: 'a,b', group: 'vip', status: 2 },
  ]
  const tables = {
    ...{ channels, options: [], users: [{ id: 1, username: 'u', group: 'vip', quota: 1 }] },
    tokens: [
      { id: 1, user_id: 1, key: 'k', unlimited_quota: 1 },
      { id: 2, user_id: 1, key: 'l', unlimited_quota: 1, models: 'a,c' },
    ],
  }
  const { foreign } = planOneApiKeys(tables, { dialect: 'one-api', nowMs: 0 })
  assert.deepEqual(
    foreign.keys.map(({ bounds }) => bounds.models),
    [['c'], ['c']],
  )
})

const oneToken = (
  token: Entry,
  { user = {}, more = [], dialect = 'new-api' }: { user?: Entry; more?: Entry[]; dialect?: OneApiDialect } = {},
) =>
  planOneApiKeys(
    {
      channels: [
        { id: 1, type: 1, models: 'a,b', group: 'default' },
        { id: 2, type: 1, models: 'c', group: 'vip' },
      ],
      options: [],
      users: [{ id: 1, username: 'u', quota: 500_000, ...user }, ...more],
      tokens: [{ id: 1, user_id: 1, key: 'k', remain_quota: 500_000, ...token }],
    },
    { dialect, nowMs: 0 },
  )

test('issue 50 a token is unlimited only if its table says so in a spelling of true', () => {
  const budgetOf = (unlimited: unknown) => oneToken({ unlimited_quota: unlimited }).foreign.keys[0]!.bounds.budget
  for (const word of [1, true, '1', 'true', 't', 'TRUE']) assert.equal(budgetOf(word), undefined, `${word}`)
  for (const word of [0, false, '0', 'false', 'f', 'FALSE', null, undefined, ''])
    assert.deepEqual(budgetOf(word), { nanos: 1_000_000_000n, per: undefined }, `${word}`)
})

test('issue 50 the import reports the limit of requests a minute of accounts that had none', () => {
  const more = [{ id: 2, username: 'v', quota: 0 }]
  assert.match(oneToken({}, { more }).notes.join(), /the account u may make as many .* --rpm 3000/)
})

test('issue 50 a token with an unreadable end is left out', () => {
  const { foreign, settings } = oneToken({ expired_time: '2027-01-01' })
  assert.deepEqual([foreign.keys.length, settings[0]!.why], [0, 'its expired_time is no number'])
})

test('issue 50 the tokens of a deleted user are left out, and users without a token are listed with their balance', () => {
  const { foreign, settings } = oneToken({}, { user: { deleted_at: '2026-01-01 00:00:00' } })
  assert.deepEqual([foreign.keys, foreign.accounts], [[], []])
  assert.match(settings[0]!.why, /its user is not there, or was deleted/)
  assert.deepEqual(oneToken({}, { user: { status: 3 }, dialect: 'one-api' }).foreign.accounts, [])
  const more = [
    { id: 2, username: 'v', quota: 250_000 },
    { id: 3, username: 'w', quota: 0 },
  ]
  const left = oneToken({}, { more }).settings.filter(({ fate }) => fate === 'left')
  assert.deepEqual(
    left.map(({ setting }) => setting),
    ['1 users with a quota'],
  )
  assert.match(left[0]!.why, /0\.5 credits are not booked/)
})

test('issue 50 a token of a group without a channel may use no model, and one of the group auto those of its user', () => {
  const modelsOf = (token: Entry, user: Entry = {}) => oneToken(token, { user }).foreign.keys[0]!.bounds.models
  assert.deepEqual(modelsOf({}), ['a', 'b'])
  assert.deepEqual(modelsOf({ group: 'vip' }), ['c'])
  assert.deepEqual(modelsOf({ group: 'auto' }, { group: 'vip' }), ['c'])
  assert.deepEqual(modelsOf({ group: 'gone' }), ['none'])
  assert.deepEqual(modelsOf({ model_limits_enabled: 1, model_limits: '' }), ['none'])
  assert.deepEqual(modelsOf({ model_limits_enabled: 0, model_limits: 'a' }), ['a', 'b'])
  assert.deepEqual(modelsOf({}, { group: 'gone' }), ['none'])
})

test('issue 50 the import notes the factors of the groups that tokens use, also those of new-api for users of other groups', () => {
  const values = { GroupRatio: { vip: 0.8, pro: 2 }, GroupGroupRatio: { vip: { pro: 1.5 } } }
  const options = Object.entries(values).map(([key, value]) => ({ key, value: JSON.stringify(value) }))
  const channels = [{ id: 1, type: 1, models: 'a', group: 'default,vip,pro' }]
  const users = [
    { id: 1, username: 'u', group: 'default', quota: 1 },
    { id: 2, username: 'v', group: 'vip', quota: 1 },
    { id: 3, username: 'without a token', group: 'vip', quota: 1 },
  ]
  const tokens = [
    { id: 1, user_id: 1, key: 'k' },
    { id: 2, user_id: 1, key: 'l', group: 'pro' },
    { id: 3, user_id: 2, key: 'm', group: 'auto' },
    { id: 4, user_id: 2, key: 'n', group: 'pro' },
  ]
  const { notes } = planOneApiKeys({ channels, users, tokens, options }, { dialect: 'new-api', nowMs: 0 })
  assert.deepEqual(
    notes.flatMap((note) => /^(user .*) times the price/.exec(note)?.[1] ?? []),
    ['user u: their group pro pays 2', 'user v: their group vip pays 0.8', 'user v: their group pro pays 1.5'],
  )
})

test('issue 50 a channel without a key gets no key of a variable', () => {
  for (const dialect of ['one-api', 'new-api'] as const)
    assert.equal(listOf(dialect, { key: '', base_url: 'http://10.0.0.7:8000' }).params[0]!['api_key'], 'none')
})

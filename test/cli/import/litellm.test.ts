// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the configuration look like placeholders
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import fc from 'fast-check'
import { parse, stringify } from 'yaml'
import { convertLitellm } from '../../../src/cli/import/litellm-config.ts'
import { costOf } from '../../../src/cli/import/litellm-figures.ts'
import { withStandIns } from '../../../src/cli/import/write-import.ts'
import { findProblems } from '../../../src/config/load.ts'
import { testFolder } from '../../support/folder.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { runsUpTo } from '../../support/runs.ts'
import { runWarm } from '../run.ts'
import { type Entry, entry, list, priced, rows } from './litellm-rows.ts'

function problemsOf(config: Entry) {
  const text = stringify(config, { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN' })
  return findProblems('triwire.yaml', text, withStandIns(text, {}))
}

const today = '2026-11-27'

/** Every place of a setting: keys of `litellm_params` and of sections, and what lists of fallbacks and aliases name. */
function placesOf(file: string): string[] {
  const places: string[] = []
  for (const [section, value] of Object.entries(parse(file) as Entry))
    if (section === 'model_list' || section === 'credential_list')
      for (const [at, one] of (value as Entry[]).entries())
        for (const [key, inner] of section === 'model_list' ? Object.entries(one) : [['', '']])
          if (typeof inner === 'object')
            places.push(...Object.keys(inner!).map((name) => `${section}[${at}].${key}.${name}`))
          else places.push(`${section}[${at}]${key && `.${key}`}`)
    else
      for (const [key, inner] of Object.entries(value as Entry))
        if (Array.isArray(inner) && key !== 'default_fallbacks' && key.endsWith('fallbacks'))
          places.push(...inner.flatMap((one, at) => Object.keys(one).map((name) => `${section}.${key}[${at}].${name}`)))
        else if (key === 'model_group_alias')
          places.push(...Object.keys(inner as Entry).map((name) => `${section}.${key}.${name}`))
        else places.push(`${section}.${key}`)
  return places.sort()
}

for (const { name, file, models, left = [], check } of rows)
  test(`issue 50 import litellm converts ${name}`, () => {
    const { config, settings } = convertLitellm(parse(file), { today })
    assert.deepEqual(
      (config['catalog'] as { models: { id: string }[] }).models.map(({ id }) => id),
      models,
    )
    check?.(config)
    assert.deepEqual(problemsOf(config), [])
    assert.deepEqual(settings.map(({ setting }) => setting).sort(), placesOf(file))
    const isLeft = new Set(settings.flatMap(({ setting, fate }) => (fate === 'left' ? [setting] : [])))
    for (const setting of left) assert.ok(isLeft.has(setting), setting)
    assert.ok(settings.every(({ why }) => why !== ''))
  })

const sonnet = 'anthropic/claude-sonnet-5-5'
const deployment = (name: string, params: Entry) => ({ model_name: name, litellm_params: { model: sonnet, ...params } })

test('issue 50 import litellm lists rates that differ between keys of one upstream, and not equal ones', () => {
  const leftOf = (...rates: number[]) => {
    const keyed = rates.map((rpm, at) => deployment('m', { api_key: `os.environ/K${at}`, rpm }))
    const { settings } = convertLitellm({ model_list: keyed }, { today })
    return settings.flatMap(({ setting, fate }) => (fate === 'left' ? [setting] : []))
  }
  const rpm = (at: number) => `model_list[${at}].litellm_params.rpm`
  assert.deepEqual(leftOf(100, 50), [rpm(0), rpm(1)])
  assert.deepEqual(leftOf(100, 100, 50), [rpm(0), rpm(1), rpm(2)])
  assert.deepEqual(leftOf(100, 100), [])
})

test('issue 50 import litellm lists fallbacks to a model that was left out, and assumes nothing about that model', () => {
  const source = {
    model_list: [deployment('m', {}), deployment('n', {}), deployment('odd', { model: 'openai/odd', rpm: 5 })],
    router_settings: { fallbacks: [{ m: ['odd'] }, { n: ['m', 'odd'] }, { odd: ['m'] }] },
  }
  const { settings, notes } = convertLitellm(source, { today })
  assert.deepEqual(
    settings.flatMap(({ setting, fate, why }) => (fate === 'left' && setting.startsWith('router') ? [why] : [])),
    [
      'odd was left out, or is not in model_list',
      'in part: odd was left out, or is not in model_list',
      'the model was left out, or is not in model_list',
    ],
  )
  assert.deepEqual(notes, [])
  assert.deepEqual(convertLitellm(source, { today, isUnpricedFree: true }).notes, [
    'odd: no price is known; it costs nothing.',
    'odd: its most output tokens are not known; 8192 are assumed.',
  ])
})

test('issue 50 import litellm names the models for which a chain has no place', () => {
  const models = ['a', 'b', 'c', 'd'].map((name) => deployment(name, {}))
  const other = deployment('a', { model: 'openrouter/x', input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 })
  const { config, notes } = convertLitellm(
    {
      model_list: [...models, { ...other, model_info: { max_output_tokens: 9 } }],
      router_settings: { fallbacks: [{ a: ['b', 'c', 'd'] }] },
    },
    { today },
  )
  const chains = (config as { catalog: { models: Entry[] } }).catalog.models.flatMap(({ chain }) =>
    chain ? [chain] : [],
  )
  assert.deepEqual(chains, [['a-only', 'a-chat', 'b', 'c']])
  assert.ok(notes.includes('a: a chain has at most four models, so d is left out.'), notes.join())
})

test('issue 50 import litellm gives the model of a second wire an id that no other model has', () => {
  const free = { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 }
  const models = [
    deployment('a', {}),
    deployment('a', { model: 'openrouter/x', ...free }),
    deployment('a-chat', { model: 'openrouter/y', ...free }),
  ]
  const config = convertLitellm({ model_list: models }, { today }).config as Entry
  const all = (config['catalog'] as { models: Entry[] }).models
  assert.deepEqual(
    all.map(({ id, chain }) => chain ?? id),
    ['a-only', 'a-chat-2', 'a-chat', ['a-only', 'a-chat-2']],
  )
  assert.deepEqual(problemsOf(config), [])
})

test('issue 50 import litellm compares the prices of deployments that apply now', () => {
  const rows = [
    { input: '1', output: '2' },
    { from: '2026-01-01T00:00:00Z', input: '3', output: '4' },
    { from: '2999-01-01T00:00:00Z', input: '5', output: '6' },
  ]
  assert.equal(costOf(rows), 7)
  assert.equal(costOf(rows[0]!), 3)
})

test('issue 50 import litellm takes the most output tokens from the deployments for which they are known', () => {
  const odd = (most?: number) => ({
    ...deployment('m', { model: 'openai/odd', input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 }),
    ...(most !== undefined && { model_info: { max_output_tokens: most } }),
  })
  for (const [list, most, notes] of [
    [[odd(16_384), odd()], 16_384, 0],
    [[odd(), odd(4_096), odd(16_384)], 4_096, 0],
    [[odd(), odd()], 8_192, 1],
  ] as const) {
    const made = convertLitellm({ model_list: list }, { today })
    const [model] = (made.config as { catalog: { models: { max_output_tokens: number }[] } }).catalog.models
    assert.deepEqual([model!.max_output_tokens, made.notes.length], [most, notes])
  }
})

test('issue 50 import litellm carries or replaces at least 90 % of the settings of twenty configurations, and lists the rest', () => {
  const shapes = rows.filter(({ isEdge }) => !isEdge)
  const all = shapes.flatMap(({ file }) => convertLitellm(parse(file), { today }).settings)
  const kept = all.filter(({ fate }) => fate !== 'left').length
  assert.ok(shapes.length >= 20)
  assert.ok(kept / all.length >= 0.9, `${kept} of ${all.length}`)
})

test('issue 50 import litellm accepts any shape: each setting is in the report once, and check accepts the result', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd/*', 'x y', 'constructor', '__proto__', 'z"\'${Q}')
  const model = fc.constantFrom(
    'openai/gpt-6-luna',
    'azure/x',
    'anthropic/claude-sonnet-5-5',
    'bedrock/anthropic.q',
    'xai/*',
    'ollama/l',
    'none/x',
    'vertex_ai/gemini-9',
    '*',
    'openai/e',
    '',
  )
  const params = fc.record(
    {
      model,
      api_key: fc.constantFrom('k', 'os.environ/K', 'a b', '${X}', '', 7),
      api_base: fc.constantFrom('https://h.example/v1', 'http://10.1.1.1:8', 'os.environ/BASE'),
      api_version: fc.constantFrom('2025-01-01', 'v1'),
      rpm: fc.constantFrom(0, 10, '30', null),
      order: fc.constantFrom(0, 1, 2),
      weight: fc.constantFrom(0, 0.5, 3, '2', null),
      extra_headers: fc.constantFrom({ a: 'b' }, { Authorization: 'x' }, { 'a b': 'c' }, { a: null }, 'x'),
      max_tokens: fc.constantFrom(0, 100, '5', null),
      input_cost_per_token: fc.constantFrom(0, 1e-6, '3e-7', -1, null, 'x'),
      output_cost_per_token: fc.constantFrom(0, 1e-6, '3e-7', null),
      foo: fc.anything({ maxDepth: 1 }),
    },
    { requiredKeys: ['model'] },
  )
  const names = fc.array(name, { maxLength: 5 })
  const source = fc.record(
    {
      model_list: fc.array(fc.record({ model_name: name, litellm_params: params }), { minLength: 1, maxLength: 6 }),
      router_settings: fc.record({
        fallbacks: fc.array(fc.dictionary(name, names), { maxLength: 3 }),
        model_group_alias: fc.dictionary(name, name),
        num_retries: fc.nat(),
      }),
      litellm_settings: fc.record({ default_fallbacks: names, request_timeout: fc.anything({ maxDepth: 1 }) }),
    },
    { requiredKeys: ['model_list'] },
  )
  fc.assert(
    fc.property(source, fc.boolean(), (value, isUnpricedFree) => {
      const { config, settings } = convertLitellm(value, { today, isUnpricedFree })
      const said = settings.map(({ setting }) => setting)
      assert.equal(new Set(said).size, said.length)
      if (!('catalog' in config)) return
      assert.deepEqual(problemsOf(config), [])
    }),
    { numRuns: runsUpTo(300) },
  )
})

test('issue 50 import litellm writes a file of mode 600, replaces one only with --force, and its list has no values', async () => {
  const cwd = testFolder('cli')
  mkdirSync(cwd, { recursive: true })
  writeFileSync(join(cwd, 'l.yaml'), rows.find(({ name }) => name === 'settings of the whole proxy')!.file)
  const line = ['import', 'litellm', 'l.yaml', '--output', 'triwire.yaml']
  const first = await runWarm(line, { cwd })
  assert.equal(first.code, 0, first.stderr)
  assert.match(first.stdout, /^\d+ settings: \d+ carried, \d+ replaced, \d+ not carried\.\n/)
  assert.match(first.stdout, /general_settings\.strange: is not known to the import\n/)
  assert.doesNotMatch(first.stdout, /secret-/)
  assert.equal(statSync(join(cwd, 'triwire.yaml')).mode & 0o777, 0o600)
  const again = await runWarm(line, { cwd })
  assert.deepEqual(
    [again.code, again.stderr],
    [1, 'triwire: triwire.yaml is there already: name another file, or add --force to replace it\n'],
  )
  assert.equal((await runWarm([...line, '--force'], { cwd })).code, 0)
  const checked = await runWarm(['check'], { cwd, env: { GROQ_API_KEY: 'k' } })
  assert.equal(checked.code, 0, checked.stderr)
  const printed = await runWarm(['import', 'litellm', 'l.yaml'], { cwd })
  assert.equal(printed.stdout, readFileSync(join(cwd, 'triwire.yaml'), 'utf8'))
})

test('issue 50 import litellm refuses a file that is not a LiteLLM configuration, and reads a price file', async () => {
  const cwd = testFolder('cli')
  const write = (name: string, text: string) => writeFileSync(join(cwd, name), text)
  write('no.yaml', 'catalog: {}')
  write('bad.yaml', 'a: [sk-secret')
  write('m.yaml', list(entry('m', 'model: together_ai/x')))
  write(
    'p.json',
    JSON.stringify({
      'together_ai/x': {
        litellm_provider: 'together_ai',
        mode: 'chat',
        input_cost_per_token: 1e-6,
        output_cost_per_token: 2e-6,
        max_output_tokens: 77,
      },
    }),
  )
  const said = async (...words: string[]) => (await runWarm(['import', 'litellm', ...words], { cwd })).stderr
  assert.match(await said('no.yaml'), /^triwire: no\.yaml is no configuration of LiteLLM's: it has no `model_list`/)
  assert.equal(await said('bad.yaml'), "triwire: bad.yaml is not valid YAML: name LiteLLM's configuration\n")
  assert.match(await said('gone.yaml'), /gone\.yaml \(ENOENT\)/)
  assert.match(await said('m.yaml'), /no model of m\.yaml can be carried:[\s\S]*--prices/)
  const { stdout } = await runWarm(['import', 'litellm', 'm.yaml', '--prices', 'p.json'], { cwd })
  const [model] = parse(stdout).catalog.models
  assert.deepEqual([model.prices, model.max_output_tokens], [{ input: '1', output: '2' }, 77])
  const free = await runWarm(['import', 'litellm', 'm.yaml', '--unpriced-free'], { cwd })
  assert.deepEqual(parse(free.stdout).catalog.models[0].prices, { input: '0', output: '0' })
})

test('issue 50 a server runs with an imported configuration: the fallback answers under the name that clients use', async () => {
  const gateway = await startTestGateway({
    upstream: (url) => {
      const file = list(
        entry('m', `model: openai/up-chat, api_base: "http://127.0.0.1:9/v1", api_key: none, ${priced}`),
        entry('n', `model: openai/up-chat, api_base: "${url}/v1", api_key: upstream-key-1, ${priced}`),
      )
      const source = parse(`${file}router_settings: { fallbacks: [{ m: [n] }], model_group_alias: { quick: n } }`)
      return convertLitellm(source, { today }).config
    },
  })
  for (const model of ['n', 'quick', 'm']) {
    const answer = await gateway.post('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'hello' }] })
    const body = (await answer.json()) as { usage?: { total_tokens: number } }
    assert.equal(answer.status, 200, JSON.stringify(body))
    assert.ok(body.usage!.total_tokens > 0)
  }
})

test('issue 50 import litellm reads the files that include names, each once, and says which is missing', async () => {
  const cwd = testFolder('cli')
  mkdirSync(join(cwd, 'more'), { recursive: true })
  const write = (name: string, text: string) => writeFileSync(join(cwd, name), text)
  write('l.yaml', `include: [more/a.yaml]\n${list(entry('m', 'model: deepseek/deepseek-flash'))}`)
  write('more/a.yaml', `include: [b.yaml, ../l.yaml]\n${list(entry('n', 'model: xai/grok-4.5'))}`)
  write('more/b.yaml', 'litellm_settings: { request_timeout: 77 }')
  const { stdout, code } = await runWarm(['import', 'litellm', 'l.yaml'], { cwd })
  assert.equal(code, 0)
  const { catalog, timeouts } = parse(stdout)
  assert.deepEqual(
    catalog.models.map(({ id }: Entry) => id),
    ['m', 'n'],
  )
  assert.equal(timeouts.first_byte_json, '77s')
  write('gone.yaml', `include: [none.yaml]\n${list(entry('m', 'model: deepseek/deepseek-flash'))}`)
  assert.match(
    (await runWarm(['import', 'litellm', 'gone.yaml'], { cwd })).stderr,
    /none\.yaml.*ENOENT.*include of gone\.yaml/,
  )
})

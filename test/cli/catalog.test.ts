// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the configuration look like placeholders
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { parse } from 'yaml'
import { presets } from '../../src/catalog/presets.ts'
import { testFolder } from '../support/folder.ts'
import { run, runWarm } from './run.ts'

test('X15 catalog add shows what it will write, asks, and writes a file that check accepts once the key is set', async () => {
  const cwd = testFolder('cli')
  const path = join(cwd, 'triwire.yaml')
  const unasked = await runWarm(['catalog', 'add', 'anthropic'], { cwd })
  assert.equal(unasked.code, 1)
  assert.match(
    unasked.stdout,
    /^\+ {5}# prices of 2026-10-24, https:\/\/platform\.claude\.com.*\n\+ {5}- id: claude-opus-5-5$/m,
  )
  assert.match(unasked.stderr, /was left as it is: run with --yes/)
  assert.throws(() => readFileSync(path))

  const added = await run(['catalog', 'add', 'anthropic', 'claude-haiku-5-5', '--yes', '--json'], { cwd })
  assert.deepEqual(added.json.added as unknown, ['claude-haiku-5-5'])
  const { catalog, upstreams } = parse(readFileSync(path, 'utf8'))
  assert.match(catalog.pinned, /^\d{4}-\d\d-\d\d$/)
  assert.deepEqual(catalog.models[0].prices.steps[0].above, 100_000)
  assert.equal(upstreams.anthropic.accounts[0].key, '${ANTHROPIC_API_KEY}')
  const checked = await runWarm(['check', '--json'], { cwd, env: { ANTHROPIC_API_KEY: 'canary-key' } })
  assert.deepEqual(checked.json.warnings as unknown, [])
})

test('NEW-10 the output of catalog add passes check without a warning, each preset alone and all in one file', async () => {
  const known = Object.entries(presets).filter(([, { models }]) => models.length > 0)
  const named = JSON.stringify(presets).matchAll(/\$\{(\w+)\}/g)
  const variables = [
    ...known.map(([, { upstream }]) => upstream.keyVariable),
    ...Array.from(named, ([, name]) => name!),
  ]
  const env = Object.fromEntries(variables.map((name) => [name, 'canary-key']))
  const all = testFolder('cli')
  // Models at a cloud have the names that they have at their makers.
  for (const [name, { calls, ofCloud, upstream }] of known)
    for (const cwd of ofCloud ? [testFolder('cli')] : [testFolder('cli'), all]) {
      const added = await runWarm(['catalog', 'add', name, '--yes', '--json'], { cwd })
      assert.equal(added.code, 0, added.stderr)
      const checked = await runWarm(['check', '--json'], { cwd, env })
      // The list of holidays of the next year is not out: that warning is right.
      const warnings = (checked.json.warnings as unknown as { path: string }[]).filter(
        ({ path }) => !path.startsWith('calendars'),
      )
      assert.deepEqual([checked.code, warnings], [0, []], name)
      const { catalog, upstreams } = parse(readFileSync(join(cwd, 'triwire.yaml'), 'utf8'))
      for (const model of catalog.models.filter(({ upstream }: { upstream: string }) => upstream === name))
        assert.deepEqual(
          [[model.prices].flat()[0].calls, model.hosted_tools],
          calls ? [calls.texts, undefined] : [undefined, 'refuse'],
        )
      assert.deepEqual(upstreams[name].paths, upstream.paths)
    }
})

test('X15 an existing model, or one without a dated price, is skipped and reported; --price supplies the price', async () => {
  const cwd = testFolder('cli')
  assert.equal((await runWarm(['catalog', 'add', 'openai', 'gpt-6-luna', '--yes'], { cwd })).code, 0)
  const [again, priced, unknown] = await Promise.all([
    runWarm(['catalog', 'add', 'openai', 'gpt-6-luna', 'gpt-6.2-astra', '--yes'], { cwd }),
    runWarm(['catalog', 'add', 'openai', 'gpt-6.2-astra', '--price', 'input=8', '--price', 'output=40', '--dry-run'], {
      cwd,
    }),
    runWarm(['catalog', 'add', 'nobody'], { cwd }),
  ])
  assert.equal(again.code, 1)
  assert.match(again.stdout, /gpt-6-luna: is in the file already/)
  assert.match(
    again.stdout,
    /gpt-6\.2-astra: its price is not known here with a day and a source; give it with --price/,
  )
  assert.match(priced.stdout, /\+ {7}prices: \{ input: "8", output: "40", calls: \{ web_search: "0\.01"/)
  assert.match(unknown.stderr, /no preset 'nobody': name one of anthropic, openai, gemini, deepseek/)
})

test('N-F18 X15 with --json the whole change is printed, nobody is asked, and a named file need not exist', async () => {
  const cwd = testFolder('cli')
  const add = ['catalog', 'add', 'openai', 'gpt-6-luna', '--config', 'new.yaml', '--json']
  const dry = await runWarm([...add, '--dry-run'], { cwd })
  const { changes, written, ...told } = dry.json as unknown as { changes: string[]; written: boolean; file: string }
  assert.deepEqual([written, told.file, dry.stderr], [false, join(cwd, 'new.yaml'), ''])
  assert.ok(changes.includes('+     - id: gpt-6-luna'), changes.join('\n'))
  const unasked = await runWarm(add, { cwd })
  assert.deepEqual([unasked.code, unasked.stdout], [1, ''])
  assert.match(unasked.stderr, /"message":"\S+new\.yaml was left as it is: run with --yes to write it"/)
  const done = await runWarm([...add, '--yes'], { cwd })
  assert.equal(done.json['written'] as unknown, true)
  const text = readFileSync(join(cwd, 'new.yaml'), 'utf8')
  assert.equal(changes.map((line) => line.slice(2)).join('\n'), text.trimEnd())
})

test('X15 nothing is written that check would refuse, unless the mistake was there before', async () => {
  const cwd = testFolder('cli')
  const path = join(cwd, 'triwire.yaml')
  const add = ['catalog', 'add', 'openai', 'gpt-6-luna', '--yes']
  const named = await runWarm([...add, '--upstream', 'no name'], { cwd })
  assert.match(
    named.stderr,
    /triwire\.yaml would not be right with it, and was left as it is: upstreams\.no name must be letters, digits, and/,
  )
  assert.throws(() => readFileSync(path))
  writeFileSync(path, 'limitz: {}\n')
  const added = await runWarm(add, { cwd })
  assert.equal(added.code, 0, added.stderr)
  assert.match(added.stdout, /no longer serves the built-in models of the simulator/)
  assert.match(readFileSync(path, 'utf8'), /^limitz: \{\}\ncatalog:\n/)
  // The message of this mistake lists the upstreams, so it becomes another one.
  writeFileSync(path, file.replace('  far:', '  fra:'))
  const beside = await runWarm(add, { cwd })
  assert.equal(beside.code, 0, beside.stderr)
})

test('X13 X15 if the configuration is not a file, no file is written beside it', async () => {
  const cwd = testFolder('cli')
  const inText = await runWarm(['catalog', 'add', 'openai', '--yes'], { cwd, env: { TRIWIRE_CONFIG_YAML: 'log: {}' } })
  assert.match(inText.stderr, /^triwire: TRIWIRE_CONFIG_YAML holds the configuration: change it there, or name a file/)
  assert.throws(() => readFileSync(join(cwd, 'triwire.yaml')))
  const folder = await runWarm(['catalog', 'add', 'openai', '--yes', '--config', '.'], { cwd })
  assert.match(folder.stderr, /^triwire: Cannot read \S+ \(it is no file\): name another one with --config\n$/)
  const nowhere = await runWarm(['catalog', 'add', 'openai', '--yes', '--config', 'no/folder/a.yaml'], { cwd })
  assert.match(nowhere.stderr, /^triwire: Cannot write \S+a\.yaml \(ENOENT\): name another one with --config\n$/)
})

const file = `catalog:
  pinned: 2026-01-01
  models:
    - id: haiku # small
      wire: messages
      upstream: anthropic
      upstream_model: small-1
      max_output_tokens: 50 # ours
      prices: { input: "9", output: 9.0 }
    - { id: plain, wire: chat, upstream: far, max_output_tokens: 9000, prices: { input: "3.0", output: 15 } }
upstreams:
  anthropic: { base_url: "https://a.example", accounts: [{ name: a, key: "\${A_KEY}" }] }
  far: { base_url: "https://b.example", accounts: [{ name: a, key: k }] }
`

const model = (provider: string, input: number, output: number, more: object = {}) => ({
  litellm_provider: provider,
  mode: 'chat',
  input_cost_per_token: input,
  output_cost_per_token: output,
  max_output_tokens: 100,
  ...more,
})
const priceFile = {
  'small-1': model('anthropic', 1e-6, 5e-6, { cache_creation_input_token_cost: 1.25e-6, max_input_tokens: 200_000 }),
  'far/small-1': model('far', 2e-6, 5e-6),
  'far/plain': model('far', 3e-6, 1.5e-5, { max_output_tokens: 9000 }),
  'other/plain': model('other', 4e-6, 1.5e-5),
  'far/new-1': model('far', 3e-6, 1.5e-5, { max_input_tokens: 64_000 }),
}

test('catalog import says why it cannot import a model, and what may be done', async () => {
  const cwd = testFolder('cli')
  writeFileSync(join(cwd, 'triwire.yaml'), file)
  const { max_output_tokens: _, ...open } = model('far', 1e-6, 2e-6)
  const { input_cost_per_token: __, ...free } = model('far', 0, 2e-6)
  const listed = { ...priceFile, 'far/open': open, 'far/free': free, 'far/other-1': model('far', 1e-6, 2e-6) }
  writeFileSync(join(cwd, 'prices.json'), JSON.stringify(listed))
  const ids = ['open', 'free', 'other-1', 'other/plain', 'small-1']
  const added = await runWarm(
    ['catalog', 'import', 'prices.json', ...ids, '--upstream', 'else', '--dry-run', '--json'],
    {
      cwd,
    },
  )
  assert.deepEqual(JSON.parse(added.stdout).left, [
    { id: 'open', why: 'has no maximum output in the file: add it by hand' },
    { id: 'free', why: 'has no price in the file' },
    { id: 'other-1', why: 'far is not known here: say with --wire what its upstream speaks' },
  ])
  const far = file.replace('upstream: anthropic', 'upstream: far')
  writeFileSync(join(cwd, 'triwire.yaml'), far.replace('far:', 'own:').replaceAll('upstream: far', 'upstream: own'))
  const unclear = await runWarm(['catalog', 'import', 'prices.json', '--dry-run'], { cwd })
  assert.equal(unclear.code, 1)
  assert.match(
    unclear.stdout,
    /^haiku: several providers of the file have it at different prices \(anthropic, far\): name it as provider\/id$/m,
  )
})

test('money.md 1 c two names with the same ending are imported, each from its own provider, and what is left out is reported', async () => {
  const cwd = testFolder('cli')
  const path = join(cwd, 'triwire.yaml')
  writeFileSync(path, file)
  const listed = {
    'gpt-6-luna': model('openai', 1e-7, 5e-7, { input_cost_per_token_flex: 5e-8, off_peak_pricing: { a: 1 } }),
    'perplexity/openai/gpt-6-luna': model('perplexity', 2e-7, 6e-7),
    'gpt-6-astra': model('openai', 3e-6, 9e-6),
    'perplexity/openai/gpt-6-astra': model('perplexity', 4e-6, 9e-6),
  }
  writeFileSync(join(cwd, 'prices.json'), JSON.stringify(listed))
  const take = (...ids: string[]) =>
    runWarm(['catalog', 'import', 'prices.json', ...ids, '--upstream', 'far', '--wire', 'chat', '--yes'], { cwd })
  const pricesOf = () =>
    Object.fromEntries(
      parse(readFileSync(path, 'utf8')).catalog.models.map((one: { id: string; prices: { input: string } }) => [
        one.id,
        one.prices.input,
      ]),
    )
  const both = await take('openai/gpt-6-luna', 'perplexity/openai/gpt-6-luna')
  assert.equal(both.code, 0, both.stderr)
  assert.match(
    both.stdout,
    /^gpt-6-luna: left out, since an entry has no place for it: input_cost_per_token_flex, off_peak_pricing\.$/m,
  )
  // The other order, one at a time.
  for (const id of ['perplexity/openai/gpt-6-astra', 'openai/gpt-6-astra']) assert.equal((await take(id)).code, 0)
  const { haiku: _, plain: __, ...added } = pricesOf()
  const prices = { 'gpt-6-luna': '0.1', 'openai/gpt-6-luna': '0.2', 'gpt-6-astra': '3', 'openai/gpt-6-astra': '4' }
  assert.deepEqual(added, prices)

  // Again, with new prices: each is brought up to date by its own.
  writeFileSync(
    join(cwd, 'prices.json'),
    JSON.stringify({
      ...listed,
      'gpt-6-luna': model('openai', 7e-7, 5e-7),
      'perplexity/openai/gpt-6-luna': model('perplexity', 8e-7, 6e-7),
    }),
  )
  await take('perplexity/openai/gpt-6-luna', 'openai/gpt-6-luna')
  const { haiku: ___, plain: ____, ...updated } = pricesOf()
  assert.deepEqual(updated, { ...prices, 'gpt-6-luna': '0.7', 'openai/gpt-6-luna': '0.8' })
})

test('catalog import updates the known models by their own provider, keeps a smaller maximum, and adds the named ones', async () => {
  const cwd = testFolder('cli')
  const path = join(cwd, 'triwire.yaml')
  writeFileSync(path, file)
  writeFileSync(join(cwd, 'prices.json'), JSON.stringify(priceFile))
  const updated = await run(['catalog', 'import', 'prices.json', '--yes', '--json'], { cwd })
  const { updated: ids, notes } = updated.json as unknown as { updated: string[]; notes: string[] }
  assert.deepEqual([ids, notes], [['haiku'], ['haiku: its maximum output stays 50; the file has 100.']])
  const pinned = parse(readFileSync(path, 'utf8')).catalog.pinned
  assert.equal(
    readFileSync(path, 'utf8'),
    file
      .replace('2026-01-01', pinned)
      .replace(
        '{ input: "9", output: 9.0 }\n',
        '{ input: "1", output: "5", cache_write: "1.25" }\n      context_window: 200000\n',
      ),
  )
  assert.notEqual(pinned, '2026-01-01')
  const [again, unnamed, added] = await Promise.all([
    runWarm(['catalog', 'import', 'prices.json', '--yes'], { cwd }),
    runWarm(['catalog', 'import', 'prices.json', 'new-1'], { cwd }),
    runWarm(
      [
        'catalog',
        'import',
        'prices.json',
        'new-1',
        'small-1',
        'nope',
        '--upstream',
        'far',
        '--wire',
        'chat',
        '--dry-run',
      ],
      { cwd },
    ),
  ])
  assert.match(again.stdout, /was left as it is/)
  assert.match(unnamed.stderr, /name the upstream that serves it with --upstream/)
  assert.match(
    added.stdout,
    /\+ {5}- id: new-1\n\+ {7}wire: chat\n\+ {7}upstream: far\n\+ {7}max_output_tokens: 100\n\+ {7}context_window: 64000/,
  )
  assert.match(added.stdout, /nope: is not in the file/)
})

test('catalog import leaves chains as they are, whose names the price file may have', async () => {
  const cwd = testFolder('cli')
  const chained = file.replace('upstreams:', '    - { id: new-1, chain: [haiku, plain] }\nupstreams:')
  writeFileSync(join(cwd, 'triwire.yaml'), chained)
  // Programs of Windows put a byte order mark before a text.
  writeFileSync(join(cwd, 'prices.json'), `\ufeff${JSON.stringify(priceFile)}`)
  const all = await run(['catalog', 'import', 'prices.json', '--dry-run', '--json'], { cwd })
  assert.deepEqual([all.json.updated, all.json.left], [['haiku'], []])
  const named = await run(['catalog', 'import', 'prices.json', 'new-1', '--dry-run', '--json'], { cwd })
  const why = 'is a chain: import its models, which have the figures'
  assert.deepEqual([named.code, JSON.parse(named.stdout).left], [1, [{ id: 'new-1', why }]])
})

test('catalog import finds a model by its name at its first upstream', async () => {
  const cwd = testFolder('cli')
  const routes = '[{ name: anthropic, upstream_model: small-1 }, { name: far, upstream_model: tiny }]'
  const routed = file.replace('upstream: anthropic\n      upstream_model: small-1', `upstream: ${routes}`)
  assert.notEqual(routed, file)
  writeFileSync(join(cwd, 'triwire.yaml'), routed)
  // Another model has the id of ours.
  writeFileSync(join(cwd, 'prices.json'), JSON.stringify({ ...priceFile, haiku: model('anthropic', 7e-6, 7e-6) }))
  for (const ids of [[], ['small-1'], ['haiku'], ['small-1', 'anthropic/small-1', 'haiku']]) {
    const { json } = await run(['catalog', 'import', 'prices.json', ...ids, '--dry-run', '--json'], { cwd })
    const { updated, added, changes } = json as unknown as Record<'updated' | 'added' | 'changes', string[]>
    assert.deepEqual([updated.length, added], [1, []], ids.join())
    assert.match(changes.join('\n'), /\+.*prices: \{ input: "1", output: "5", cache_write: "1\.25" \}/)
  }
})

test('issue 46.10 an import keeps prices that the file lacks only if they stay right: steps get them, hours do not', async () => {
  const cwd = testFolder('cli')
  const path = join(cwd, 'triwire.yaml')
  const peak = '{ name: peak, zone: Asia/Shanghai, hours: "09:00-12:00", times: "2" }'
  const rates = 'input: "1", output: "2"'
  const prices = {
    stepped: `{ ${rates}, cache_write: "1.25", cache_write_12h: "2.5" }`,
    longer: `{ ${rates}, steps: [{ above: 1000, ${rates} }] }`,
    short: `{ ${rates} }`,
    hourly: `{ ${rates}, bands: [${peak}] }`,
    same: `{ input: "3", output: "4", bands: [${peak}] }`,
    written: `{ ${rates}, tiers: { flex: { ${rates} } } }`,
    factored: `{ ${rates}, tiers: { flex: "0.5" } }`,
  }
  const models = Object.entries(prices).map(
    ([id, text]) => `    - { id: ${id}, wire: chat, upstream: far, max_output_tokens: 100, prices: ${text} }\n`,
  )
  writeFileSync(path, file.replace('upstreams:', `${models.join('')}upstreams:`))
  const step = { input: 6, output: 8, tier: { type: 'context', size: 9_000 } }
  const cost = { input: 3, output: 4 }
  const listed = Object.keys(prices).map((id) => [
    id,
    { limit: { output: 100 }, cost: { ...cost, ...(id === 'stepped' && { tiers: [step] }) } },
  ])
  writeFileSync(join(cwd, 'prices.json'), JSON.stringify({ far: { models: Object.fromEntries(listed) } }))
  const told = await runWarm(['catalog', 'import', 'prices.json', '--upstream', 'far', '--yes', '--json'], { cwd })
  assert.equal(told.code, 0, told.stderr)
  const { updated, left, notes } = told.json as unknown as Record<'updated' | 'notes', string[]> & { left: object[] }
  assert.deepEqual(updated, ['stepped', 'short', 'factored'])
  const why =
    'has prices by hour or size of input, or written-out prices of a tier or geography, which the file lacks: compare them with the file, and change them by hand'
  assert.deepEqual(
    left.filter((one) => JSON.stringify(one).includes('by hour')),
    ['longer', 'hourly', 'written'].map((id) => ({ id, why })),
  )
  assert.match(
    notes.join('\n'),
    /^stepped: the file does not tell cache_write above 9000 \([^)]+\), cache_write_12h above 9000 \(/m,
  )
  const [, , stepped, longer] = parse(readFileSync(path, 'utf8')).catalog.models
  assert.deepEqual(stepped.prices.steps, [
    { above: 9_000, input: '6', output: '8', cache_write: '1.25', cache_write_12h: '2.5' },
  ])
  assert.equal(longer.prices.input, '1')
})

test('C11 an import keeps the prices of tools, and the factors of tiers, that the price file lacks', async () => {
  const cwd = testFolder('cli')
  const path = join(cwd, 'triwire.yaml')
  const rates = 'input: "1", output: "5"'
  const prices = {
    'new-1': `{ ${rates}, calls: { web_search: 0.01, code_interpreter: "0.03" }, tiers: { flex: "0.5", priority: 2 } }`,
    'new-2': `{ ${rates}, tiers: { flex: { ${rates} } } }`,
  }
  const models = Object.entries(prices).map(
    ([id, text]) => `    - { id: ${id}, wire: responses, upstream: far, max_output_tokens: 100, prices: ${text} }\n`,
  )
  writeFileSync(path, file.replace('upstreams:', `${models.join('')}upstreams:`))
  const dearer = {
    ...{ input_cost_per_token_priority: 3e-6, output_cost_per_token_priority: 1.5e-5 },
    search_context_cost_per_query: { search_context_size_low: 0.02 },
  }
  const listed = Object.keys(prices).map((id) => [`far/${id}`, model('far', 1e-6, 5e-6, dearer)])
  writeFileSync(join(cwd, 'prices.json'), JSON.stringify(Object.fromEntries(listed)))
  const told = await runWarm(['catalog', 'import', 'prices.json', 'new-1', 'new-2', '--yes', '--json'], { cwd })
  assert.equal(told.code, 0, told.stderr)
  const { updated, left } = told.json as unknown as { updated: string[]; left: { id: string; why: string }[] }
  assert.deepEqual([updated, left.map(({ id }) => id)], [['new-1'], ['new-2']])
  assert.match(left[0]!.why, /^has prices by hour .* written-out prices of a tier .* which the file lacks/)
  const { models: written } = parse(readFileSync(path, 'utf8')).catalog
  const { calls, tiers } = written.find(({ id }: { id: string }) => id === 'new-1').prices
  assert.deepEqual(calls, { web_search: '0.02', code_interpreter: '0.03' })
  assert.deepEqual(tiers, { flex: '0.5', priority: '3' })
})

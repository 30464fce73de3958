// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the configuration look like placeholders
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { parse } from 'yaml'
import { builtInPresets, type PresetsFile } from '../../src/catalog/presets.ts'
import { testFolder } from '../support/folder.ts'
import { run, runWarm } from './run.ts'

/** A data file with one provider. */
function fileOf(more: Record<string, unknown> = {}, dated: Record<string, unknown> = {}): PresetsFile {
  const { calendars, presets } = structuredClone(builtInPresets)
  const [model] = presets['deepseek']!.models
  const changed = { ...model!, prices: { ...model!.prices!, ...dated }, ...more }
  return { version: 1, calendars, presets: { deepseek: { ...presets['deepseek']!, models: [changed] } } }
}

function write(cwd: string, name: string, value: unknown): string {
  writeFileSync(join(cwd, name), typeof value === 'string' ? value : JSON.stringify(value))
  return name
}

test('C11 catalog add writes schedules and dates, and the calendars that they refer to', async () => {
  const cwd = testFolder('cli')
  for (const [preset, id] of [
    ['deepseek', 'deepseek-flash'],
    ['gemini', 'gemini-3.8-flash'],
  ] as const)
    assert.equal((await runWarm(['catalog', 'add', preset, id, '--yes'], { cwd })).code, 0)
  const { catalog, calendars } = parse(readFileSync(join(cwd, 'triwire.yaml'), 'utf8'))
  assert.deepEqual(calendars, { cn: builtInPresets.calendars['cn'] })
  const [flash, gemini] = catalog.models
  assert.deepEqual([flash.prices.input, flash.prices.bands[0].times, flash.prices.bands[0].not_on], ['0.15', '2', 'cn'])
  assert.deepEqual(
    gemini.prices.map(({ from }: { from?: string }) => from),
    [undefined, '2027-01-01T00:00:00-08:00'],
  )
  const priced = await runWarm(['price', 'deepseek-flash', '--at', '2026-11-27T10:00:00+08:00', '--json'], { cwd })
  assert.equal((priced.json as unknown as { rates: { input: string } }).rates.input, '0.3')
  const given = await runWarm(['catalog', 'add', 'gemini', 'gemini-3.7-flash', '--price', 'input=1', '--yes'], { cwd })
  assert.match(given.stderr, /gemini-3\.7-flash has prices by date: add it without --price/)
  const again = await runWarm(['catalog', 'add', 'deepseek', 'deepseek-v4-pro', '--yes'], { cwd })
  assert.equal(again.code, 0, again.stderr)
})

test('issue 46 catalog update writes a data file beside the configuration, which add and check then read', async () => {
  const cwd = testFolder('cli')
  const file = write(
    cwd,
    'new.json',
    fileOf(
      {},
      {
        asOf: '2026-11-25',
        source: 'https://prices.example',
        texts: { input: '7', output: '8' },
      },
    ),
  )
  // Programs of Windows put a byte order mark before a text.
  const text = readFileSync(join(cwd, file), 'utf8')
  writeFileSync(join(cwd, file), `\ufeff${text}`)
  const dry = await runWarm(['catalog', 'update', '--from', file, '--dry-run', '--json'], { cwd })
  const told = dry.json as unknown as {
    written: boolean
    to: string
    changed: string[]
    removed: string[]
    added: string[]
  }
  assert.deepEqual(
    [told.written, told.to, told.changed, told.added],
    [false, '2026-11-25', ['deepseek deepseek-flash'], []],
  )
  assert.ok(told.removed.includes('openai gpt-6-luna'))
  assert.equal(existsSync(join(cwd, 'triwire.presets.json')), false)
  const unasked = await runWarm(['catalog', 'update', '--from', file], { cwd })
  assert.match(unasked.stderr, /was left as it is: run with --yes to write it/)
  assert.match(unasked.stdout, /^~ deepseek deepseek-flash$/m)
  const done = await run(['catalog', 'update', '--from', file, '--yes'], { cwd })
  assert.equal(done.code, 0, done.stderr)
  assert.deepEqual(JSON.parse(readFileSync(join(cwd, 'triwire.presets.json'), 'utf8')), JSON.parse(text))
  assert.equal((await runWarm(['catalog', 'add', 'deepseek', '--yes'], { cwd })).code, 0)
  assert.equal(parse(readFileSync(join(cwd, 'triwire.yaml'), 'utf8')).catalog.models[0].prices.input, '7')
  assert.match(
    (await runWarm(['catalog', 'add', 'openai'], { cwd })).stderr,
    /there is no preset 'openai': name one of deepseek/,
  )
})

test('issue 46 an invalid data file is refused with the place of the error', async () => {
  const cwd = testFolder('cli')
  const cases: [file: unknown, message: RegExp][] = [
    ['{', /is not JSON: name a data file of presets/],
    [{}, /is no data file of presets: version/],
    [fileOf({ maxOutputTokens: 0 }), /presets\.deepseek\.models\.0\.maxOutputTokens/],
    [fileOf({}, { asOf: 'today' }), /models\.0\.prices\.asOf/],
    [fileOf({}, { texts: { input: 'x', output: '1' } }), /models\.0\.prices\.texts/],
    [{ ...fileOf(), more: 1 }, /the file: /],
  ]
  for (const [file, message] of cases) {
    const { code, stderr } = await runWarm(['catalog', 'update', '--from', write(cwd, 'bad.json', file), '--yes'], {
      cwd,
    })
    assert.equal(code, 1)
    assert.match(stderr, message)
  }
  assert.match(
    (await runWarm(['catalog', 'update', '--from', 'nowhere.json', '--yes'], { cwd })).stderr,
    /Cannot read nowhere\.json \(ENOENT\)/,
  )
})

/* BRK-6: a price file writes figures. The kind: every text and name of it, whatever ends a line, and references to variables. */
test('BRK-6 a data file of presets cannot write configuration, nor read variables into a model', async () => {
  const cwd = testFolder('cli')
  const upstream = (more: Record<string, unknown>) => {
    const file = fileOf()
    Object.assign(file.presets['deepseek']!.upstream, more)
    return file
  }
  const evil = (end: string) => `https://a.example/${end}    evil: { base_url: "https://b.example" }`
  const lines = ['\n', '\r', '\u0085', '\u2028', '\u001b[2K'].flatMap((end) => [
    fileOf({ id: `a${end}zz: 1` }),
    fileOf({}, { source: evil(end) }),
    fileOf({}, { note: `read${end}` }),
    upstream({ baseUrl: evil(end) }),
    upstream({ headers: { [`x${end}`]: 'a' } }),
    upstream({ headers: { 'x-a': `a${end}` } }),
    upstream({ keyHeader: `x${end}` }),
  ])
  const bands = (name: string) => [{ name, zone: 'UTC', times: '2' }]
  const variables = [
    fileOf({ id: 'a-${HOME}' }),
    fileOf({}, { texts: { input: '1', output: '2', bands: bands('b ${HOME}') } }),
  ]
  for (const [files, message] of [
    [lines, /line ends or invisible characters/],
    [variables, /a model names a variable/],
  ] as const)
    for (const file of files) {
      const { code, stderr } = await runWarm(['catalog', 'update', '--from', write(cwd, 'bad.json', file), '--yes'], {
        cwd,
      })
      assert.equal(code, 1, JSON.stringify(file))
      assert.match(stderr, message)
    }
})

test('X15 a provider without known models is reported with its cure', async () => {
  const cwd = testFolder('cli')
  const file = fileOf()
  write(cwd, 'triwire.presets.json', {
    ...file,
    presets: { ...file.presets, xai: { ...file.presets['deepseek'], models: [] } },
  })
  const { code, stderr } = await runWarm(['catalog', 'add', 'xai'], { cwd })
  assert.equal(code, 1)
  assert.match(stderr, /^triwire: Of xai no model is known here with a dated price: take its models from a price file/)
})

test('issue 46 check reports presets read more than 60 days ago, and changes within 30 days that the file lacks', async () => {
  const cwd = testFolder('cli')
  const dayAt = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)
  const row = { input: '1', output: '2' }
  const presetOf = (asOfDays: number, fromDays: number) =>
    fileOf(
      {},
      {
        asOf: dayAt(asOfDays),
        source: 'https://prices.example',
        texts: [row, { from: `${dayAt(fromDays)}T00:00:00Z`, input: '3', output: '4' }],
      },
    )
  const config = (prices: unknown) =>
    JSON.stringify({
      catalog: {
        pinned: '2026-11-01',
        models: [
          { id: 'deepseek-flash', wire: 'chat', upstream: 'd', max_output_tokens: 9, hosted_tools: 'refuse', prices },
        ],
      },
      upstreams: { d: { base_url: 'https://api.deepseek.com', accounts: [{ name: 'a', key: 'k' }] } },
    })
  const notes = async (preset: PresetsFile, prices: unknown) => {
    write(cwd, 'triwire.presets.json', preset)
    write(cwd, 'triwire.yaml', config(prices))
    const { json, stderr } = await runWarm(['check', '--json'], { cwd })
    assert.equal((json as unknown as { ok: boolean }).ok, true, stderr)
    return ((json as unknown as { presets?: { message: string }[] }).presets ?? []).map(({ message }) => message)
  }
  assert.deepEqual(await notes(presetOf(-59, 32), row), [])
  assert.match((await notes(presetOf(-62, 32), row)).join(), /^its price was read 6[12] days ago/)
  assert.match(
    (await notes(presetOf(-1, 28), row)).join(),
    /^its provider has announced input 3 and output 4 from .*: add a row to `prices`$/,
  )
  assert.deepEqual(await notes(presetOf(-1, 28), [row, { from: `${dayAt(28)}T00:00:00Z`, ...row }]), [])
  assert.deepEqual(await notes(presetOf(-1, -1), row), [])
  write(cwd, 'triwire.presets.json', presetOf(-90, 40))
  const { stderr } = await runWarm(['check'], { cwd })
  assert.match(
    stderr,
    /^note: deepseek-flash \(preset of \d{4}-\d\d-\d\d, https:\/\/prices\.example\): its price was read/m,
  )
})

test('issue 46 catalog import takes wires and profiles of providers from the data file beside the configuration', async () => {
  const cwd = testFolder('cli')
  const { presets, ...file } = fileOf()
  const fresh = { ...presets['deepseek']!, listedAs: ['fresh-ai'] }
  write(cwd, 'triwire.presets.json', { ...file, presets: { fresh } })
  write(
    cwd,
    'triwire.yaml',
    'upstreams:\n  f: { base_url: "https://fresh.example", accounts: [{ name: a, key: k }] }\n',
  )
  const model = { cost: { input: 1, output: 5 }, limit: { context: 200_000, output: 64_000 } }
  write(cwd, 'prices.json', { 'fresh-ai': { models: { 'new-1': model } } })
  const args = ['catalog', 'import', 'prices.json', 'new-1', '--upstream', 'f', '--dry-run', '--json']
  const { json, stderr } = await runWarm(args, { cwd })
  const { left, changes } = json as unknown as { left: unknown[]; changes: string[] }
  assert.deepEqual(left, [], stderr)
  for (const line of [`wire: ${fresh.wire}`, `profile: ${fresh.profile}`])
    assert.ok(changes.join('\n').includes(line), line)
})

test('issue 46 catalog import gives a model of the data file the profile that the file gives it', async () => {
  const cwd = testFolder('cli')
  write(
    cwd,
    'triwire.yaml',
    'upstreams:\n  a: { base_url: "https://api.anthropic.com", accounts: [{ name: a, key: k }] }\n',
  )
  const model = { cost: { input: 1, output: 5 }, limit: { context: 200_000, output: 64_000 }, temperature: false }
  const models = { 'claude-fable-5-1': model, 'claude-haiku-4-5': { ...model, temperature: true }, 'claude-6': model }
  write(cwd, 'prices.json', { anthropic: { models } })
  const args = ['catalog', 'import', 'prices.json', ...Object.keys(models), '--upstream', 'a', '--dry-run', '--json']
  const { json, stderr } = await runWarm(args, { cwd })
  const { left, changes } = json as unknown as { left: unknown[]; changes: string[] }
  assert.deepEqual(left, [], stderr)
  assert.deepEqual(
    [...changes.join('\n').matchAll(/profile: (\S+)/g)].map(([, profile]) => profile),
    ['anthropic-always-thinking', 'anthropic-budget', 'anthropic-fixed-sampling'],
  )
})

test('issue 48 4a the preset of each cloud is written with its address, header and account, and check accepts it', async () => {
  const cwd = testFolder('cli')
  const clouds = Object.entries(builtInPresets.presets).filter(([, { ofCloud }]) => ofCloud)
  const upstreams: Record<string, object> = {
    'bedrock-claude': {
      base_url: 'https://bedrock-runtime.us-east-1.amazonaws.com/anthropic',
      key_header: 'authorization',
      accounts: [{ name: 'main', key: '${AWS_BEARER_TOKEN_BEDROCK}' }],
    },
    'bedrock-mantle-claude': {
      base_url: 'https://bedrock-mantle.us-east-1.api.aws/anthropic',
      accounts: [{ name: 'main', key: '${AWS_BEARER_TOKEN_BEDROCK}' }],
    },
    'bedrock-openai': {
      base_url: 'https://bedrock-mantle.us-east-1.api.aws/openai/v1',
      accounts: [{ name: 'main', key: '${AWS_BEARER_TOKEN_BEDROCK}' }],
    },
    'claude-aws': {
      base_url: 'https://aws-external-anthropic.us-east-1.api.aws',
      headers: { 'anthropic-workspace-id': '${ANTHROPIC_AWS_WORKSPACE_ID}' },
      key_header: 'authorization',
      accounts: [{ name: 'main', key: '${ANTHROPIC_AWS_API_KEY}' }],
    },
    'vertex-claude': {
      base_url: 'https://aiplatform.googleapis.com',
      paths: {
        messages: {
          whole: '/v1/projects/${GOOGLE_CLOUD_PROJECT}/locations/global/publishers/anthropic/models/{model}:rawPredict',
          stream:
            '/v1/projects/${GOOGLE_CLOUD_PROJECT}/locations/global/publishers/anthropic/models/{model}:streamRawPredict',
        },
      },
      accounts: [{ name: 'main', google: {} }],
    },
    'vertex-gemini': {
      base_url:
        'https://aiplatform.googleapis.com/v1/projects/${GOOGLE_CLOUD_PROJECT}/locations/global/endpoints/openapi',
      accounts: [{ name: 'main', google: {} }],
    },
    'foundry-claude': {
      base_url: 'https://${ANTHROPIC_FOUNDRY_RESOURCE}.services.ai.azure.com/anthropic',
      accounts: [{ name: 'main', key: '${ANTHROPIC_FOUNDRY_API_KEY}' }],
    },
    'azure-openai': {
      base_url: 'https://${AZURE_OPENAI_RESOURCE}.openai.azure.com/openai/v1',
      key_header: 'api-key',
      accounts: [{ name: 'main', key: '${AZURE_OPENAI_API_KEY}' }],
    },
  }
  assert.deepEqual(clouds.map(([name]) => name).sort(), Object.keys(upstreams).sort())
  for (const [name, { models }] of clouds) {
    const own = join(cwd, name)
    mkdirSync(own)
    const added = await runWarm(['catalog', 'add', name, '--yes'], { cwd: own })
    assert.equal(added.code, 0, added.stderr)
    const text = readFileSync(join(own, 'triwire.yaml'), 'utf8')
    assert.deepEqual(parse(text).upstreams, { [name]: upstreams[name] })
    assert.equal(parse(text).catalog.models.length, models.length)
    const names = [...new Set(Array.from(text.matchAll(/\$\{(\w+)\}/g), ([, variable]) => variable!))]
    for (const variable of names) assert.ok(`${added.stdout}${added.stderr}`.includes(variable), `${name} ${variable}`)
    const env = Object.fromEntries(names.map((variable) => [variable, 'word']))
    const checked = await runWarm(['check', '--json'], { cwd: own, env })
    assert.equal(checked.code, 0, `${name}: ${checked.stdout}${checked.stderr}`)
    assert.deepEqual((checked.json as unknown as { warnings?: unknown[] }).warnings ?? [], [], name)
  }
})

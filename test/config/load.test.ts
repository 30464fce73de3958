// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the configuration look like placeholders
import assert from 'node:assert'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { baseOf } from '../../src/catalog/price-list.ts'
import { loadConfig, reloadConfig, withSimulator } from '../../src/config/load.ts'
import { ConfigError, type ConfigProblem } from '../../src/config/problem.ts'
import { testFolder } from '../support/folder.ts'

const folder = testFolder('config')

const env = { UP1_KEY: 'canary-upstream-key' }

const whole = `
listen: 127.0.0.1:8080
catalog:
  pinned: 2026-11-01
  owner: acme
  models:
    - id: claude-x
      wire: messages
      upstream: up1
      upstream_model: claude-x-0901
      max_output_tokens: 8192
      prices: { input: "3", cache_read: "0.3", cache_write: "3.75", output: "15" }
      profile: anthropic
    - { id: m2, wire: chat, upstream: up1, max_output_tokens: 100, prices: { input: 2, output: 0.5 } }
upstreams:
  up1:
    base_url: http://127.0.0.1:9001/v1/
    accounts:
      - { name: a, key: "\${UP1_KEY}" }
`

function load(source: string, variables: NodeJS.ProcessEnv = env) {
  writeFileSync(join(folder, 'a.yaml'), source)
  return loadConfig({ config: 'a.yaml' }, variables, folder)
}

function problemsOf(source: string, variables: NodeJS.ProcessEnv = env): readonly ConfigProblem[] {
  try {
    load(source, variables)
  } catch (error) {
    assert(error instanceof ConfigError)
    return error.problems
  }
  return []
}

test('issue 13 X12: a time zone has one name in the configuration, however it is spelled', () => {
  const zoneOf = (name: string) => load(`${whole}\nreporting: { time_zone: ${name} }`).reporting.timeZone
  assert.deepStrictEqual(['utc', 'Utc', 'UTC', 'europe/berlin', 'Europe/Berlin'].map(zoneOf), [
    ...['UTC', 'UTC', 'UTC'],
    ...['Europe/Berlin', 'Europe/Berlin'],
  ])
})

test('C7 Y13 allowed fields and betas are compared case-insensitively', () => {
  const allow = '[speed, providerOptions, context_window_fallbacks, metadata.tags, server-side-fallback-2026-07-01]'
  const model = load(whole.replace('profile: anthropic', `allow: ${allow}`)).catalog.models.get('claude-x')!
  const lower = [
    'speed',
    'provideroptions',
    'context_window_fallbacks',
    'metadata.tags',
    'server-side-fallback-2026-07-01',
  ]
  assert.deepStrictEqual([...model.allowedFields], lower)
})

test('C1 a whole file becomes a configuration with every default', () => {
  const config = load(whole)
  assert.deepStrictEqual(config.listen, { host: '127.0.0.1', port: 8080 })
  assert.deepStrictEqual(config.adminListen, { host: '127.0.0.1', port: 8081 })
  assert.strictEqual(config.isBuiltIn, false)
  assert.strictEqual(config.upstreams.get('up1')?.baseUrl, 'http://127.0.0.1:9001/v1')
  assert.strictEqual(config.upstreams.get('up1')?.accounts[0]?.key.reveal(), 'canary-upstream-key')
  assert.strictEqual(config.upstreams.get('up1')?.messagesHeaders, 'anthropic')
  const model = config.catalog.models.get('claude-x')
  assert.strictEqual(model?.upstreamModel, 'claude-x-0901')
  assert.strictEqual(model.profile.reasoning.style, 'adaptive')
  assert.deepStrictEqual(baseOf(model.prices).prices, {
    inputNanos: 3_000_000_000n,
    cacheReadNanos: 300_000_000n,
    cacheWriteNanos: 3_750_000_000n,
    cacheWrite1hNanos: 3_750_000_000n,
    outputNanos: 15_000_000_000n,
  })
  const second = config.catalog.models.get('m2')
  assert.strictEqual(second?.upstreamModel, 'm2')
  assert.strictEqual(second.hostedTools, 'pass')
  assert.deepStrictEqual(baseOf(second.prices).prices, {
    inputNanos: 2_000_000_000n,
    cacheReadNanos: 2_000_000_000n,
    cacheWriteNanos: 2_000_000_000n,
    cacheWrite1hNanos: 2_000_000_000n,
    outputNanos: 500_000_000n,
  })
  const version = ({ prices }: typeof model) => baseOf(prices).version
  assert.match(version(model), /^[0-9a-f]{12}$/)
  assert.notStrictEqual(version(model), version(second))
})

test('spec 2.9 the list of models has the pinned day and the owner on every row', () => {
  assert.strictEqual(
    load(whole).catalog.listBody,
    '{"object":"list","data":[{"id":"claude-x","object":"model","created":1793491200,"owned_by":"acme"},' +
      '{"id":"m2","object":"model","created":1793491200,"owned_by":"acme"}]}',
  )
})

test('spec 8 the limits, and reliability 3 and U6 the times, are the defaults', () => {
  const config = load('{}')
  assert.deepStrictEqual(config.limits, {
    requestsPerMinute: 300,
    failedAuthPerMinute: 10,
    bodyBytesMax: 5_242_880,
    connectionsMax: 20_000,
  })
  assert.deepStrictEqual(config.billing, { cutAnswers: 'bill', readOnMs: 10_000, holdOutputTokens: 1024 })
  assert.deepStrictEqual(config.timeouts, {
    headersMs: 15_000,
    bodyMs: 60_000,
    bodyGapMs: 20_000,
    lingerMs: 5_000,
    keepAliveMs: 65_000,
    writeStallMs: 60_000,
    connectMs: 5_000,
    firstByteStreamMs: 300_000,
    firstByteJsonMs: 600_000,
    idleMs: 120_000,
    progressMs: 300_000,
    totalMs: 3_600_000,
    settleWindowMs: 30_000,
    settleDeadlineMs: 5_000,
    drainDelayMs: 5_000,
    drainDeadlineMs: 300_000,
    pingMs: 10_000,
  })
})

test('without a catalog the built-in models are served, with the simulator as their upstream', () => {
  const config = withSimulator(loadConfig({}, {}, folder), 'http://127.0.0.1:4321/')
  assert.strictEqual(config.isBuiltIn, true)
  assert(config.catalog.models.size >= 3)
  assert.deepStrictEqual([...new Set([...config.catalog.models.values()].map(({ wire }) => wire))].sort(), [
    'chat',
    'messages',
    'responses',
  ])
  for (const model of config.catalog.models.values()) {
    assert.strictEqual(model.routes[0]?.upstream, 'simulator')
    assert(baseOf(model.prices).prices.outputNanos > 0n)
  }
  assert.strictEqual(config.upstreams.get('simulator')?.baseUrl, 'http://127.0.0.1:4321')
})

test('X4 a flag overrides the environment, which overrides the file', () => {
  const source = 'listen: 127.0.0.1:1\nadmin_listen: 127.0.0.1:2\nstore: from-file.db\n'
  writeFileSync(join(folder, 'a.yaml'), source)
  const variables = { TRIWIRE_CONFIG: 'a.yaml', TRIWIRE_LISTEN: '127.0.0.1:11', TRIWIRE_ADMIN_LISTEN: '[::1]:12' }
  const both = loadConfig({ listen: '0.0.0.0:21' }, variables, folder)
  assert.deepStrictEqual(both.listen, { host: '0.0.0.0', port: 21 })
  assert.deepStrictEqual(both.adminListen, { host: '::1', port: 12 })
  assert.strictEqual(both.store.shown, join(folder, 'from-file.db'))
  assert.strictEqual(loadConfig({}, { ...variables, TRIWIRE_LISTEN: '' }, folder).listen.port, 1)
})

test('X10 a reload does not read a pipe, which would stop the server until somebody writes into it', () => {
  const file = join(folder, 'pipe')
  execFileSync('mkfifo', [file])
  assert.throws(
    () => reloadConfig({ ...loadConfig({}, {}, folder), file }, {}, {}, folder),
    (error: ConfigError) =>
      error.message === `${file} is a pipe, which only the start reads: restart the server, or name a file`,
  )
})

test('X13 the text of the file may come from a variable, with references and line numbers of its mistakes', () => {
  const place = join(folder, 'x13')
  mkdirSync(place, { recursive: true })
  writeFileSync(join(place, 'triwire.yaml'), 'listen: 127.0.0.1:1')
  writeFileSync(join(place, 'b.yaml'), 'listen: 127.0.0.1:2')
  const sealKey = Buffer.alloc(32, 'canary-key').toString('base64')
  const variables = { ...env, TRIWIRE_CONFIG_YAML: `${whole}store: x/y.db\n`, TRIWIRE_SEAL_KEY: sealKey }
  const config = loadConfig({}, variables, place)
  assert.deepStrictEqual([...config.catalog.models.keys()], ['claude-x', 'm2'])
  assert.strictEqual(config.upstreams.get('up1')?.accounts[0]?.key.reveal(), 'canary-upstream-key')
  assert.deepStrictEqual([config.file, config.source], [undefined, 'TRIWIRE_CONFIG_YAML'])
  assert.strictEqual(config.store.shown, join(place, 'x/y.db'))
  assert.strictEqual(config.sealKey?.reveal(), sealKey)
  assert.strictEqual(loadConfig({ config: 'b.yaml' }, variables, place).listen.port, 2)
  assert.strictEqual(reloadConfig(config, {}, variables, place).listen.port, 8080)
  const messageOf = (more: NodeJS.ProcessEnv) => {
    try {
      loadConfig({}, { ...variables, ...more }, place)
      return ''
    } catch (error) {
      return (error as ConfigError).message
    }
  }
  assert.match(messageOf({ TRIWIRE_CONFIG_YAML: 'log: {}\nlimitz: {}' }), /^TRIWIRE_CONFIG_YAML:2: limitz is not a/)
  assert.match(messageOf({ TRIWIRE_CONFIG: 'b.yaml' }), /^TRIWIRE_CONFIG and TRIWIRE_CONFIG_YAML are both set/)
  assert.strictEqual(loadConfig({}, { ...variables, TRIWIRE_CONFIG_YAML: '' }, place).listen.port, 1)
})

test('X4 paths in the file are relative to it, those in flags and variables to the working folder', () => {
  const below = join(folder, 'below')
  mkdirSync(below, { recursive: true })
  writeFileSync(join(below, 'b.yaml'), 'store: x/y.db')
  writeFileSync(join(below, 'triwire.yaml'), 'store: usual.db')
  assert.strictEqual(loadConfig({ config: 'below/b.yaml' }, {}, folder).store.shown, join(below, 'x/y.db'))
  assert.strictEqual(
    loadConfig({ config: 'below/b.yaml', store: 'z.db' }, {}, folder).store.shown,
    join(folder, 'z.db'),
  )
  assert.strictEqual(
    loadConfig({ config: 'below/b.yaml' }, { TRIWIRE_STORE: 'e.db' }, folder).store.shown,
    join(folder, 'e.db'),
  )
  assert.strictEqual(loadConfig({}, {}, below).store.shown, join(below, 'usual.db'))
  assert.strictEqual(loadConfig({}, {}, folder).store.shown, join(folder, 'data/triwire.db'))
})

test('X4 a mistake in a flag or a variable names it', () => {
  const messageOf = (run: () => unknown) => {
    try {
      run()
    } catch (error) {
      return (error as ConfigError).problems[0]
    }
    return undefined
  }
  assert.deepStrictEqual(
    messageOf(() => loadConfig({ listen: '8080' }, {}, folder)),
    { path: '--listen', message: '--listen must be host:port, such as 127.0.0.1:8080 or [::1]:8080' },
  )
  assert.strictEqual(
    messageOf(() => loadConfig({}, { TRIWIRE_ADMIN_LISTEN: 'no port' }, folder))?.path,
    'TRIWIRE_ADMIN_LISTEN',
  )
  assert.match(
    messageOf(() => loadConfig({ config: 'nowhere.yaml' }, {}, folder))?.message ?? '',
    /nowhere\.yaml \(ENOENT\)/,
  )
})

test('references take values from the environment, inside text and with a default', () => {
  const source = `
log: { level: "\${LEVEL:-error}" }
limits:
  requests_per_minute: \${RPM}
  failed_auth_per_minute: \${NONE:-7}
catalog: { pinned: 2026-11-01, owner: "$\${RPM}", models: [{ id: "m-\${RPM}", wire: chat, upstream: up1, max_output_tokens: 5, prices: { input: "1", output: "1" } }] }
upstreams: { up1: { base_url: "http://\${HOST}:1", headers: { x: "\${NOTE}" }, accounts: [{ name: a, key: "\${UP1_KEY}" }] } }
`
  const config = load(source, { RPM: '42', HOST: 'h', LEVEL: '', UP1_KEY: 'canary-k', NOTE: 'a", b: {c: d}, #' })
  assert.strictEqual(config.limits.requestsPerMinute, 42)
  assert.strictEqual(config.limits.failedAuthPerMinute, 7)
  assert.strictEqual(config.log.level, 'error')
  assert.deepStrictEqual([...config.catalog.models.keys()], ['m-42'])
  assert.match(config.catalog.listBody, /"owned_by":"\$\{RPM\}"/)
  assert.strictEqual(config.upstreams.get('up1')?.baseUrl, 'http://h:1')
  // What a variable holds cannot add keys to the file.
  assert.strictEqual(config.upstreams.get('up1')?.headers.get('x'), 'a", b: {c: d}, #')
})

test('a missing variable is named, with its key and line, and nothing else is reported for that value', () => {
  assert.deepStrictEqual(problemsOf(whole, {}), [
    {
      path: 'upstreams.up1.accounts[0].key',
      line: 19,
      message:
        'upstreams.up1.accounts[0].key needs the environment variable UP1_KEY, which is not set; set it, or write ${UP1_KEY:-default}',
    },
  ])
})

test('an upstream key is never printed', () => {
  const config = load(whole)
  assert.doesNotMatch(JSON.stringify(config.upstreams.get('up1')), /canary/)
  assert.doesNotMatch(String(config.upstreams.get('up1')?.accounts[0]?.key), /canary/)
  const broken = whole
    .replace('name: a,', 'name: a, extra: "${UP1_KEY}",')
    .replace('http://127.0.0.1:9001', '${UP1_KEY}')
  const messages = problemsOf(broken)
  assert.strictEqual(messages.length, 2)
  assert.doesNotMatch(JSON.stringify(messages), /canary/)
})

const model = 'id: m, wire: chat, upstream: up1, max_output_tokens: 5'
const prices = 'prices: { input: "1", output: "1" }'
const upstreams = 'upstreams: { up1: { base_url: "http://h", accounts: [{ name: a, key: k }] } }'
const catalog = (...models: string[]) =>
  `${upstreams}\ncatalog:\n  pinned: 2026-11-01\n  models:\n${models.map((text) => `    - { ${text} }\n`).join('')}`
const upstream = (text: string) => `upstreams:\n  up1:\n    ${text}`
/** A model with these upstreams. */
const routed = (list: string) => `${model.replace('up1', list)}, ${prices}`
const goodAccounts = 'accounts: [{ name: a, key: k }]'

/** What is refused: a name, the file, the key, the line, a part of the message. */
const refusals: [string, string, string, number, RegExp][] = [
  ['an unknown key', 'log: {}\nlisen: x', 'lisen', 2, /is not a known key; known here: listen, /],
  ['an unknown key of a map', 'log:\n  levle: info', 'log.levle', 2, /known here: level, format/],
  [
    'an unknown key of a model',
    catalog(`${model}, ${prices}, x: 1`),
    'catalog.models[0].x',
    5,
    /known here: id, also, wire/,
  ],
  [
    'an unknown profile field',
    catalog(`${model}, ${prices}, profile: { dorps: [] }`),
    'catalog.models[0].profile.dorps',
    5,
    /max_field/,
  ],
  [
    'an unknown profile',
    catalog(`${model}, ${prices}, profile: foo`),
    'catalog.models[0].profile',
    5,
    /must be a map, or one of: /,
  ],
  [
    'an unknown extended profile',
    catalog(`${model}, ${prices}, profile: { extends: foo }`),
    'catalog.models[0].profile.extends',
    5,
    /must be one of/,
  ],
  [
    "another wire's profile",
    catalog(`${model}, ${prices}, profile: anthropic`),
    'catalog.models[0].profile',
    5,
    /is for messages/,
  ],
  ['a key given twice', 'log: {}\nlog: {}', '', 2, /not valid YAML: Map keys must be unique/],
  ['no YAML', 'log: [', '', 1, /not valid YAML/],
  ['no map', '- 1', '', 1, /must be a map of keys/],
  ['a list for a map', 'log: [1]', 'log', 1, /must be a map/],
  ['a word that is none of the words', 'log:\n  level: debug', 'log.level', 2, /must be one of: info, error/],
  [
    'a number for text',
    catalog(`${model}, ${prices}`).replace('id: m', 'id: 7'),
    'catalog.models[0].id',
    5,
    /needs quotes/,
  ],
  [
    'a control character in an id',
    catalog(`${model}, ${prices}`).replace('id: m', 'id: "a\\nb"'),
    'catalog.models[0].id',
    5,
    /control characters/,
  ],
  [
    'an alias that is another model',
    catalog(`${model}, ${prices}, also: [n]`, `${model.replace('id: m', 'id: n')}, ${prices}`),
    'catalog.models[0].also[0]',
    5,
    /is also the id of catalog\.models\[1\]; name each id once/,
  ],
  [
    'an alias given twice',
    catalog(`${model}, ${prices}, also: [n]`, `${model.replace('id: m', 'id: o')}, ${prices}, also: [n]`),
    'catalog.models[1].also[0]',
    6,
    /is also the id of catalog\.models\[0\]\.also\[0\]/,
  ],
  [
    'an alias that is the model itself',
    catalog(`${model}, ${prices}, also: [m]`),
    'catalog.models[0].also[0]',
    5,
    /is also the id of catalog\.models\[0\];/,
  ],
  [
    'a context window smaller than an answer',
    catalog(`${model}, ${prices}, context_window: 4`),
    'catalog.models[0].context_window',
    5,
    /must be at least `max_output_tokens`/,
  ],
  [
    'steps that do not rise',
    catalog(
      `${model}, prices: { input: 1, output: 1, steps: [{ above: 5, input: 1, output: 1 }, { above: 5, input: 1, output: 1 }] }`,
    ),
    'catalog.models[0].prices.steps[1].above',
    5,
    /must be more than the `above` of the step before it/,
  ],
  [
    'a step that is silent of what has a price',
    catalog(`${model}, prices: { input: 1, cache_read: 1, output: 1, steps: [{ above: 5, input: 1, output: 1 }] }`),
    'catalog.models[0].prices.steps[0].cache_read',
    5,
    /is missing: what has a price has one in every step/,
  ],
  [
    'a call without a price',
    catalog(`${model}, prices: { input: 1, output: 1, calls: { web_search: free } }`),
    'catalog.models[0].prices.calls.web_search',
    5,
    /credits per call/,
  ],
  [
    'a kind of call that is none',
    catalog(`${model}, prices: { input: 1, output: 1, calls: { Web-Search: 1 } }`),
    'catalog.models[0].prices.calls.Web-Search',
    5,
    /must be a kind of call/,
  ],
  [
    'an id given twice',
    catalog(`${model}, ${prices}`, `${model}, ${prices}`),
    'catalog.models[1].id',
    6,
    /is also the id of catalog\.models\[0\]/,
  ],
  [
    'an unknown upstream',
    catalog(`${model}, ${prices}`).replace('upstream: up1', 'upstream: up2'),
    'catalog.models[0].upstream',
    5,
    /must name an entry of upstreams: up1/,
  ],
  [
    'a missing key',
    catalog(`id: m, wire: chat, upstream: up1, ${prices}`),
    'catalog.models[0].max_output_tokens',
    5,
    /is missing/,
  ],
  ['missing prices', catalog(model), 'catalog.models[0].prices', 5, /is missing/],
  [
    'a price of ten places',
    catalog(`${model}, prices: { input: "1.0123456789", output: "1" }`),
    'catalog.models[0].prices.input',
    5,
    /at most 9 places/,
  ],
  [
    'a negative price',
    catalog(`${model}, prices: { input: -1, output: "1" }`),
    'catalog.models[0].prices.input',
    5,
    /at most 9 places/,
  ],
  [
    'an empty list of models',
    'catalog:\n  pinned: 2026-11-01\n  models: []',
    'catalog.models',
    3,
    /leave out `catalog`/,
  ],
  [
    'a day that is none',
    catalog(`${model}, ${prices}`).replace('2026-11-01', '2026-13-01'),
    'catalog.pinned',
    3,
    /must be a day/,
  ],
  [
    'a base URL of another scheme',
    upstream(`base_url: ftp://h\n    ${goodAccounts}`),
    'upstreams.up1.base_url',
    3,
    /http:\/\/ or https:\/\//,
  ],
  [
    'a base URL with credentials',
    upstream(`base_url: http://u:p@h\n    ${goodAccounts}`),
    'upstreams.up1.base_url',
    3,
    /must not carry credentials/,
  ],
  [
    'a base URL with a query',
    upstream(`base_url: http://h/?a\n    ${goodAccounts}`),
    'upstreams.up1.base_url',
    3,
    /no query/,
  ],
  [
    'an empty key',
    upstream('base_url: http://h\n    accounts: [{ name: a, key: "" }]'),
    'upstreams.up1.accounts[0].key',
    4,
    /must not be empty/,
  ],
  ['no account', upstream('base_url: http://h\n    accounts: []'), 'upstreams.up1.accounts', 4, /must have an account/],
  [
    'two accounts of one name',
    upstream('base_url: http://h\n    accounts: [{ name: a, key: k }, { name: a, key: l }]'),
    'upstreams.up1.accounts[1].name',
    4,
    /is also the name of accounts\[0\]/,
  ],
  [
    'a header of our own',
    upstream(`base_url: http://h\n    ${goodAccounts}\n    headers: { Authorization: x }`),
    'upstreams.up1.headers.Authorization',
    5,
    /writes itself/,
  ],
  [
    'a header of two lines',
    upstream(`base_url: http://h\n    ${goodAccounts}\n    headers: { a: "b\\nc" }`),
    'upstreams.up1.headers.a',
    5,
    /one line/,
  ],
  ['an upstream without a map', 'upstreams:\n  up1:', 'upstreams.up1', 2, /must be a map/],
  [
    'an unknown key of a route',
    catalog(`${routed('[{ name: up1, priorty: 1 }]')}`),
    'catalog.models[0].upstream[0].priorty',
    5,
    /known here: name, priority, weight/,
  ],
  ['no upstream at all', catalog(routed('[]')), 'catalog.models[0].upstream', 5, /must name an upstream/],
  [
    'a weight of zero',
    catalog(routed('[{ name: up1, weight: 0 }]')),
    'catalog.models[0].upstream[0].weight',
    5,
    /must be a number above 0/,
  ],
  [
    'an unknown upstream in a list',
    catalog(routed('[up1, { name: up2 }]')),
    'catalog.models[0].upstream[1].name',
    5,
    /must name an entry of upstreams: up1/,
  ],
  [
    'a profile of another wire in a list',
    catalog(routed('[{ name: up1, profile: anthropic }]')),
    'catalog.models[0].upstream[0].profile',
    5,
    /is for messages/,
  ],
  [
    'U1 one upstream twice under the same name for the model, which would be asked again as if it were another,',
    catalog(routed('[up1, { name: up1, priority: 2 }]')),
    'catalog.models[0].upstream[1].name',
    5,
    /is listed already, as upstream\[0\]/,
  ],
  [
    'U1 one upstream twice, the model’s own name for it repeated,',
    catalog(`${routed('[{ name: up1, upstream_model: x }, { name: up1, upstream_model: m }, up1]')}`),
    'catalog.models[0].upstream[2]',
    5,
    /is listed already, as upstream\[1\]/,
  ],
  ['an address without a port', 'listen: localhost', 'listen', 1, /must be host:port/],
  ['a port above the last', 'listen: h:65536', 'listen', 1, /must be host:port/],
  ['one address for both', 'listen: 127.0.0.1:8081', 'admin_listen', 1, /must not be the address of `listen`/],
  [
    'all addresses, of which one is the other',
    'listen: 0.0.0.0:8081',
    'admin_listen',
    1,
    /must not be the address of `listen`/,
  ],
  ['all addresses of both kinds', "listen: '[::]:8081'", 'admin_listen', 1, /must not be the address of `listen`/],
  [
    'X9 clients at the port that the admin API needs',
    'listen: 0.0.0.0:8082\nadmin_listen: 0.0.0.0:8081',
    'admin_listen',
    2,
    /must have another port: without `admin\.tls`, .* the next port on loopback/,
  ],
  ['X9 no port after that of the admin listener', 'admin_listen: 0.0.0.0:65535', 'admin_listen', 1, /another port/],
  ['a limit of zero', 'limits:\n  requests_per_minute: 0', 'limits.requests_per_minute', 2, /at least 1/],
  ['a duration without a unit', 'timeouts:\n  idle: "5"', 'timeouts.idle', 2, /must be a duration/],
  ['a duration of days', 'timeouts:\n  idle: 25h', 'timeouts.idle', 2, /24h/],
  ['a proxy that is no address', 'trusted_proxies:\n  - 10.0.0.0/8\n  - 10.0.0.0/33', 'trusted_proxies[1]', 3, /CIDR/],
  ['a short seal key', 'seal_key: abc', 'seal_key', 1, /32 bytes in base64/],
  ['a broken reference', 'store: "${a b}"', 'store', 1, /neither \$\{NAME\} nor/],
]

test('U1 upstreams of one profile share it, so that a request is built once for all of them', () => {
  const list = '[{ name: up1, upstream_model: x, profile: openai }, { name: up1, upstream_model: y, profile: openai }]'
  const { routes } = load(catalog(routed(list))).catalog.models.get('m')!
  assert.strictEqual(routes[0]!.serving.profile, routes[1]!.serving.profile)
})

for (const [name, source, path, line, message] of refusals) {
  test(`X4 ${name} is refused with its key and line`, () => {
    const problems = problemsOf(source)
    assert.deepStrictEqual(
      problems.map((problem) => [problem.path, problem.line]),
      [[path, line]],
    )
    assert.match(problems[0]!.message, message)
    if (path) assert(problems[0]!.message.startsWith(path))
  })
}

test('a YAML syntax error is reported without a quote of the file', () => {
  const [problem] = problemsOf('upstreams: { up1: { accounts: [{ name: a, key: canary-a } canary-b ] } }')
  assert.match(problem?.message ?? '', /not valid YAML/)
  assert.doesNotMatch(problem?.message ?? '', /canary/)
})

test('all mistakes are reported at once, in the order of the file', () => {
  const source = 'listen: x\nlog: { level: debug }\nnonsense: 1\ntimeouts: { idle: never }\n'
  assert.deepStrictEqual(
    problemsOf(source).map(({ path }) => path),
    ['listen', 'log.level', 'nonsense', 'timeouts.idle'],
  )
})

test('a chain of anchors that multiplies is refused', () => {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
  for (let i = 1; i < 12; i++)
    lines.push(
      `a${i}: &a${i} [${Array(10)
        .fill(`*a${i - 1}`)
        .join(', ')}]`,
    )
  assert.match(problemsOf(lines.join('\n'))[0]?.message ?? '', /anchors too often/)
})

test('durations may be numbers, or have other units', () => {
  const { timeouts } = load('timeouts: { idle: 1500, total: 1h, ping: 0.5s, drain_delay: 0 }')
  assert.deepStrictEqual(
    [timeouts.idleMs, timeouts.totalMs, timeouts.pingMs, timeouts.drainDelayMs],
    [1500, 3_600_000, 500, 0],
  )
})

test('issue 46.8 a duration accepts days, up to the bound of its own key', () => {
  const bounds = { total: '7d', drain_deadline: '7d', first_byte_stream: '7d', idle: '24h', connect: '1d', ping: '24h' }
  const { timeouts } = load(`timeouts: { ${Object.entries(bounds).map(([key, most]) => `${key}: ${most}`)} }`)
  assert.deepEqual([timeouts.totalMs, timeouts.connectMs, timeouts.idleMs], [7 * 86_400_000, 86_400_000, 86_400_000])
  for (const [key, most] of Object.entries(bounds)) {
    const [problem] = problemsOf(
      `timeouts: { ${key}: ${most.endsWith('d') ? `${Number.parseInt(most, 10)}.01d` : '25h'} }`,
    )
    assert.match(problem!.message, new RegExp(`duration of 1ms to ${most === '1d' ? '24h' : most}|0ms to ${most}`), key)
  }
})

test('X4 if no upstream is asked, only secrets and files of a server may refer to variables that are not set', () => {
  const secrets = whole
    .replace(
      'base_url: http://127.0.0.1:9001/v1/',
      'base_url: http://127.0.0.1:9001/v1/\n    headers: { x-a: "${NO_A}" }',
    )
    .concat(
      'seal_key: "${NO_SEAL}"\n',
      'metrics: { token: "${NO_TOKEN}" }\n',
      'webhooks: [{ url: "${NO_HOOK}/a", secret: "${NO_SECRET}" }, { url: "https://hooks.example/${NO_PATH}", secret: "whsec_${NO_SECRET}" }]\n',
      'state_dir: "${NO_FOLDER}/triwire"\n',
      'tls: { cert: "${NO_FOLDER}/cert.pem", key: "${NO_FOLDER}/key.pem" }\n',
    )
  writeFileSync(join(folder, 'a.yaml'), secrets)
  const options = { config: 'a.yaml', isWithoutKeys: true, isWithoutFiles: true }
  const config = loadConfig(options, {}, folder)
  assert.strictEqual(config.catalog.entries.length, 2)
  writeFileSync(join(folder, 'a.yaml'), secrets.replace('owner: acme', 'owner: "${NO_OWNER}"'))
  assert.throws(
    () => loadConfig(options, {}, folder),
    (error: ConfigError) =>
      error.problems.length === 1 && /NO_OWNER, which is not set/.test(error.problems[0]!.message),
  )
  assert.strictEqual(problemsOf(secrets, {}).length, 11)
  writeFileSync(join(folder, 'a.yaml'), secrets.replace(/^store:.*$/m, '').concat('store: "${NO_STORE}"\n'))
  assert.throws(() => loadConfig(options, {}, folder), /NO_STORE, which is not set/)
  assert.ok(loadConfig({ ...options, isWithoutStore: true }, {}, folder))
})

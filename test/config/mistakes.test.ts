// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the configuration look like placeholders
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { labelWordCure } from '../../src/accounts/labels.ts'
import { loadConfig } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/problem.ts'
import { earlierStoreMistake } from '../../src/config/store-place.ts'
import { testFolder } from '../support/folder.ts'

/*
 * What people get wrong in a configuration, and the whole text that they read (N-F14, N-F18). More of it, by key and line, is in
 * load.test.ts, and what is wrong with ways to an upstream in reach.test.ts.
 */

const folder = testFolder('mistakes')

const model = (more = '') =>
  `{ id: m, wire: chat, upstream: up, max_output_tokens: 9, prices: { input: "1", output: "1" }${more} }`
const upstream = (more = '', key = 'k') =>
  `upstreams: { up: { base_url: "https://h.example", accounts: [{ name: a, key: ${key} }]${more} } }`
const file = (models: string, more = upstream()) => `${more}\ncatalog: { pinned: 2026-11-01, models: [${models}] }`

function textsOf(source: string | Uint8Array, env: NodeJS.ProcessEnv = {}): string[] {
  writeFileSync(join(folder, 'a.yaml'), source)
  try {
    return loadConfig({ config: 'a.yaml' }, env, folder).warnings.map(({ message }) => `warning: ${message}`)
  } catch (error) {
    assert.ok(error instanceof ConfigError, `${error}`)
    return error.problems.map(({ line, message }) => (line === undefined ? message : `${line}: ${message}`))
  }
}

const key = 'upstreams.up.accounts[0].key'
const dollar = `1: ${key} must not begin with \`$\`; for an environment variable write "\${NAME}", with the braces`
const blank = `1: ${key} must not begin or end with a blank or a line break`
const word = `1: ${key} must hold one key and nothing else: a single word`
const price = 'must be a decimal of at most 9 places in quotes, such as "0.25": credits per million tokens'

/** Prices of which that of a cache is exchanged with that of the input, and a tier with a price of one token in a step. */
const exchanged = '{ input: "1", output: "2", cache_read: "5" }'
const tierSteps = 'tiers: { flex: { input: "1", output: "2", steps: [{ above: 9, input: "1", output: "0.00002" }] } }'

/** A sign-in with one rule for these models. */
const signIn = (models: string) =>
  `api_url: https://gw.example\nseal_key: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\nsign_in: { issuer: "https://idp.example", client_id: x, client_secret: "0123456789abcdef", rules: [{ groups: [dev], account: acme, models: "${models}" }] }`

/** A name, the file, and all that is said of it. */
type Mistake = [name: string, source: string | Uint8Array, told: string | RegExp, env?: NodeJS.ProcessEnv]

/** Members of a model in LiteLLM's words, and the end of what is said of each. */
const wordsOfLitellm: [string, RegExp][] = [
  ['litellm_params: {}', /its settings are keys of the model/],
  ['input_cost_per_token: 3e-7', /write `input` under `prices`: .* times 1,000,000$/],
  ['max_tokens: 4', /write `max_output_tokens`$/],
  ['api_base: os.environ/X', /write `base_url`, of an entry of `upstreams`$/],
  ['fallbacks: [n]', /write an entry of `catalog\.models` with `id` and `chain`$/],
  ['upstream_model: os.environ/X', /is LiteLLM's way to name a variable, which means nothing here; write "\$\{X\}"$/],
]

const mistakes: Mistake[] = [
  ['a key as a shell writes it', upstream('', '"$OPENAI_API_KEY"'), dollar],
  ['a key with a stray dollar', upstream('', '"$sk-1"'), dollar],
  ['a key from a variable with a line break', upstream('', '"${KEY}"'), blank, { KEY: 'sk-canary\n' }],
  [
    'a key that is empty',
    upstream('', '""'),
    `1: ${key} must not be empty; where the upstream asks for none, write any text`,
  ],
  ['a key with a blank before it', upstream('', '" sk-1"'), blank],
  ['a key of two words', upstream('', '"Bearer sk-1"'), word],
  ...([
    'os.environ/OPENAI_API_KEY',
    'env.OPENAI_API_KEY',
    'env:KEY',
    'process.env.KEY',
    '{{KEY}}',
    '%KEY%',
    '<your-key>',
    "os.environ['KEY']",
    'os.getenv(KEY)',
    '{env:KEY}',
    "process.env['KEY']",
    'file:/run/secrets/key',
    'op://vault/item/key',
    'YOUR_API_KEY',
    'sk-...',
  ].map((text) => [
    `NEW-8 a key in other programs' words: ${text}`,
    upstream('', `"${text}"`),
    `1: ${key} must be the key itself, and other programs' words for a variable mean nothing here; write "\${NAME}"`,
  ]) satisfies Mistake[]),
  ...([`"'sk-1'"`, `'"sk-1"'`, '"`sk-1`"', `"'sk-1"`, `'sk-1"'`, `'\\"sk-1\\"'`].map((text) => [
    `NEW-8 a key in inner quotes: ${text}`,
    upstream('', text),
    `1: ${key} must not have quotes of its own: take the inner ones away`,
  ]) satisfies Mistake[]),
  ...(['model_list: []', 'litellm_settings: {}', 'router_settings: {}', 'general_settings: {}'].map((text) => [
    `issue 50 a section of LiteLLM's: ${text}`,
    text,
    /^1: \w+ is not a known key; it is LiteLLM's: .*triwire import litellm FILE makes a configuration of it$/,
  ]) satisfies Mistake[]),
  ...wordsOfLitellm.map(
    ([text, told]): Mistake => [
      `issue 50 a word of LiteLLM's in a model: ${text}`,
      file(model(`, hosted_tools: refuse, ${text}`)),
      told,
    ],
  ),
  ...([
    ['store', 'store: os.environ/DB', 'DB'],
    ['upstreams.up.base_url', upstream().replace('https://h.example', 'os.environ/BASE'), 'BASE'],
    ['trusted_proxies[0]', 'trusted_proxies: ["os.environ/not a name"]', 'NAME'],
    ['upstreams.up.headers.x-a', upstream(', headers: { x-a: os.environ/A }'), 'A'],
  ].map(([path, text, name]) => [
    `issue 50 a variable in LiteLLM's words: ${path}`,
    text!,
    `1: ${path} is LiteLLM's way to name a variable, which means nothing here; write "\${${name}}"`,
  ]) satisfies Mistake[]),
  ...(['3e-7', '"3e-7"', '".0000003"', '"2.5E-06"'].map((text) => [
    `issue 50 a price of one token, as LiteLLM writes it: ${text}`,
    file(model(', hosted_tools: refuse').replace('input: "1"', `input: ${text}`)),
    `2: catalog.models[0].prices.input ${price}; a price of one token, as LiteLLM has it, is multiplied by 1,000,000`,
  ]) satisfies Mistake[]),
  ...((
    [
      ['prices', (text: string) => text.replace('input: "1", output: "1"', 'input: 0.000003, output: "0.000015"')],
      [
        'prices.steps[0]',
        (text: string) =>
          text.replace('output: "1"', 'output: "1", steps: [{ above: 9, input: "0.000006", output: "0.00002" }]'),
      ],
      [
        'prices.tiers.flex',
        (text: string) =>
          text.replace('output: "1"', 'output: "1", tiers: { flex: { input: "0.000001", output: "0.000009" } }'),
      ],
      [
        'prices[0]',
        (text: string) =>
          text.replace(
            /prices: (\{ input: "1", output: "1"[^}]*\})/,
            'prices: [{ input: "0.000003", output: "0.000015" }]',
          ),
      ],
      [
        'cost',
        (text: string) => text.replace('hosted_tools', 'cost: { input: "0.000003", output: "0.000015" }, hosted_tools'),
      ],
    ] as const
  ).map(([place, change]) => [
    `issue 50 prices of one token, as LiteLLM has them: ${place}`,
    change(file(model(', hosted_tools: refuse'))),
    `2: catalog.models[0].${place}.input and \`output\` are prices of one token, as LiteLLM has them: multiply them by 1,000,000`,
  ]) satisfies Mistake[]),
  ...(['*', 'openai/*'].map((name) => [
    `issue 50 a model of an upstream that would be all models: ${name}`,
    file(model(`, hosted_tools: refuse, upstream_model: "${name}"`)),
    '2: catalog.models[0].upstream_model must be one model without `*`: list each model, or have `catalog import` write them',
  ]) satisfies Mistake[]),
  [
    'NEW-8 an id that would be all models',
    file(model(', hosted_tools: refuse').replace('id: m', 'id: "openai/*"')),
    '2: catalog.models[0].id must be one id without `*`: list each model, or have `catalog import` write them',
  ],
  ...(['/v1/v1', '/openai/v1/v1/x', '/v1beta/v1beta', '/v1//v1', '/V1/v1/'].map((path) => [
    `NEW-8 a version twice: ${path}`,
    upstream().replace('h.example', `h.example${path}`),
    '1: upstreams.up.base_url has its version twice, such as `/v1/v1`: write it once',
  ]) satisfies Mistake[]),
  [
    'NEW-8 a version twice in a path of a wire',
    upstream(', paths: { chat: /v1/v1/chat/completions }'),
    '1: upstreams.up.paths.chat has its version twice, such as `/v1/v1`: write it once',
  ],
  [
    'NEW-8 a webhook secret in inner quotes',
    `webhooks: [{ url: "https://h.example", secret: "'0123456789abcdef'", events: [upstream_down] }]`,
    '1: webhooks[0].secret must not have quotes of its own: take the inner ones away',
  ],
  ...(['api.example', '203.0.113.5', '[2001:db8::1]:8000'].map((host) => [
    `NEW-8 keys in plain text: ${host}`,
    `${file(model(', hosted_tools: refuse')).replace('https://h.example', `http://${host}`)}`,
    'warning: upstreams.up.base_url lets its keys be read by everybody on their way over the internet: use https://',
  ]) satisfies Mistake[]),
  [
    'NEW-8 a day to come',
    file(model(', hosted_tools: refuse')).replace('2026-11-01', '2231-01-01'),
    'warning: catalog.pinned is a day to come: write the day on which the list was made',
  ],
  ...(['0.000001', '0.00099'].map((text) => [
    `NEW-8 a price by the token: ${text}`,
    file(model(', hosted_tools: refuse').replace('input: "1"', `input: "${text}"`)),
    'warning: catalog.models[0].prices.input is less than 0.001 for a million tokens: is it the price of one token? Multiply it by 1,000,000',
  ]) satisfies Mistake[]),
  [
    'NEW-8 a price by the token, of a step',
    file(
      model(', hosted_tools: refuse').replace(
        'output: "1"',
        'output: "1", steps: [{ above: 9, input: "1", output: "0.00001" }]',
      ),
    ),
    'warning: catalog.models[0].prices.steps[0].output is less than 0.001 for a million tokens: is it the price of one token? Multiply it by 1,000,000',
  ],
  [
    'NEW-8 a cache dearer than the input',
    file(model(', hosted_tools: refuse').replace('output: "1"', 'output: "1", cache_read: "1.1"')),
    'warning: catalog.models[0].prices.cache_read is dearer than `input`, though providers sell what they read from a cache for less: are they exchanged?',
  ],
  ...(
    [
      ['prices.tiers.flex.output', 'tiers: { flex: { input: "1", output: "0.00002" } }'],
      ['prices.geos.us.input', 'geos: { us: { input: "0.00002", output: "1" } }'],
      ['prices.bands[0].input', 'bands: [{ name: n, zone: UTC, hours: "00:00-06:00", input: "0.00002", output: "1" }]'],
      ['prices.tiers.flex.steps[0].output', tierSteps],
      ['prices.cache_read', 'cache_read: "0.0000003"'],
      ['prices.cache_write', 'cache_write: "0.0000003"'],
    ] as const
  ).map(
    ([place, more]): Mistake => [
      `NEW-8 a price by the token: ${place}`,
      file(model(', hosted_tools: refuse').replace('output: "1"', `output: "1", ${more}`)),
      `warning: catalog.models[0].${place} is less than 0.001 for a million tokens: is it the price of one token? Multiply it by 1,000,000`,
    ],
  ),
  ...(
    [
      [
        'prices.tiers.flex',
        (text: string) => text.replace('output: "1"', `output: "1", tiers: { flex: ${exchanged} }`),
      ],
      ['cost', (text: string) => text.replace('hosted_tools', `cost: ${exchanged}, hosted_tools`)],
      [
        'upstream[0].cost',
        (text: string) => text.replace('upstream: up', `upstream: [{ name: up, cost: ${exchanged} }]`),
      ],
      ['plans.gold.models.m', (text: string) => `${text}\nplans: { gold: { models: { m: ${exchanged} } } }`],
    ] as const
  ).map(
    ([place, change]): Mistake => [
      `NEW-8 a cache dearer than the input: ${place}`,
      change(file(model(', hosted_tools: refuse'))),
      `warning: ${place.startsWith('plans') ? '' : 'catalog.models[0].'}${place}.cache_read is dearer than \`input\`, though providers sell what they read from a cache for less: are they exchanged?`,
    ],
  ),
  [
    'NEW-8 the port of OTLP over gRPC',
    'telemetry: { otlp: { endpoint: "http://127.0.0.1:4317" } }',
    'warning: telemetry.otlp.endpoint has the port of OTLP over gRPC, which is not spoken here: collectors take OTLP over HTTP at 4318',
  ],
  ...(['nosuch', 'm,nosuch', 'nosuch-*'] as const).map(
    (models): Mistake => [
      `NEW-8 models of a sign-in rule that are not there: ${models}`,
      `${signIn(models)}\n${file(model(', hosted_tools: refuse'))}`,
      'warning: sign_in.rules[0].models has a name that fits no model of the catalog, so that nobody can ask for it: write ids of `catalog.models`',
    ],
  ),
  [
    'NEW-8 a webhook over plain HTTP',
    'webhooks: [{ url: "http://h.example", secret: "0123456789abcdef", events: [upstream_down] }]',
    'warning: webhooks[0].url is sent in plain text over the internet: use https://',
  ],
  [
    'Y18 an implicit cache key, and a profile whose accepted fields are not a list',
    file(model(', implicit_key: account, profile: { extends: openai, accepts: { prompt_cache_key: true } }')),
    '2: catalog.models[0].profile.accepts must be a list of request fields',
  ],
  ['a key with a tab', upstream('', '"sk\\t1"'), word],
  ['a key with a control character', upstream('', '"sk\\e1"'), word],
  ['a key with quotes of a word processor', upstream('', '"“sk-1”"'), word],
  ...([
    ['labels: [apollo]', 'must be a map of keys', 'labels'],
    ['labels: { project: apollo }', 'must be a list of values', 'labels.project'],
    ['labels: { project: [] }', 'must have a value', 'labels.project'],
    ['labels: { project: [a b] }', labelWordCure, 'labels.project[0]'],
    ['labels: { project: ["a=b"] }', labelWordCure, 'labels.project[0]'],
    ['labels: { project: ["a,b"] }', labelWordCure, 'labels.project[0]'],
    ['labels: { project: [2027] }', labelWordCure, 'labels.project[0]'],
    [`labels: { project: [${'x'.repeat(65)}] }`, labelWordCure, 'labels.project[0]'],
    ['labels: { "pro ject": [a] }', labelWordCure, 'labels.pro ject'],
    [
      `labels: { a: [${Array.from({ length: 600 }, (_, at) => `a${at}`)}], b: [${Array.from({ length: 401 }, (_, at) => `b${at}`)}] }`,
      'must have 1000 values at most, of all dimensions together',
      'labels',
    ],
  ].map(([source, told, key]) => [`Y21 ${source!.slice(0, 40)}`, source!, `1: ${key} ${told}`]) satisfies Mistake[]),
  ['a key of more than 8 KB', upstream('', `"${'k'.repeat(8_193)}"`), word],
  [
    'an alias without an anchor',
    'log: {}\nlisten: *public',
    '2: the file refers to an anchor that is not set before it; text that begins with `*` needs quotes',
  ],
  [
    'two documents',
    'log: {}\n---\nlog: {}',
    /^\d: the file holds more than one document here: take out the line `---`, or what follows it$/,
  ],
  [
    'UTF-16',
    Buffer.from('\ufefflog: {}', 'utf16le'),
    '1: the file is not UTF-8: it looks like UTF-16; save it as UTF-8',
  ],
  ['Latin-1', Buffer.from('store: é.db', 'latin1'), '1: the file is not UTF-8: save it as UTF-8'],
  [
    'a reference without quotes in braces',
    'upstreams: { up: { base_url: "https://h.example", accounts: [{ name: a, key: ${KEY} }] } }',
    /^1: the file is not valid YAML: .*; within braces and brackets a reference needs quotes: "\$\{NAME\}"$/,
  ],
  [
    'a tab for an indent',
    'log:\n\tlevel: info',
    /^2: the file is not valid YAML: Tabs are not allowed as indentation$/,
  ],
  ['a quote that does not end', 'store: "a', /^1: the file is not valid YAML: Missing closing "quote$/],
  [
    'a colon too many',
    'store: a: b',
    /^1: the file is not valid YAML: Nested mappings are not allowed in compact mappings$/,
  ],
  ['a key without a value where a map is wanted', 'log:', '1: log must be a map of keys'],
  [
    'a city for a time zone',
    'reporting: { time_zone: berlin }',
    '1: reporting.time_zone must be the name of a time zone, such as UTC, Europe/Berlin or Asia/Kolkata; did you mean Europe/Berlin?',
  ],
  [
    'what is no time zone',
    'reporting: { time_zone: the office }',
    '1: reporting.time_zone must be the name of a time zone, such as UTC, Europe/Berlin or Asia/Kolkata',
  ],
  [
    'a week that begins on a Tuesday',
    'reporting: { week_starts: tuesday }',
    '1: reporting.week_starts must be one of: monday, sunday, saturday',
  ],
  ['a number for the file', '7', '1: the file must be a map of keys, such as `listen: 127.0.0.1:8080`'],
  ['JSON that is a list', '["a"]', '1: the file must be a map of keys, such as `listen: 127.0.0.1:8080`'],
  ['a port alone', 'listen: 8080', '1: listen must be host:port, such as 127.0.0.1:8080 or [::1]:8080'],
  [
    'an address with a scheme',
    'listen: http://127.0.0.1:8080',
    '1: listen must be host:port, such as 127.0.0.1:8080 or [::1]:8080',
  ],
  ['IPv6 without brackets', 'listen: ::1:8080', /^1: listen must be host:port/],
  ['an empty store', 'store: ""', '1: store must be the path of a file, or the URL of a database in PostgreSQL'],
  ['yes for true', 'headers: { balance: yes }', '1: headers.balance must be true or false'],
  ['months without end', 'reporting: { keep: 100000000 }', '1: reporting.keep must be a whole number from 1 to 1200'],
  [
    'a duration beyond all numbers',
    'timeouts: { connect: 1e30 }',
    /^1: timeouts\.connect must be a duration of \w+ to 24h/,
  ],
  ...[
    ...[' '.repeat(16), '\\t'.repeat(16), '\\u200b'.repeat(16), '\\u00a0'.repeat(16), ' '.repeat(16).concat('secret')],
    ...['aaaaaaaaaaaaaaaa', '0123456789abcde', 'passwordpassword', `abcdefgh${' '.repeat(8)}`],
    // Bytes that are all the same, with and without the padding of base64.
    ...['AAAAAAAAAAAAAAAAAAAAAA==', 'A'.repeat(43).concat('='), 'ICAgICAgICAgICAgICAgICAgICA=', 'A'.repeat(44)].map(
      (base64) => `whsec_${base64}`,
    ),
    ...['whsec_', `whsec_${'!'.repeat(30)}`, `whsec_${' '.repeat(30)}`],
  ].map(
    (secret) =>
      [
        `BRK-12 a webhook secret that anybody guesses: ${JSON.stringify(secret)}`,
        `webhooks: [{ url: "https://h.example", secret: "${secret}", events: [upstream_down] }]`,
        /^1: webhooks\[0\]\.secret must be whsec_ and at least 16 bytes in base64, or at least 16 characters, 8 of them different/,
      ] as [string, string, RegExp],
  ),
  ...[
    Buffer.alloc(32),
    Buffer.alloc(32, ' '),
    Buffer.alloc(32, 'secret'),
    Buffer.from('0'.repeat(26).concat('123456')),
  ].map(
    (bytes): Mistake => [
      `BRK-12 a seal key that anybody guesses: ${bytes.toString('base64')}`,
      `seal_key: ${bytes.toString('base64').replace('=', bytes[0] === 0 ? '' : '=')}`,
      '1: seal_key must be 32 bytes in base64, 8 of them different; `openssl rand -base64 32` makes one',
    ],
  ),
  ...['aaaaaaaaaaaaaaaa', 'passwordpassword', '0'.repeat(40)].map(
    (token): Mistake => [
      `BRK-12 a token of metrics that anybody guesses: ${token}`,
      `metrics: { token: "${token}" }`,
      /^1: metrics\.token must be at least 16 characters without blanks, 8 of them different; `openssl rand -hex 32` makes some$/,
    ],
  ),
  [
    'a path of no wire',
    'upstreams: { up: { base_url: "https://h.example", paths: { caht: /a }, accounts: [{ name: a, key: k }] } }',
    '1: upstreams.up.paths.caht is not a known key; known here: messages, chat, responses',
  ],
  ...(
    [
      ['think_tags: true', 'must be false, or a map with `open` and `close`'],
      ['reasoning: { levels: high }', 'must be a list of levels'],
      ['tool_choice: auto', 'must be a list of tool choices'],
      ['charges: calls', 'must be a list of charges'],
      ['costly_betas: a', 'must be a list of betas'],
      ['routing_fields: a', 'must be a list of request fields'],
      ['routing_containers: a', 'must be a list of request fields'],
      ['answer_names: a', 'must be a list of names'],
      ['account_faults: a', 'must be a list of parts of texts'],
      ['request_faults: null', 'must be a list of parts of texts'],
      ['call_signature: ""', 'must be text of 1 to 200 characters'],
      ['call_signature: 5', 'must be text of 1 to 200 characters'],
    ] as const
  ).map(
    ([field, cure]): Mistake => [
      `a profile with ${field}`,
      file(model(`, profile: { ${field} }`)),
      new RegExp(`^2: catalog\\.models\\[0\\]\\.profile\\.[a-z_.]+ ${cure}$`),
    ],
  ),
  [
    'a limit with a fraction',
    'limits: { requests_per_minute: 1.5 }',
    '1: limits.requests_per_minute must be a whole number of at least 1',
  ],
  [
    'a limit in quotes',
    'limits: { connections_max: "10" }',
    '1: limits.connections_max must be a whole number of at least 1',
  ],
  [
    'a body of a few bytes',
    'limits: { body_bytes_max: 10 }',
    '1: limits.body_bytes_max must be a whole number of at least 1024',
  ],
  [
    'a duration with a blank',
    'timeouts: { idle: "5 s" }',
    /^1: timeouts\.idle must be a duration of 1ms to 24h, such as 500ms/,
  ],
  ['a duration in days', 'timeouts: { total: 8d }', /^1: timeouts\.total must be a duration of 1ms to 7d/],
  [
    'a duration below zero',
    'timeouts: { drain_delay: -1 }',
    /^1: timeouts\.drain_delay must be a duration of 0ms to 24h/,
  ],
  [
    'a hold that is a word',
    'billing: { hold_output_tokens: all }',
    '1: billing.hold_output_tokens must be a whole number of tokens, or cap',
  ],
  ['a choice in capitals', 'billing: { cut_answers: Bill }', '1: billing.cut_answers must be one of: bill, waive'],
  [
    'one proxy that is no list',
    'trusted_proxies: 10.0.0.1',
    '1: trusted_proxies must be a list of addresses or CIDR ranges',
  ],
  [
    'a trusted proxy by name',
    'trusted_proxies: [nginx]',
    /^1: trusted_proxies\[0\] must be an address or a CIDR range/,
  ],
  [
    'a seal key in hex',
    `seal_key: ${'ab'.repeat(32)}`,
    '1: seal_key must be 32 bytes in base64, 8 of them different; `openssl rand -base64 32` makes one',
  ],
  ['upstreams as a list', 'upstreams: [{ name: up }]', '1: upstreams must be a map of keys'],
  [
    'an upstream with a blank in its name',
    'upstreams: { "my up": {} }',
    /^1: upstreams\.my up must be letters, digits, and \. _ -/,
  ],
  [
    'an upstream without an address',
    'upstreams: { up: { accounts: [{ name: a, key: k }] } }',
    '1: upstreams.up.base_url is missing: it must be text; a value that looks like a number needs quotes',
  ],
  [
    'an address without a scheme',
    'upstreams: { up: { base_url: h.example, accounts: [{ name: a, key: k }] } }',
    '1: upstreams.up.base_url must be an http:// or https:// URL, such as https://api.example.com',
  ],
  [
    'an upstream without accounts',
    'upstreams: { up: { base_url: "https://h.example" } }',
    '1: upstreams.up.accounts is missing: it must be a list of accounts',
  ],
  [
    'an account without a name',
    'upstreams: { up: { base_url: "https://h.example", accounts: [{ key: k }] } }',
    /^1: upstreams\.up\.accounts\[0\]\.name is missing/,
  ],
  [
    'the old word for a key',
    'upstreams: { up: { base_url: "https://h.example", accounts: [{ name: a, key: k, api_key: k }] } }',
    "1: upstreams.up.accounts[0].api_key is not a known key; it is LiteLLM's: write `key`, of an entry of `accounts`",
  ],
  [
    'a key that nobody knows',
    'upstreams: { up: { base_url: "https://h.example", accounts: [{ name: a, key: k, kee: k }] } }',
    /accounts\[0\]\.kee is not a known key; known here: name, key, key_file, key_command, key_lifetime, enabled/,
  ],
  [
    'a model without a wire',
    file(model(', hosted_tools: refuse').replace('wire: chat, ', '')),
    '2: catalog.models[0].wire is missing: it must be one of: messages, chat, responses',
  ],
  [
    'a vendor for a wire',
    file(model(', hosted_tools: refuse').replace('chat', 'openai')),
    '2: catalog.models[0].wire must be one of: messages, chat, responses',
  ],
  [
    'a price as a sum of money',
    file(model(', hosted_tools: refuse').replace('"1"', '"$3"')),
    `2: catalog.models[0].prices.input ${price}`,
  ],
  [
    'a price with a comma',
    file(model(', hosted_tools: refuse').replace('"1"', '"0,25"')),
    `2: catalog.models[0].prices.input ${price}`,
  ],
  [
    'a price with an exponent',
    file(model(', hosted_tools: refuse').replace('"1"', '1e-7')),
    `2: catalog.models[0].prices.input ${price}; a price of one token, as LiteLLM has it, is multiplied by 1,000,000`,
  ],
  [
    'no price of output',
    file(model(', hosted_tools: refuse').replace(', output: "1"', '')),
    /^2: catalog\.models\[0\]\.prices\.output is missing/,
  ],
  [
    'a maximum of zero',
    file(model(', hosted_tools: refuse').replace('tokens: 9', 'tokens: 0')),
    '2: catalog.models[0].max_output_tokens must be a whole number of at least 1',
  ],
  [
    'a maximum with a unit',
    file(model(', hosted_tools: refuse').replace('tokens: 9', 'tokens: 8k')),
    '2: catalog.models[0].max_output_tokens must be a whole number of at least 1',
  ],
  [
    'a model without a day',
    `${upstream()}\ncatalog: { models: [${model()}] }`,
    '2: catalog.pinned is missing: it must be a day such as 2026-11-01',
  ],
  [
    'models by name',
    `${upstream()}\ncatalog: { pinned: 2026-11-01, models: { m: {} } }`,
    '2: catalog.models must be a list of models',
  ],
  [
    'a model that is only a name',
    file('gpt-6-luna'),
    '2: catalog.models[0] must be a map of keys, such as `id`, `wire`, `upstream` and `prices`',
  ],
  [
    'no upstreams at all',
    `catalog: { pinned: 2026-11-01, models: [${model()}] }`,
    '1: catalog.models[0].upstream must name an entry of upstreams; there is none yet',
  ],
  [
    'a field that costs and is none',
    file(model(', allow: [turbo]')),
    /^2: catalog\.models\[0\]\.allow\[0\] must be one of .*, or a beta with its day$/,
  ],
  [
    'a pattern for a field that is allowed',
    file(model(', allow: ["*_fallbacks"]')),
    /^2: catalog\.models\[0\]\.allow\[0\] must be one of .*, or a beta with its day$/,
  ],
  [
    'a switch that is no word of it',
    file(model(', hosted_tools: no')),
    '2: catalog.models[0].hosted_tools must be one of: pass, refuse',
  ],
  [
    'upstreams without a catalog',
    upstream(),
    'warning: upstreams is not used: without a `catalog` the built-in simulator answers; list the models under `catalog`',
  ],
  [
    'a key of a profile for another wire',
    file(model(', hosted_tools: refuse, profile: { assistant_first: true }')),
    'warning: catalog.models[0].profile.assistant_first is for models of the wire messages and says nothing of this one, which is chat; take it out',
  ],
  [
    'the same in another spelling, of an upstream of its own',
    file(
      model(', hosted_tools: refuse')
        .replace('upstream: up', 'upstream: [{ name: up, profile: { maxField: max_tokens } }]')
        .replace('chat', 'responses'),
    ),
    'warning: catalog.models[0].upstream[0].profile.max_field is for models of the wire chat and says nothing of this one, which is responses; take it out',
  ],
]

for (const [name, source, told, env] of mistakes) {
  test(`N-F14 N-F18 ${name} is reported in one text, with its cure`, () => {
    const texts = textsOf(source, env)
    assert.equal(texts.length, 1, texts.join('\n'))
    if (typeof told === 'string') assert.equal(texts[0], told)
    else assert.match(texts[0]!, told)
    assert.doesNotMatch(texts[0]!, /canary/)
  })
}

test('N-F18 a key of a profile that two wires read is reported on the third only', () => {
  const warnings = (wire: string) =>
    textsOf(file(model(', hosted_tools: refuse, profile: { prefill: native }').replace('chat', wire))).filter((text) =>
      text.includes('prefill'),
    )
  assert.deepEqual([warnings('messages'), warnings('chat'), warnings('responses').length], [[], [], 1])
})

test('settings that look like these mistakes but are valid are accepted', () => {
  assert.deepEqual(textsOf(`${upstream('', '"a$b"')}\nlog: {}`).length, 1)
  assert.deepEqual(textsOf('a: &x info\nlog: { level: *x }'.replace('a: &x info\n', 'store: &x error\n')), [])
  assert.deepEqual(textsOf('\ufefflog: {}'), [])
  assert.deepEqual(textsOf('%YAML 1.2\n---\nlog: {}\n'), [])
})

test('N-F14 if no configuration is found, one with a similar name is reported', () => {
  const cwd = testFolder('near')
  writeFileSync(join(cwd, 'triwire.yml'), 'log: {}')
  const told = () => loadConfig({}, {}, cwd).warnings.map(({ message }) => message)
  assert.deepEqual(told(), [
    'triwire.yml lies in the working folder and is not read: call it triwire.yaml, or name it with --config',
  ])
  assert.deepEqual(loadConfig({ config: 'triwire.yml' }, {}, cwd).warnings, [])
  writeFileSync(join(cwd, 'triwire.yaml'), 'log: {}')
  assert.deepEqual(told(), [])
})

test('X8 N-F8 the default store is in the working folder, wherever the file is; a configured one is relative to the file', () => {
  const cwd = testFolder('store-place')
  const below = join(cwd, 'examples')
  mkdirSync(below)
  writeFileSync(join(below, 'a.yaml'), 'log: {}')
  writeFileSync(join(below, 'b.yaml'), 'store: ./b.db')
  const load = (config: string, options = {}) => loadConfig({ config, ...options }, {}, cwd)
  assert.equal(load('examples/a.yaml').store.shown, join(cwd, 'data/triwire.db'))
  assert.equal(load('examples/b.yaml').store.shown, join(below, 'b.db'))
  // What an upgrade finds: a store beside the file, and none in the working folder.
  assert.equal(earlierStoreMistake(load('examples/a.yaml')), undefined)
  mkdirSync(join(below, 'data'))
  writeFileSync(join(below, 'data/triwire.db'), '')
  assert.equal(
    earlierStoreMistake(load('examples/a.yaml')),
    `There is a store at ${join(below, 'data/triwire.db')}, beside the configuration, where triwire kept it before 0.2.0; now the default is ${join(cwd, 'data/triwire.db')}, in the working folder, and there is none: name the one that is meant with --store, TRIWIRE_STORE, or \`store\` in the configuration`,
  )
  assert.equal(earlierStoreMistake(load('examples/b.yaml')), undefined)
  assert.equal(earlierStoreMistake(load('examples/a.yaml', { store: 'x.db' })), undefined)
  mkdirSync(join(cwd, 'data'))
  writeFileSync(join(cwd, 'data/triwire.db'), '')
  assert.equal(earlierStoreMistake(load('examples/a.yaml')), undefined)
})

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { stringify } from 'yaml'
import { needsRestart } from '../../src/config/differences.ts'
import { listProxied } from '../../src/config/egress.ts'
import { endpointsOf } from '../../src/config/endpoints.ts'
import { loadConfig } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/problem.ts'
import { createAuthority, type Pair } from '../support/certificates.ts'
import { testFolder } from '../support/folder.ts'

/* How upstreams are reached, and how the gateway is: addresses, keys, proxies, certificates (P8, issue findings N-F3, N-F4, N-F14). */

const folder = testFolder('reach')
const put = (name: string, text: string) => {
  writeFileSync(join(folder, name), text)
  return name
}

const key = { name: 'a', key: 'hidden-key' }

/** The configuration with one upstream that says these things. */
function load(
  upstream: Record<string, unknown>,
  { env = {}, more = {}, wires = [] }: { env?: NodeJS.ProcessEnv; more?: object; wires?: string[] } = {},
) {
  const models = wires.map((wire) => ({
    id: wire,
    wire,
    upstream: 'up',
    max_output_tokens: 9,
    ...(wire === 'messages' && { profile: { auto_cache: 'off' } }),
    prices: { input: '1', output: '1' },
  }))
  const catalog = models.length > 0 ? { catalog: { pinned: '2026-11-01', models } } : {}
  const up = { base_url: 'https://far.example', accounts: [key], ...upstream }
  put('a.yaml', stringify({ ...catalog, upstreams: { up }, ...more }))
  return loadConfig({ config: 'a.yaml' }, env, folder)
}

function mistakesOf(load: () => unknown): string[] {
  try {
    load()
  } catch (error) {
    assert.ok(error instanceof ConfigError, `${error}`)
    return error.problems.map(({ message }) => message)
  }
  return []
}

/** By base: where messages, chat and responses go. */
const bases: [base: string, messages: string, chat: string, responses: string][] = [
  ['https://h', '/v1/messages', '/v1/chat/completions', '/v1/responses'],
  ['https://h/', '/v1/messages', '/v1/chat/completions', '/v1/responses'],
  ['https://h/v1', '/v1/messages', '/v1/chat/completions', '/v1/responses'],
  ['https://h/v1//', '/v1/messages', '/v1/chat/completions', '/v1/responses'],
  ['https://h/a', '/a/v1/messages', '/a/chat/completions', '/a/responses'],
  ['https://h/a/v1/', '/a/v1/messages', '/a/v1/chat/completions', '/a/v1/responses'],
  [
    'https://h/v1beta/openai',
    '/v1beta/openai/v1/messages',
    '/v1beta/openai/chat/completions',
    '/v1beta/openai/responses',
  ],
  ['https://h/api/paas/v4', '/api/paas/v4/v1/messages', '/api/paas/v4/chat/completions', '/api/paas/v4/responses'],
  ['https://h/xv1', '/xv1/v1/messages', '/xv1/chat/completions', '/xv1/responses'],
]
test('P8 N-F3 a bare host gets /v1, a path stays unchanged, and on messages /v1 is added if it is missing', () => {
  for (const [base, ...expected] of bases) {
    const { messages, chat, responses } = load({ base_url: base }).upstreams.get('up')!.endpoints
    assert.deepEqual(
      [messages, chat, responses],
      expected.map((path) => [path, path]),
      base,
    )
  }
})

/** No wire of today has another path for streams. */
const twice = (path: string) => [path, path]

test('P8 paths replace base and wire path, for the wires they name; a fixed query is added to all', () => {
  const paths = { chat: '/openai/deployments/{model}/chat/completions' }
  const query = { 'api-version': '2024-10-21', 'a b': 'ü&' }
  const { endpoints } = load({ base_url: 'https://h/openai/v1', paths, query }).upstreams.get('up')!
  const behind = '?api-version=2024-10-21&a+b=%C3%BC%26'
  assert.deepEqual(endpoints, {
    chat: twice(`/openai/deployments/{model}/chat/completions${behind}`),
    messages: twice(`/openai/v1/messages${behind}`),
    responses: twice(`/openai/v1/responses${behind}`),
  })
  assert.deepEqual(endpoints, endpointsOf({ baseUrl: 'https://h/openai/v1', paths, query }))
})

const told = (wires: string[], upstream: Record<string, unknown>) =>
  load(upstream, { wires })
    .warnings.filter(({ path }) => path?.startsWith('upstreams'))
    .map(({ path, message }) => [path, message] as const)

test('P8 a base whose path has no version is reported with the URL of its requests, unless paths are configured', () => {
  const [[path, message] = [], ...others] = told(['messages', 'chat', 'responses'], { base_url: 'https://h.example/a' })
  assert.deepEqual([path, others], ['upstreams.up.base_url', []])
  assert.match(
    message!,
    /requests go to `\/a\/chat\/completions` and `\/a\/responses`\. End it in `\/v1` if the provider's address does/,
  )
  assert.deepEqual(told(['messages'], { base_url: 'https://h.example/a' }), [])
  assert.deepEqual(told(['chat', 'responses'], { base_url: 'https://h.example/a/v1' }), [])
  assert.deepEqual(told(['chat'], { base_url: 'https://h.example' }), [])
  assert.deepEqual(told(['chat'], { base_url: 'https://h.example/a', paths: { chat: '/a/chat/completions' } }), [])
})

const authority = createAuthority()
const pair = authority.issue('gateway.example')
const other = authority.issue('gateway.example')
const tls = ({ certFile, keyFile }: Pair) => ({ cert: certFile, key: keyFile })
put('empty', ' \n')
put('two-lines', 'hidden-one\nhidden-two\n')
put('key', '  hidden-from-file\n')

const account = (more: object) => ({ accounts: [{ name: 'a', ...more }] })
const mistakes: [name: string, upstream: Record<string, unknown>, message: RegExp, more?: object][] = [
  [
    'a base that ends in the chat path',
    { base_url: 'https://h/v1/chat/completions/' },
    /up\.base_url must end before `\/v1\/chat\/completions`/,
  ],
  [
    'a base that ends in the responses path',
    { base_url: 'https://h/openai/responses' },
    /must end before `\/responses`, which is the path of a wire/,
  ],
  [
    'a base that ends in the messages path',
    { base_url: 'https://h/anthropic/v1/messages' },
    /must end before `\/v1\/messages`/,
  ],
  ['a path without a slash', { paths: { chat: 'openai' } }, /up\.paths\.chat must be a path from the host's root/],
  ['a path with a query', { paths: { chat: '/a?b=c' } }, /a fixed query goes under `query`/],
  ['a path with another place', { paths: { chat: '/a/{deployment}' } }, /no braces but those of \{model\}/],
  ['a path of no wire', { paths: { completions: '/a' } }, /up\.paths/],
  ['a key header that is none', { key_header: 'api key' }, /up\.key_header must be the name of a header/],
  ['a key header that frames', { key_header: 'Content-Length' }, /must not be a header that means something else/],
  [
    'a key header that is set beside',
    { key_header: 'Api-Key', headers: { 'api-KEY': 'x' } },
    /headers\.api-KEY is the `key_header`/,
  ],
  ['no key at all', account({}), /accounts\[0\] must have one and no more of `key`, `key_file`, `key_command`/],
  ['two kinds of key', account({ key: 'k', key_file: 'key' }), /must have one and no more of/],
  ['a lifetime of a fixed key', account({ key: 'k', key_lifetime: '5m' }), /key_lifetime is for `key_command`/],
  ['a lifetime of no time', account({ key_command: ['x'], key_lifetime: 0 }), /must be a duration of 1s to 20d/],
  ['a command in one text', account({ key_command: 'gcloud auth' }), /must be a list: the program and its arguments/],
  ['a command without a program', account({ key_command: [] }), /must name a program/],
  [
    'a key file that is not there',
    account({ key_file: 'gone' }),
    /key_file names a file that cannot be read \(ENOENT\)/,
  ],
  ['a key file that is a folder', account({ key_file: '.' }), /cannot be read \(no regular file\)/],
  ['a key file that is empty', account({ key_file: 'empty' }), /key_file holds no key: it is empty/],
  ['a key file of two lines', account({ key_file: 'two-lines' }), /key_file must hold one key and nothing else/],
  ['an authority that is none', { ca_file: 'key' }, /up\.ca_file must hold certificates in PEM/],
  ['a proxy of another kind', { proxy: 'socks5://p:1' }, /up\.proxy must be http:\/\/host:port or https:/],
  ['a proxy with a path', { proxy: 'http://p:1/x' }, /up\.proxy must be/],
  ['a proxy with a bare percent', { proxy: 'http://u:hidden%@p:1' }, /up\.proxy must be/],
  ['a proxy whose user ends in a part of an escape', { proxy: 'http://u%4:1hidden@p:1' }, /up\.proxy must be/],
  [
    'a certificate that is none',
    {},
    /tls\.cert must hold certificates in PEM/,
    { tls: { cert: 'key', key: pair.keyFile } },
  ],
  [
    'a key of TLS that is none',
    {},
    /tls\.key must hold a private key in PEM/,
    { tls: { cert: pair.certFile, key: 'key' } },
  ],
  ['half a pair', {}, /tls\.key is missing/, { tls: { cert: pair.certFile } }],
  [
    'a pair that does not fit',
    {},
    /tls\.key is not the key of the first certificate in `tls\.cert`/,
    { tls: { cert: pair.certFile, key: other.keyFile } },
  ],
]
for (const [name, upstream, message, more] of mistakes) {
  test(`P8 N-F14 ${name} is refused with its cure, and without its content`, () => {
    const [first = '', ...others] = mistakesOf(() => load(upstream, { more: more ?? {} }))
    assert.match(first, message)
    assert.deepEqual(others, [])
    assert.doesNotMatch(first, /hidden/)
  })
}

test('P8 a header of a model’s route is not the key header of its upstream', () => {
  const [message] = mistakesOf(() => {
    const route = [{ name: 'up', headers: { 'API-key': 'x' } }]
    const model = { id: 'm', wire: 'chat', upstream: route, max_output_tokens: 9, prices: { input: '1', output: '1' } }
    load({ key_header: 'api-key' }, { more: { catalog: { pinned: '2026-11-01', models: [model] } } })
  })
  assert.match(message ?? '', /models\[0\]\.upstream\[0\]\.headers\.API-key is the `key_header` of its upstream/)
})

test('X4 N-F3 a key comes from a file or a command, whose paths are relative to the configuration', () => {
  const [file] = load(account({ key_file: 'key' })).upstreams.get('up')!.accounts
  assert.deepEqual([file!.key.reveal(), file!.renewal], ['hidden-from-file', { file: join(folder, 'key') }])
  const commandOf = (key_command: string[], more: object = {}) =>
    load(account({ key_command, ...more })).upstreams.get('up')!.accounts[0]!.renewal
  assert.deepEqual(commandOf(['gcloud', 'auth']), { command: ['gcloud', 'auth'], lifetimeMs: 600_000 })
  assert.deepEqual(commandOf(['./bin/token', './x'], { key_lifetime: '45m' }), {
    command: [join(folder, 'bin/token'), './x'],
    lifetimeMs: 2_700_000,
  })
})

test('X4 a command that only looks for the store needs no right to read keys', () => {
  put(
    'b.yaml',
    stringify({ upstreams: { up: { base_url: 'https://h', ...account({ key_file: 'gone' }) } }, tls: tls(pair) }),
  )
  const config = loadConfig({ config: 'b.yaml', isWithoutFiles: true }, {}, folder)
  assert.equal(config.store.shown, join(folder, 'data/triwire.db'))
})

test('an expired certificate is reported, and accepted', () => {
  const expired = authority.issue('gateway.example', -1)
  const { tls: taken, warnings } = load({}, { more: { tls: tls(expired) } })
  assert.equal(taken?.cert, expired.cert)
  assert.match(warnings[0]!.message, /^tls\.cert has expired on \d{4}-\d\d-\d\d: clients refuse it/)
  assert.equal(`${taken?.key}`, '[secret]')
})

type Asked = [base: string, env: NodeJS.ProcessEnv, proxy: string | undefined, source?: string]
const https = { HTTPS_PROXY: 'http://p.example:3128' }
const environments: Asked[] = [
  ['https://far.example', https, 'http://p.example:3128', 'HTTPS_PROXY'],
  ['https://far.example', { https_proxy: 'http://small.example:1', ...https }, 'http://small.example:1', 'https_proxy'],
  ['https://far.example', { https_proxy: '', ...https }, 'http://p.example:3128', 'HTTPS_PROXY'],
  ['https://far.example', { HTTP_PROXY: 'http://p.example:1' }, undefined],
  ['http://far.example', { HTTP_PROXY: 'http://p.example:1' }, 'http://p.example:1', 'HTTP_PROXY'],
  ['http://far.example', { http_proxy: 'p.example:8080' }, 'http://p.example:8080', 'http_proxy'],
  ['http://far.example', https, undefined],
  ...['127.0.0.1:9', 'localhost', '[::1]:9', '127.9.9.9', 'sim.localhost'].map(
    (host): Asked => [`https://${host}`, https, undefined],
  ),
  ...[
    '*',
    'far.example',
    '.example',
    'example',
    'a.b, far.example',
    'a  far.example:443',
    '*.example',
    'FAR.example',
  ].map((no_proxy): Asked => ['https://far.example', { ...https, no_proxy }, undefined]),
  ...['ar.example', 'far.example:8443', 'sub.far.example', '', 'far.example.com'].map(
    (NO_PROXY): Asked => ['https://far.example', { ...https, NO_PROXY }, 'http://p.example:3128', 'HTTPS_PROXY'],
  ),
  ...['10.0.0.0/8', '10.1.2.3', '10.1.2.3:443'].map(
    (NO_PROXY): Asked => ['https://10.1.2.3', { ...https, NO_PROXY }, undefined],
  ),
  ...['10.2.0.0/16,1.2.3', '10.0.0.0/', '10.0.0.0/8.5', '10.0.0.0/0x8', '10.0.0.0/8/8', '10.0.0.0/33'].map(
    (NO_PROXY): Asked => ['https://10.1.2.3', { ...https, NO_PROXY }, 'http://p.example:3128', 'HTTPS_PROXY'],
  ),
  ['https://[2001:db8::7]', { ...https, NO_PROXY: '2001:db8::/32' }, undefined],
  ['https://[2001:db8::7]:8443', { ...https, NO_PROXY: '[2001:db8::7]:8443' }, undefined],
]
test('N-F4 the environment determines which upstreams are reached through its proxy', () => {
  for (const [base, env, proxy, source] of environments) {
    const found = load({ base_url: base }, { env }).upstreams.get('up')!.proxy
    assert.deepEqual([found?.url.reveal(), found?.source], [proxy, source], `${base} ${JSON.stringify(env)}`)
  }
})

test('N-F4 the proxy setting of an upstream overrides the environment, on this machine too', () => {
  const proxyOf = (upstream: object) => load({ ...upstream }, { env: https }).upstreams.get('up')!.proxy
  assert.equal(proxyOf({ proxy: 'none' }), undefined)
  const own = proxyOf({ base_url: 'http://127.0.0.1:9', proxy: 'http://ann:hidden@q.example:1' })!
  assert.deepEqual([own.url.reveal(), own.source], ['http://ann:hidden@q.example:1', 'upstreams.up.proxy'])
  assert.equal(`${own.url}`, '[secret]')
})

test('X15 N-F4 webhooks use the proxy of the environment, or their own, and a change of it needs a restart', () => {
  const hook = { url: 'https://hooks.example/a', secret: 'a plain secret of hooks' }
  const open = (own: object) => load({ proxy: 'none' }, { env: https, more: { webhooks: [hook, { ...hook, ...own }] } })
  const own = open({ proxy: 'q.example:1' })
  assert.deepEqual(listProxied(own), [
    { name: { webhook: 'https://hooks.example/a' }, proxy: 'http://p.example:3128', source: 'HTTPS_PROXY' },
    { name: { webhook: 'https://hooks.example/a' }, proxy: 'http://q.example:1', source: 'webhooks[1].proxy' },
  ])
  const direct = open({ proxy: 'none' })
  assert.deepEqual(
    direct.webhooks.map(({ proxy }) => proxy?.source),
    ['HTTPS_PROXY', undefined],
  )
  assert.equal(open({ url: 'http://127.0.0.1:9/a' }).webhooks[1]!.proxy, undefined)
  assert.deepEqual(needsRestart(own, direct), ['webhooks'])
  put('ca.pem', createAuthority().ca)
  const trusting = open({ ca_file: 'ca.pem' })
  assert.match(trusting.webhooks[1]!.ca!, /BEGIN CERTIFICATE/)
  assert.deepEqual(needsRestart(open({}), trusting), ['webhooks'])
  put('empty.pem', '')
  const [mistake] = mistakesOf(() => open({ ca_file: 'empty.pem' }))
  assert.match(mistake!, /^webhooks\[1\]\.ca_file must hold certificates/)
})

test('N-F4 a command that asks no upstream works beside a variable that does not name a proxy', () => {
  load({}, { more: {} })
  const glance = (env: NodeJS.ProcessEnv) => loadConfig({ config: 'a.yaml', isWithoutKeys: true }, env, folder)
  assert.equal(glance({ HTTPS_PROXY: 'socks5://127.0.0.1:1080' }).upstreams.get('up')!.proxy, undefined)
})

test('N-F4 a variable that does not name a proxy is reported by its name, once, and only if it would be used', () => {
  const env = { HTTPS_PROXY: 'ftp://u:hidden@p' }
  const [message, ...others] = mistakesOf(() => load({}, { env, more: {} }))
  assert.match(message!, /^HTTPS_PROXY must be http:\/\/host:port/)
  assert.doesNotMatch(message!, /hidden/)
  assert.deepEqual(others, [])
  const near = { base_url: 'http://h' }
  assert.deepEqual(
    mistakesOf(() => load(near, { env })),
    [],
  )
  // People who sign in are sent through the proxy too.
  const rules = [{ groups: ['dev'], account: 'acme' }]
  const sign_in = { issuer: 'https://login.example', client_id: 'triwire', rules }
  const more = { api_url: 'https://llm.example', sign_in }
  assert.deepEqual(
    mistakesOf(() => load(near, { env, more })),
    [message],
  )
})

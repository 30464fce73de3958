import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import test from 'node:test'
import { stringify } from 'yaml'
import { presets } from '../../src/catalog/presets.ts'
import type { ModelWire } from '../../src/catalog/wire-names.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { atEnd } from '../support/at-end.ts'
import { createAuthority } from '../support/certificates.ts'
import { canary, roleArn, startCloud } from '../support/clouds.ts'
import { startEgressProxy } from '../support/egress-proxy.ts'
import { testFolder } from '../support/folder.ts'
import { listen } from '../support/listen.ts'
import { shortAnswers } from '../support/short-answers.ts'
import { startTlsServer } from '../support/tls-server.ts'
import { type Run, run, runWarm } from './run.ts'

/* What `triwire check --online` says of what an upstream does: each row is an upstream with one mistake in it. */

type Told = {
  upstream: string
  account: string
  model: string
  ok: boolean
  trouble: string | null
  note: string
  credential?: object
}

const folder = testFolder('online')

/** A model for each upstream, named as it is. */
async function check(
  upstreams: Record<string, Record<string, unknown>>,
  args: string[] = [],
  how = runWarm,
  env: Record<string, string> = {},
) {
  const models = Object.entries(upstreams).map(([name, { model }]) => ({
    id: name,
    wire: 'chat',
    upstream: name,
    max_output_tokens: 100,
    prices: { input: '1', output: '1', cache_write: '1' },
    ...(model as object),
  }))
  const entries = Object.entries(upstreams).map(([name, { model: _, ...upstream }]) => {
    return [name, { accounts: [{ name: 'a', key: 'hidden-key' }], ...upstream }]
  })
  const file = join(folder, 'triwire.yaml')
  const timeouts = { connect: '2s' }
  const limits = { catalog: { pinned: '2026-11-01', models }, upstreams: Object.fromEntries(entries), timeouts }
  writeFileSync(file, stringify(limits))
  const done = await how(['check', '--online', '--json', ...args, '--config', file], {
    env: { NO_PROXY: '', no_proxy: '', ...env },
  })
  return { done, told: rowsOf(done) }
}

function rowsOf({ stdout, stderr }: Run): Told[] {
  assert.ok(stdout, stderr)
  return JSON.parse(stdout).online
}

/** Answers every request like this. */
async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  return `http://127.0.0.1:${await listen(createServer((request, response) => void request.resume().on('end', () => answer(request, response))))}`
}

const refusing = (status: number, error: Record<string, unknown> | string, type = 'application/json') =>
  serve((_, response) => {
    response.writeHead(status, { 'content-type': type })
    response.end(typeof error === 'string' ? error : JSON.stringify({ error }))
  })

test('N-F14 check --online asks each account once, by the production paths, and words errors for the person who maintains the file', async () => {
  const simulator = await startSimulator({ record: true })
  atEnd(simulator.close)
  const { url: good } = simulator
  const gone = createServer()
  const freePort = await listen(gone)
  const authority = createAuthority()
  const tls = await startTlsServer(authority.issue('elsewhere.example'))
  const proxy = await startEgressProxy()
  proxy.refuse(407)
  const babble = await listen(createTcpServer((socket) => void socket.on('error', () => {}).end('SSH-2.0-Open\r\n')))
  const messages = { wire: 'messages', profile: 'anthropic' }
  const rows: [name: string, upstream: Record<string, unknown>, trouble: string | null, note: RegExp][] = [
    ['right', { base_url: good, model: { upstream_model: 'sim' } }, null, /^answers$/],
    ['right-messages', { base_url: good, model: messages }, null, /^answers$/],
    ['right-responses', { base_url: good, model: { wire: 'responses' } }, null, /^answers$/],
    ['streams', { base_url: good, model: { profile: { prefer_stream: true } } }, null, /^answers$/],
    [
      'wrong-host',
      { base_url: 'http://no-such-host.invalid' },
      'host',
      /^there is no host `no-such-host\.invalid`: check base_url/,
    ],
    [
      'wrong-port',
      { base_url: `http://127.0.0.1:${freePort}` },
      'connection',
      /^nothing answers at 127\.0\.0\.1:\d+: check host and port of base_url/,
    ],
    [
      'https-for-http',
      { base_url: good.replace('http', 'https') },
      'tls',
      /^the server speaks plain HTTP there: write http:\/\//,
    ],
    ['http-for-https', { base_url: tls.url.replace('https', 'http') }, 'protocol', /https:\/\//],
    [
      'unknown-authority',
      { base_url: tls.url },
      'tls',
      /^the certificate of 127\.0\.0\.1 is not trusted \([A-Z_]+\): name the authority that signed it.* with ca_file$/,
    ],
    [
      'other-name',
      { base_url: tls.url, ca_file: authority.caFile },
      'tls',
      /^the certificate is not for 127\.0\.0\.1: check the host/,
    ],
    [
      'proxy-refuses',
      { base_url: 'https://far.example', proxy: proxy.url },
      'proxy',
      /^the proxy of upstreams\.proxy-refuses\.proxy refuses the credentials \(status 407\): check user and password/,
    ],
    [
      'proxy-407',
      { base_url: 'http://far.example', proxy: proxy.url },
      'proxy',
      /refuses the credentials \(status 407\)/,
    ],
    [
      'no-proxy-there',
      { base_url: 'https://far.example', proxy: `http://127.0.0.1:${freePort}` },
      'proxy',
      /proxy cannot be reached: check its address, and that it runs, or ask directly with `proxy: none`$/,
    ],
    [
      'wrong-key',
      {
        base_url: await refusing(401, {
          message: 'Incorrect API key provided: sk-hidde************cdef.',
          code: 'invalid_api_key',
        }),
      },
      'key',
      /^the provider refuses the key \(status 401\), in its words "Incorrect API key provided: …\.?": check where/,
    ],
    [
      'echoed-key',
      {
        base_url: await serve(({ headers }, response) =>
          response.writeHead(401).end(JSON.stringify({ error: { message: `Who is ${headers.authorization}?` } })),
        ),
      },
      'key',
      /"Who is Bearer …\?"/,
    ],
    [
      'no-right',
      { base_url: await refusing(403, { message: 'No access.' }) },
      'permission',
      /\(status 403\), in its words "No access\."/,
    ],
    [
      'firewall',
      { base_url: await refusing(403, '<h1>no</h1>', 'text/html') },
      'permission',
      /^something before the provider refuses/,
    ],
    [
      'wrong-wire',
      { base_url: await refusing(404, 'not found', 'text/plain'), model: messages },
      'path',
      /^there is nothing at `.*messages` .*: the provider may not speak `wire: messages`, most speak `wire: chat`/,
    ],
    [
      'wrong-path',
      { base_url: `${good}/api` },
      'path',
      /^there is nothing at `\/api\/chat\/completions` \(status 404\)/,
    ],
    [
      'a-web-page',
      { base_url: await refusing(200, '<html>', 'text/html') },
      'path',
      /^the answer at `\/v1\/chat\/completions` is not that of a model \(text\/html\)/,
    ],
    ['no-method', { base_url: await refusing(405, {}) }, 'path', /\(status 405\)/],
    [
      'wrong-model',
      {
        base_url: await refusing(404, { message: 'The model `gpt-nope` does not exist.', code: 'model_not_found' }),
        model: { upstream_model: 'gpt-nope' },
      },
      'model',
      /^the provider does not know the model `gpt-nope` \(status 404\).*check upstream_model$/,
    ],
    [
      'wrong-model-400',
      {
        base_url: await refusing(400, { message: 'gpt-nope is not a valid model id' }),
        model: { upstream_model: 'gpt-nope' },
      },
      'model',
      /check upstream_model$/,
    ],
    [
      'no-credit-429',
      { base_url: await refusing(429, { message: 'You exceeded your current quota.', code: 'insufficient_quota' }) },
      'credit',
      /^the account has no credit left at the provider \(status 429\).*: top it up there/,
    ],
    [
      'no-credit-402',
      { base_url: await refusing(402, { message: 'Insufficient Balance' }) },
      'credit',
      /\(status 402\)/,
    ],
    [
      'no-credit-400',
      {
        base_url: await refusing(400, { type: 'invalid_request_error', message: 'Your credit balance is too low.' }),
        model: messages,
      },
      'credit',
      /\(status 400\)/,
    ],
    [
      'busy',
      { base_url: await refusing(429, { message: 'Slow down.' }) },
      'rate',
      /^the key works, but the account is at its limit now/,
    ],
    ['down', { base_url: await refusing(503, 'x', 'text/plain') }, 'server', /^the provider fails \(status 503\)/],
    [
      'error-in-200',
      { base_url: await refusing(200, { code: 'overloaded' }) },
      'server',
      /under status 200: overloaded/,
    ],
    ['odd', { base_url: await refusing(422, { message: 'temperature?' }) }, 'question', /check the model's profile$/],
    [
      'moved',
      { base_url: await serve((_, response) => response.writeHead(301, { location: 'https://new.example/v1' }).end()) },
      'redirect',
      /^redirects to https:\/\/new\.example \(status 301\)/,
    ],
    [
      'babbles',
      { base_url: `http://127.0.0.1:${babble}` },
      'protocol',
      /^the server at 127\.0\.0\.1:\d+ does not speak HTTP/,
    ],
    [
      'no-key',
      { base_url: good, accounts: [{ name: 'a', key_command: ['/bin/sh', '-c', 'exit 3'] }] },
      'no_key',
      /^has no key to send: \/bin\/sh: exit 3$/,
    ],
    ...commandRows(good),
  ]
  // It was taken until now, so that none of the others has its port.
  await new Promise((resolve) => gone.close(resolve))
  const { done, told } = await check(Object.fromEntries(rows.map(([name, upstream]) => [name, upstream])))
  assert.equal(done.code, 1)
  assert.deepEqual(
    told.map(({ upstream, trouble }) => [upstream, trouble]),
    rows.map(([name, , trouble]) => [name, trouble]),
  )
  for (const [index, [name, , , note]] of rows.entries()) assert.match(told[index]!.note, note, name)
  assert.doesNotMatch(done.stdout + done.stderr, /hidden/)
  // What was asked is cheap, and made for the model as any client's request is.
  const [body] = simulator.requests.map(({ json }) => json as Record<string, unknown>)
  assert.deepEqual([body!['model'], body!['max_completion_tokens']], ['sim', 16])
})

test('N-F14 check --online waits no longer than --timeout', async () => {
  const mute = await listen(createTcpServer((socket) => void socket.on('error', () => {})))
  const { done, told } = await check({ mute: { base_url: `http://127.0.0.1:${mute}` } }, ['--timeout', '200ms'])
  assert.deepEqual([done.code, told[0]!.trouble], [1, 'timeout'])
  assert.match(told[0]!.note, /^the answer was not complete in time/)
})

test('check --online prints a table, asks each account of an upstream, and with --every-model each of its models', async () => {
  const simulator = await startSimulator({ record: true })
  atEnd(simulator.close)
  const accounts = ['a', 'b', 'off'].map((name) => ({ name, key: 'hidden-key', enabled: name !== 'off' }))
  const file = join(folder, 'accounts.yaml')
  const models = ['one', 'two'].map((id) => ({
    id,
    also: [`${id}-alias`],
    wire: 'chat',
    upstream: 'sim',
    max_output_tokens: 9,
    prices: { input: '1', output: '1' },
  }))
  const upstreams = { sim: { base_url: simulator.url, accounts }, idle: { base_url: 'http://127.0.0.1:9', accounts } }
  writeFileSync(file, stringify({ catalog: { pinned: '2026-11-01', models }, upstreams }))
  const { code, stdout } = await run(['check', '--online', '--config', file])
  assert.equal(code, 0)
  assert.match(
    stdout,
    /^the configuration is right: models 2, upstreams 2, store \S+\n\nupstream +account +model +wire +result +ms +note\n/,
  )
  assert.match(
    stdout,
    /\nsim +a +one +chat +ok +\d+ +answers\nsim +b +one +chat +ok +\d+ +answers\n\nevery account answers\n$/,
  )
  const every = rowsOf(await runWarm(['check', '--online', '--every-model', '--json', '--config', file]))
  assert.deepEqual(
    every.map(({ account, model }) => `${account} ${model}`),
    ['a one', 'b one', 'a two', 'b two'],
  )
  const built = await runWarm(['check', '--online'], { cwd: testFolder('online') })
  assert.match(built.stdout, /there is no upstream to ask: no model of a catalog names one\n$/)
})

/** A provider, as far as the question and its mistakes go: its path, one key that is good, one that is poor, one model. */
async function startProvider(path: string, wire: ModelWire): Promise<string> {
  return serve((request, response) => {
    const key = request.headers.authorization?.slice('Bearer '.length) ?? request.headers['x-api-key']
    const [status, error] =
      request.url !== path
        ? [404, { message: 'Not Found' }]
        : key === 'wrong'
          ? [401, { message: 'Invalid key.' }]
          : key === 'poor'
            ? [402, { message: 'Payment required.' }]
            : key === 'nope'
              ? [404, { message: 'No such model.', code: 'model_not_found' }]
              : [200, undefined]
    response.writeHead(status as number, { 'content-type': 'application/json' })
    response.end(JSON.stringify(error ? { error } : shortAnswers[wire]))
  })
}

test('P8 N-F3 every preset of the catalog is asked at its provider, and five mistakes in each are reported', async () => {
  const mistakes: [name: string, trouble: string | null][] = [
    ['right', null],
    ['host', 'connection'],
    ['key', 'key'],
    ['path', 'path'],
    ['model', 'model'],
    ['credit', 'credit'],
  ]
  const keys: Record<string, string> = { key: 'wrong', credit: 'poor', model: 'nope' }
  // No program listens at the port for discarded bytes, and the system gives it to none.
  const free = 'http://127.0.0.1:9'
  const upstreams: Record<string, Record<string, unknown>> = {}
  for (const [name, { upstream, wire, profile }] of Object.entries(presets)) {
    const base = new URL(upstream.baseUrl)
    // Where the vendor documents its endpoint, without the code under test.
    const ends: Record<string, string> = {
      messages: '/v1/messages',
      chat: '/chat/completions',
      responses: '/responses',
    }
    const end = ends[wire]!
    const path = base.pathname === '/' ? (wire === 'messages' ? end : `/v1${end}`) : base.pathname + end
    const origin = await startProvider(path, wire)
    for (const [mistake] of mistakes) {
      const at = mistake === 'host' ? free : origin
      const more = mistake === 'path' ? '/wrong' : base.pathname.replace(/\/$/, '')
      upstreams[`${name}-${mistake}`] = {
        base_url: at + more,
        accounts: [{ name: 'a', key: keys[mistake] ?? 'hidden-good' }],
        model: { wire, profile },
      }
    }
  }
  const { told } = await check(upstreams)
  assert.deepEqual(
    told.map(({ upstream, trouble }) => [upstream, trouble]),
    Object.keys(presets).flatMap((name) => mistakes.map(([mistake, trouble]) => [`${name}-${mistake}`, trouble])),
  )
})

test('clouds check --online shows the identity and end of a credential and the clock difference, and no secret', async () => {
  const simulator = await startSimulator({ record: true })
  atEnd(simulator.close)
  const cloud = await startCloud(Date.now)
  cloud.aheadSeconds = 7_200
  const place = { region: 'eu-central-1', service: 'bedrock' }
  const account = (more: object) => ({ base_url: simulator.url, accounts: [{ name: 'a', ...more }] })
  const env = {
    ...{ AWS_ACCESS_KEY_ID: 'AKIAENV', AWS_SECRET_ACCESS_KEY: `${canary}-file`, AWS_ENDPOINT_URL_STS: cloud.url },
    ...{ AZURE_AUTHORITY_HOST: cloud.url, AZURE_TENANT_ID: 'the-tenant', AZURE_CLIENT_ID: 'the-client' },
  }
  const upstreams = {
    keys: account({ aws: place }),
    role: account({ aws: { ...place, role: roleArn } }),
    entra: account({ azure: { secret: `${canary}-client` } }),
    wrong: account({ azure: { secret: 'canary-wrong' } }),
  }
  const { done, told } = await check(upstreams, [], runWarm, env)
  rmSync(join(folder, 'triwire.yaml'))
  const found = Object.fromEntries(told.map(({ upstream, credential }) => [upstream, credential]))
  const arn = 'arn:aws:sts::123456789012:assumed-role/llm/triwire'
  const seen = { clock_ahead_seconds: 7_200 }
  const rounded = (value: unknown) =>
    JSON.parse(JSON.stringify(value), (_, one) => (typeof one === 'number' ? Math.round(one / 60) * 60 : one))
  assert.deepEqual(rounded(found), {
    keys: { source: 'environment', identity: arn, ends_in_seconds: null, ...seen },
    role: { source: 'role over environment', identity: arn, ends_in_seconds: 3_600, ...seen },
    entra: { source: 'client secret', identity: 'client the-client', ends_in_seconds: 3_600, ...seen },
  })
  const signed = simulator.requests.flatMap(({ headers }) => `${headers['x-amz-date'] ?? ''}` || [])
  const times = signed.map((date) => Date.parse(date.replace(/(....)(..)(..T..)(..)(..Z)/, '$1-$2-$3:$4:$5')))
  assert.deepEqual(
    times.map((ms) => Math.round((ms - Date.now()) / 3_600_000)),
    [2, 2],
    'questions are signed with the time of the cloud',
  )
  const wrong = told.find(({ upstream }) => upstream === 'wrong')!
  assert.equal(wrong.trouble, 'no_key')
  assert.match(wrong.note, /has no key to send: 127\.0\.0\.1:\d+ answers 401 invalid/)
  assert.doesNotMatch(`${done.stdout}${done.stderr}`, /canary/)
  cloud.aheadSeconds = 0
})

/** NEW-14: commands that give no key, with the last line of what each said about it. */
function commandRows(
  base_url: string,
): [name: string, upstream: Record<string, unknown>, trouble: string, note: RegExp][] {
  const rows: [name: string, command: string[], note: RegExp][] = [
    ['key-says', ['/bin/sh', '-c', 'echo first >&2; echo "log in first" >&2; exit 3'], /exit 3: log in first$/],
    ['key-empty', ['/bin/sh', '-c', 'echo "no session" >&2'], /what it prints holds no key: it is empty: no session$/],
    ['key-words', ['/bin/echo', 'two', 'words'], /echo: what it prints must hold one key and nothing else/],
    ['key-none', ['no-such-program'], /no-such-program: ENOENT$/],
    ['key-signal', ['/bin/sh', '-c', 'kill -9 $$'], /\/bin\/sh: SIGKILL$/],
    ['key-secret', ['/bin/sh', '-c', 'echo "bad token hidden-0123456789abcdef" >&2; exit 1'], /exit 1: bad token …$/],
    ['key-elsewhere', ['/bin/sh', '-c', 'echo hidden-key >&2'], /what it prints holds no key: it is empty$/],
    ['key-escapes', ['/bin/sh', '-c', "printf '\\033[31mred\\033[0m\\n' >&2; exit 1"], /exit 1: \[31mred \[0m$/],
  ]
  return rows.map(([name, command, note]) => [
    name,
    { base_url, accounts: [{ name: 'a', key_command: command }] },
    'no_key',
    note,
  ])
}

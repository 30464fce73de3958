import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import test, { after, before } from 'node:test'
import { createServer } from 'node:tls'
import { parse } from 'yaml'
import { profileNames } from '../../src/catalog/profiles.ts'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { loadText } from '../../src/config/load.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { atEnd } from '../support/at-end.ts'
import { type Authority, createAuthority, type Pair } from '../support/certificates.ts'
import { startEgressProxy } from '../support/egress-proxy.ts'
import { testFolder } from '../support/folder.ts'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'
import { listen } from '../support/listen.ts'
import { answers, asks, frames, paths } from '../support/native.ts'
import { assertQuiet } from '../support/quiet.ts'
import { type Answer, type RawUpstream, startRawUpstream, stream, whole } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'

/* Providers' addresses, keys that change, proxies and certificates, with a whole gateway in between (N-F3, N-F4). */

const good = whole(answers.chat)
const refusing = (status: number, message: string): Answer => whole({ error: { message } }, status)
const body = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] }
const keysSeen = ({ requests }: RawUpstream) => requests.map((request) => request.header('authorization'))

type Upstream = Record<string, unknown>
const account = (more: object) => [{ name: 'a', ...more }]
const fixed = account({ key: 'fixed-key-1' })

/** The gateway of the tests that need no other: its one model is at this upstream from now on. */
let shared: TestGateway
before(async () => {
  shared = await open({ base_url: 'http://127.0.0.1:9', accounts: fixed })
})
after(() => shared.close())

function start(upstream: Upstream): TestGateway {
  become(shared, upstream)
  return shared
}

function open(upstream: Upstream, options: Parameters<typeof startTestGateway>[0] = {}): Promise<TestGateway> {
  const models = [testModel('m', 'chat', { upstream: 'far' })]
  return startTestGateway({ models, upstream: () => ({ upstreams: { far: upstream } }), ...options })
}

/** Reloads it with the model at another upstream. */
function become(gateway: TestGateway, far: Upstream, more: object = {}): void {
  gateway.reload({ upstreams: { far }, ...more })
}

const ask = async (gateway: TestGateway, more: object = {}) => {
  const response = await gateway.post('/v1/chat/completions', { ...body, ...more })
  return { status: response.status, text: await response.text(), id: response.headers.get('x-request-id')! }
}

test('N-F3 a changed key file takes effect with the next request, and an account that was disabled is tried at once', async () => {
  const upstream = await startRawUpstream()
  upstream.play(refusing(401, 'bad key'))
  const file = join(testFolder('keys'), 'key')
  writeFileSync(file, 'file-key-1\n')
  const gateway = await open({ base_url: upstream.url, accounts: account({ key_file: file }) }, { cools: true })
  assert.deepEqual([(await ask(gateway)).status, (await ask(gateway)).status], [503, 503])
  assert.deepEqual(keysSeen(upstream), ['Bearer file-key-1'])
  upstream.play(good)
  writeFileSync(file, 'file-key-2\n')
  // Nobody asks meanwhile: however long the file takes to be read, the first to ask is answered by its key.
  await until(async () => {
    gateway.advance(1_000)
    return (await gateway.logLines()).some(({ event, account }) => event === 'key_renewed' && account === 'far/a')
  }, 'the file is read again')
  assert.equal((await ask(gateway)).status, 200)
  assert.deepEqual(keysSeen(upstream), ['Bearer file-key-2'])
  assert.doesNotMatch(JSON.stringify(await gateway.logLines()), /file-key/)
})

test('N-F3 a command that fails takes only its own account out: the other one answers, and it comes back', async () => {
  const upstream = await startRawUpstream()
  upstream.play(good)
  const flag = join(testFolder('keys'), 'works')
  const command = ['/bin/sh', '-c', `echo command-key-1; [ -e ${flag} ]`]
  const accounts = [
    { name: 'a', key_command: command },
    { name: 'b', key: 'fixed-key-1' },
  ]
  const gateway = start({ base_url: upstream.url, accounts })
  for (let i = 0; i < 4; i++) assert.equal((await ask(gateway)).status, 200)
  assert.deepEqual(new Set(keysSeen(upstream)), new Set(['Bearer fixed-key-1']))
  const states = async () => {
    const listed = (await (await gateway.askAdmin(`/api/v1/upstreams`)).json()) as {
      items: { state: string }[]
    }
    return listed.items.map(({ state }) => state)
  }
  assert.deepEqual(await states(), ['no_key', 'ready'])
  await gateway.logWith({ event: 'key_failed', account: 'far/a', why: '/bin/sh: exit 1', in_use: false })
  writeFileSync(flag, '')
  await until(async () => {
    gateway.advance(1_000)
    return (await states())[0] === 'ready'
  })
  // Requests that are alike go to one account: each begins with other words.
  let asked = 0
  await until(async () => {
    const messages = [{ role: 'system', content: `${asked++} words` }, ...body.messages]
    return (await ask(gateway, { messages })).status === 200 && keysSeen(upstream).includes('Bearer command-key-1')
  })
  assert.doesNotMatch(JSON.stringify(await gateway.logLines()), /command-key/)
})

test('N-F3 the start waits for a command up to a limit; without the only key, clients are asked to come again', async () => {
  const upstream = await startRawUpstream()
  upstream.play(good)
  const hangs = { base_url: upstream.url, accounts: account({ key_command: ['/bin/sh', '-c', 'sleep 1000'] }) }
  const gateway = await open(hangs, { keysMs: 20 })
  const refused = await ask(gateway)
  assert.equal(refused.status, 503)
  assert.match(refused.text, /no_upstream_account/)
  assert.equal(upstream.requests.length, 0)
  // What was prepared before a reload is there when it is in force.
  const prompt = { base_url: upstream.url, accounts: account({ key_command: ['/bin/sh', '-c', 'echo command-key-2'] }) }
  become(gateway, prompt)
  await until(async () => (await ask(gateway)).status === 200)
  assert.deepEqual(new Set(keysSeen(upstream)), new Set(['Bearer command-key-2']))
  await assertQuiet(gateway)
})

test('B22 U11 current and previous keys of files and commands, a proxy’s host and credentials, and fixed queries are never revealed', async () => {
  const upstream = await startRawUpstream()
  const proxy = await startEgressProxy()
  const file = join(testFolder('keys'), 'key')
  writeFileSync(file, 'plainwordone')
  const accounts = [
    { name: 'a', key_file: file },
    { name: 'b', key_command: ['/bin/sh', '-c', 'echo plainwordtwo'] },
  ]
  const gateway = start({
    base_url: `${upstream.url}/tenant-blue/v1`,
    query: { secret: 'plainquery' },
    proxy: proxy.url.replace('//', '//plainuser:pl%41inpass@').replace('127.0.0.1', 'localhost'),
    accounts,
  })
  await gateway.server.prepare(gateway.server.gateway.snapshots.current.config)
  writeFileSync(file, 'plainwordthree')
  gateway.advance(1_000)
  await gateway.logWith({ event: 'key_renewed' })
  const encoded = Buffer.from('plainuser:plAinpass').toString('base64')
  const words = [
    'plainwordone',
    'plainwordtwo',
    'plainwordthree',
    'plainquery',
    'tenant-blue',
    'plainuser',
    'plAinpass',
    'pl%41inpass',
    encoded,
  ]
  for (const word of words) {
    upstream.play(refusing(400, `bad input ${word} here`))
    const { status, text } = await ask(gateway)
    assert.equal(status, 400)
    assert.ok(!text.includes(word) && !text.includes('bad input'), text)
  }
  upstream.play(refusing(400, 'bad input plainwordfour here'))
  assert.match((await ask(gateway)).text, /bad input plainwordfour here/)
})

const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

test('N-F4 a plain upstream is asked through its proxy in absolute form, JSON and streams, with the proxy’s credentials', async () => {
  const [upstream, proxy] = [await startRawUpstream(), await startEgressProxy()]
  upstream.play(good)
  const gateway = start({
    base_url: upstream.url,
    proxy: proxy.url.replace('//', '//ann:s%40fe@'),
    accounts: fixed,
  })
  assert.equal((await ask(gateway)).status, 200)
  const [request] = upstream.requests
  const sent = ['authorization', 'proxy-authorization', 'host'].map((name) => request!.header(name))
  assert.deepEqual(sent, ['Bearer fixed-key-1', undefined, upstream.url.slice('http://'.length)])
  upstream.play(stream(frames.chat))
  assert.match((await ask(gateway, { stream: true })).text, /data: \[DONE\]/)
  const asked = `POST ${upstream.url}/v1/chat/completions`
  assert.deepEqual(proxy.asked, [asked, asked])
  assert.deepEqual(new Set(proxy.credentials), new Set([basic('ann', 's@fe')]))
})

/** The upstream behind TLS. */
async function secured(upstream: RawUpstream, { cert, key }: Pair): Promise<string> {
  const server = createServer({ cert, key }, (socket) => {
    const onward = connect(Number(new URL(upstream.url).port), '127.0.0.1')
    for (const one of [socket, onward]) one.on('error', () => {})
    socket.pipe(onward).pipe(socket)
  })
  server.on('tlsClientError', () => {})
  return `https://localhost:${await listen(server)}`
}

let authority: Authority | undefined
const trusted = () => (authority ??= createAuthority())

test('N-F4 an HTTPS upstream is asked through a tunnel, and its certificate is checked against its own CA file', async () => {
  const [upstream, proxy] = [await startRawUpstream(), await startEgressProxy()]
  const { caFile, issue } = trusted()
  const url = await secured(upstream, issue('localhost'))
  upstream.play(good)
  const far = { base_url: url, ca_file: caFile, proxy: proxy.url, accounts: fixed }
  const gateway = start(far)
  assert.equal((await ask(gateway)).status, 200)
  const tunnel = `CONNECT ${url.slice('https://'.length)}`
  assert.deepEqual(proxy.asked, [tunnel])
  // A later one comes in the same tunnel, when that has rested (ruling Y14).
  await until(async () => {
    const before = proxy.asked.length
    assert.equal((await ask(gateway)).status, 200)
    return proxy.asked.length === before
  })
  assert.deepEqual(new Set(proxy.asked), new Set([tunnel]))
  assert.deepEqual(new Set(keysSeen(upstream)), new Set(['Bearer fixed-key-1']))
  const before = { requests: upstream.requests.length, asked: proxy.asked.length }
  become(gateway, { ...far, ca_file: createAuthority().caFile })
  const { status, id } = await ask(gateway)
  assert.deepEqual([status, (await gateway.logOf(id))['cause']], [502, 'upstream_tls'])
  assert.equal(upstream.requests.length, before.requests)
  // Without a proxy the same authority counts.
  become(gateway, { ...far, proxy: 'none' })
  assert.equal((await ask(gateway)).status, 200)
  assert.equal(proxy.asked.length, before.asked + 1)
})

test('U14 N-F4 a reload changes proxies for new requests; a running one ends on its first proxy', async () => {
  const [upstream, one, two] = [await startRawUpstream(), await startEgressProxy(), await startEgressProxy()]
  let finish = () => {}
  upstream.play((socket, request) => {
    finish = () => void good(socket, request)
  }, good)
  const gateway = start({ base_url: upstream.url, proxy: one.url, accounts: fixed })
  const running = ask(gateway)
  await until(() => upstream.requests.length === 1)
  become(gateway, { base_url: upstream.url, proxy: two.url, accounts: fixed })
  assert.equal((await ask(gateway)).status, 200)
  finish()
  assert.equal((await running).status, 200)
  assert.deepEqual([one.asked.length, two.asked.length], [1, 1])
  await assertQuiet(gateway)
})

test('N-F4 a proxy that refuses, rejects our credentials, is silent or is gone is upstream_proxy; no other account is tried', async () => {
  const [upstream, proxy] = [await startRawUpstream(), await startEgressProxy()]
  const { caFile, issue } = trusted()
  const url = await secured(upstream, issue('localhost'))
  upstream.play(good)
  const far = { base_url: url, ca_file: caFile, proxy: proxy.url, accounts: fixed }
  const gateway = start(far)
  const causeOf = async () => {
    const { status, text, id } = await ask(gateway)
    assert.equal(status, 502)
    assert.match(text, /connection/)
    return (await gateway.logOf(id))['cause']
  }
  for (const refusal of [407, 403, 502] as const) {
    proxy.refuse(refusal)
    assert.equal(await causeOf(), 'upstream_proxy', `${refusal}`)
  }
  proxy.refuse('silent')
  become(gateway, far, { timeouts: { connect: '200ms' } })
  assert.equal(await causeOf(), 'upstream_proxy', 'silent')
  become(gateway, far)
  proxy.refuse(undefined)
  assert.equal((await ask(gateway)).status, 200)
  proxy.refuse(407)
  become(gateway, { base_url: upstream.url, proxy: proxy.url, accounts: fixed })
  assert.equal(await causeOf(), 'upstream_proxy', 'in absolute form')
  const gone = await startRawUpstream()
  await gone.close()
  for (const base of [url, upstream.url]) {
    become(gateway, { base_url: base, ca_file: caFile, proxy: gone.url, accounts: fixed })
    assert.equal(await causeOf(), 'upstream_proxy', base)
  }
  await assertQuiet(gateway)
})

/** What proxies answer themselves to a request in absolute form: tinyproxy and squid as Debian has them, and by RFC 9209. */
const page = { 'content-type': 'text/html' }
const squid = { ...page, server: 'squid/5.7', via: '1.1 corp (squid/5.7)' }
const ownAnswers: [about: string, status: number, headers: Record<string, string>][] = [
  ['tinyproxy, wrong credentials', 401, { ...page, server: 'tinyproxy/1.11.1', 'www-authenticate': 'Basic realm="x"' }],
  ['tinyproxy, a host that is filtered', 403, { ...page, server: 'tinyproxy/1.11.1' }],
  ['tinyproxy, a host that is not there', 500, { ...page, server: 'tinyproxy/1.11.1' }],
  ['squid, wrong credentials', 407, { ...squid, 'proxy-authenticate': 'Basic realm="x"' }],
  ['squid, a host that is denied', 403, squid],
  ['squid, a host that is not there', 503, squid],
  ['squid, in JSON', 503, { ...squid, 'content-type': 'application/json' }],
  ['one that tells its status', 502, { via: '1.1 corp', 'proxy-status': 'corp; error=dns_error; rcode=NXDOMAIN' }],
]

test('N-F4 U1 an answer of the proxy itself to plain HTTP is distinguished from one that it forwards', async () => {
  const [upstream, proxy] = [await startRawUpstream(), await startEgressProxy()]
  const gateway = start({ base_url: upstream.url, proxy: proxy.url, accounts: fixed })
  for (const [about, status, headers] of ownAnswers) {
    proxy.refuse(status, headers)
    const { status: told, id } = await ask(gateway)
    assert.deepEqual([told, (await gateway.logOf(id))['cause']], [502, 'upstream_proxy'], about)
  }
  assert.equal(upstream.requests.length, 0)
  proxy.refuse(undefined)
  const brought: [about: string, status: number, type: string, told: number, cause: string][] = [
    ['a refusal of the upstream’s', 401, 'application/json', 503, 'upstream_401'],
    ['its page', 502, 'text/html', 502, 'upstream_502'],
  ]
  for (const [about, status, type, told, cause] of brought) {
    upstream.play(whole('{}', status, { 'content-type': type }))
    const got = await ask(gateway)
    assert.deepEqual([got.status, (await gateway.logOf(got.id))['cause']], [told, cause], about)
  }
  await assertQuiet(gateway)
})

/* The table of docs/providers.md: each row is asked, with the simulator at that provider's path. */

type Row = {
  provider: string
  settings: { base_url: string; key_header?: string }
  wire: ClientWire
  profiles: string[]
  goesTo: string
}

const rows = readRows(readFileSync(join(import.meta.dirname, '../../docs/providers.md'), 'utf8'))

function readRows(page: string): Row[] {
  const inside = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, text]) => text!)
  return page
    .split('\n')
    .map((line) => line.split(' | '))
    .filter(([, settings]) => settings?.startsWith('`base_url:'))
    .map(([provider = '', settings, wire, profiles, goesTo]) => ({
      provider: provider.slice(2),
      settings: parse(`{ ${inside(settings)[0]} }`) as Row['settings'],
      wire: wire as ClientWire,
      profiles: inside(profiles),
      goesTo: inside(goesTo)[0]!,
    }))
}

test('NEW-10 no address of the table leads to a warning, and one that lacks its version does', () => {
  const warningsOf = (settings: object, wire: ClientWire) => {
    const upstreams = { u: { ...settings, accounts: [{ name: 'a', key: 'k' }] } }
    const models = [testModel('m', wire, { upstream: 'u', profile: `default-${wire}` })]
    const text = JSON.stringify({ upstreams, catalog: { pinned: '2026-11-01', models } })
    const { warnings } = loadText(text, 'a file', {}, {})
    return warnings.filter(({ path }) => path?.startsWith('upstreams')).map(({ message }) => message)
  }
  for (const { provider, settings, wire } of rows) assert.deepEqual(warningsOf(settings, wire), [], provider)
  for (const lacking of ['https://openrouter.ai/api', 'https://api.fireworks.ai/inference', 'http://h/versions']) {
    const [message, ...others] = warningsOf({ base_url: lacking }, 'chat')
    assert.match(message!, /requests go to `.*\/chat\/completions`\. End it in `\/v1` if/, lacking)
    assert.doesNotMatch(message!, /0\.1/)
    assert.deepEqual(others, [])
  }
})

test('P8 N-F3 every provider of the table is asked at its own path, with its key in the header that it reads', async () => {
  const served = Object.fromEntries(rows.map(({ wire, goesTo }) => [goesTo.split('?')[0], wire]))
  const simulator = await startSimulator({ record: true, paths: served })
  atEnd(simulator.close)
  const asked = rows.flatMap((row) => row.profiles.map((profile) => ({ ...row, profile })))
  const model = ({ wire, profile }: (typeof asked)[number], index: number) =>
    testModel(`m${index}`, wire, { upstream: `u${index}`, upstream_model: 'DEPLOYMENT', profile })
  const upstream = ({ settings }: Row) => {
    const { pathname } = new URL(settings.base_url)
    const base = simulator.url + (pathname === '/' ? '' : pathname)
    return { ...settings, base_url: base, accounts: [{ name: 'a', key: 'upstream-key-1' }] }
  }
  const gateway = await startTestGateway({
    models: asked.map(model),
    upstream: () => ({ upstreams: Object.fromEntries(asked.map((row, index) => [`u${index}`, upstream(row)])) }),
  })
  for (const [index, { provider, settings, wire, profile, goesTo }] of asked.entries()) {
    const about = `${provider}, ${wire}, ${profile}`
    const response = await gateway.post(paths[wire], { ...asks[wire], model: `m${index}` })
    assert.equal(response.status, 200, `${about}: ${await response.text()}`)
    const { path, query, headers } = simulator.requests.at(-1)!
    assert.equal(path + query, goesTo, about)
    const header = settings.key_header ?? (wire === 'messages' ? 'x-api-key' : 'authorization')
    const key = header === 'authorization' ? 'Bearer upstream-key-1' : 'upstream-key-1'
    const sent = ['authorization', 'x-api-key', 'api-key'].filter((name) => headers[name] !== undefined)
    assert.deepEqual([sent, headers[header]], [[header], key], about)
  }
  assert.ok(asked.length >= 40)
})

test('P8 N-F3 the table has an address for every named profile', () => {
  const told = new Set(rows.flatMap(({ profiles }) => profiles))
  const missing = profileNames.filter((name) => !told.has(name) && !/^(default-|simulator)/.test(name))
  assert.deepEqual(missing, [])
  assert.deepEqual([...new Set(rows.map(({ wire }) => wire))].sort(), [...clientWireNames].sort())
})

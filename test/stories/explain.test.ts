import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import test from 'node:test'
import { StoreSilent } from '../../src/accounts/account.ts'
import type { Explanation } from '../../src/operations/shapes.ts'
import { run, runWarm } from '../cli/run.ts'
import type { TestGateway, TestOptions } from '../support/gateway.ts'
import { createHeld } from '../support/held.ts'
import { holdStore } from '../support/hold-store.ts'
import { answers, asks, frames, type Native, paths, startNative } from '../support/native.ts'
import { type Answer, stream, whole } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'

const unfailed = { code: null, reason: null, message: null, param: null, cause: null }
const settled = { state: 'in the ledger', outcome: 'ok', status: 200, ...unfailed, flags: [] }

/** Behind one upstream two accounts, the second of which costs the same. */
async function start(options: TestOptions = {}): Promise<Native> {
  const native = await startNative(options)
  native.gateway.reload({
    upstreams: {
      sim: {
        base_url: native.upstream.url,
        accounts: [
          { name: 'a', key: 'upstream-key-1' },
          { name: 'b', key: 'upstream-key-2' },
        ],
      },
    },
    limits: { requests_per_minute: 1_000_000 },
  })
  return native
}

function adminOf({ adminUrl }: TestGateway): string[] {
  return ['--admin-listen', new URL(adminUrl).host]
}

/** What the command line prints for a program, asked of the server. */
async function explain({ gateway }: Native, id: string): Promise<Explanation> {
  const { stdout, stderr, code } = await runWarm(['explain', id, '--json', ...ofServer(gateway)])
  assert.deepEqual([code, stderr], [0, ''])
  return JSON.parse(stdout)
}

function ofServer(gateway: TestGateway): string[] {
  return ['--config', gateway.configPath, ...adminOf(gateway)]
}

/** An answer that takes so long, by the gateway's clock. */
function after(native: Native, ms: number, answer: Answer): Answer {
  return (socket, asked) => {
    native.gateway.advance(ms)
    return answer(socket, asked)
  }
}

const canary = 'canary-of-a-prompt'
const canaryOfRefusal = 'canary-of-a-refusal'
const full = whole({ error: { message: canaryOfRefusal, type: 'rate_limit_error' } }, 429)

test('U1 U5 explain shows both attempts of a failover, with account, reason, status, cause and time, and no content', async () => {
  const native = await start()
  const { gateway, upstream } = native
  upstream.play(after(native, 12, full), after(native, 640, whole(answers.chat)))
  const asked = { messages: [{ role: 'user', content: canary }], prompt_cache_key: 'canary-of-a-conversation' }
  const { id, status } = await native.ask('chat', asked)
  assert.equal(status, 200)
  const told = await explain(native, id)
  const [first, second] = told.attempts!
  assert.deepEqual([first!.account, second!.account].sort(), ['a', 'b'])
  assert.deepEqual(told, {
    request_id: id,
    account: { id: gateway.store.findAccount('tester').id, name: 'tester' },
    key: { id: gateway.store.listKeys('tester')[0]!.id, prefix: gateway.key.slice(0, 15) },
    key_name: null,
    person_name: null,
    ...{ person: null, labels: null },
    model: 'native-chat',
    alias: null,
    fell_back: null,
    moved: null,
    wire: { client: 'chat', model: 'chat' },
    attempts: [
      {
        model: null,
        upstream: 'sim',
        account: first!.account,
        why: 'hashed',
        status: 429,
        cause: 'upstream_429',
        text: canaryOfRefusal,
        ms: 12,
      },
      {
        ...{
          model: null,
          upstream: 'sim',
          account: second!.account,
          why: 'diverted',
          status: 200,
          cause: null,
          text: null,
        },
        ms: 640,
      },
    ],
    losses: [],
    usage: {
      input_tokens: 5,
      cache_read_tokens: 4,
      cache_write_tokens: 0,
      cache_write_1h_tokens: 0,
      output_tokens: 3,
      reasoning_tokens: 0,
    },
    price: {
      version: gateway.store.findEntry(id)!.bill!.priceVersion,
      input: '3',
      cache_read: '0.3',
      cache_write: '3.75',
      cache_write_1h: '3.75',
      output: '15',
    },
    stopped: null,
    settlement: { ...settled, usage_source: 'final', amount: '0.0000612' },
  })
  const { stdout } = await run(['explain', id, ...ofServer(gateway)])
  assert.match(stdout, /^ {2}1 {2}sim +[ab] +hashed +429 +upstream_429 +12$/m)
  assert.match(stdout, /^ {2}1 said: canary-of-a-refusal$/m)
  assert.match(stdout, /^ {2}2 {2}sim +[ab] +diverted +200 +- +640$/m)
  assert.doesNotMatch(stdout, /no further one/)
  for (const text of [stdout, JSON.stringify(told)]) {
    assert.doesNotMatch(text, /canary-of-a-(?!refusal)|Hé|upstream-key/)
    assert.ok(!text.includes(gateway.key))
  }
})

test('T9 U5 explain lists the losses of a translation by the names of the fields', async () => {
  const native = await start()
  native.upstream.play(whole(answers.messages))
  const more = { model: 'native-messages', seed: 7, user: canary, canary_field: canary }
  const { id } = await native.ask('chat', { ...more, messages: [{ role: 'user', content: canary }] })
  const told = await explain(native, id)
  assert.deepEqual(told.wire, { client: 'chat', model: 'messages' })
  assert.ok(told.losses!.some(({ field, what }) => field === 'seed' && what === 'dropped'))
  assert.doesNotMatch(JSON.stringify(told), /canary|Hé/)
  const { stdout } = await runWarm(['explain', id, ...ofServer(native.gateway)])
  assert.match(stdout, /^losses\n {2}field +what +why\n( {2}.*\n)* {2}seed +dropped +/m)
})

test('C4 explain shows what broke a cut stream, and by what it was billed', async () => {
  const native = await start()
  const { gateway, upstream } = native
  let cut = () => {}
  upstream.play((socket, asked) => {
    cut = () => void socket.resetAndDestroy()
    return stream(frames.chat.slice(0, 2), { end: false })(socket, asked)
  })
  const asking = native.ask('chat', { stream: true })
  await upstream.untilHeard()
  gateway.advance(30)
  cut()
  const { id } = await asking
  const { attempts, stopped, settlement } = await explain(native, id)
  const [attempt] = attempts!
  assert.equal(stopped, 'seen')
  assert.deepEqual([attempts!.length, attempt!.status, attempt!.cause, attempt!.ms], [1, 200, 'upstream_reset', 30])
  const { amount, flags, ...rest } = settlement
  assert.deepEqual(rest, {
    ...{ state: 'in the ledger', outcome: 'upstream_cut', status: 200 },
    ...{ code: 'upstream_error', reason: null, param: null, cause: 'upstream_reset', usage_source: 'estimated' },
    message: 'The connection to the model was lost (server error, connection reset): try again.',
  })
  assert.ok(Number(amount) > 0)
})

test('R1 U9 explain shows a refusal: ours without an attempt, the model’s with its attempt, both without a debit', async () => {
  const native = await start()
  native.upstream.play(whole({ error: { message: canary, type: 'invalid_request_error' } }, 400))
  const refused = await native.ask('chat')
  const ofModel = await explain(native, refused.id)
  const none = { state: 'none', outcome: 'refused', usage_source: null, amount: null, flags: [] }
  const told = (asked: Awaited<ReturnType<Native['ask']>>, param: string | null = null) => {
    const { error } = JSON.parse(asked.text) as { error: { message: string; param: string | null } }
    assert.equal(error.param, param)
    return { reason: null, message: error.message, param }
  }
  assert.deepEqual(
    ofModel.attempts!.map(({ status, cause, why }) => [status, cause, why]),
    [[400, 'upstream_400', 'spread']],
  )
  assert.equal(ofModel.stopped, 'final')
  assert.deepEqual(ofModel.settlement, {
    ...none,
    ...told(refused),
    ...{ status: 400, code: 'invalid_request', cause: 'upstream_400' },
  })
  assert.deepEqual([ofModel.usage, ofModel.price], [null, null])
  const unserved = await native.ask('chat', { model: canary })
  const unknown = await explain(native, unserved.id)
  assert.deepEqual(
    [unknown.attempts, unknown.stopped, unknown.model, unknown.wire],
    [[], null, null, { client: 'chat', model: null }],
  )
  assert.deepEqual(unknown.settlement, {
    ...none,
    ...told(unserved, 'model'),
    ...{ status: 404, code: 'model_not_found', cause: null },
  })
  // Whose key is not known is nobody, and still a request.
  const keyed = await native.ask('chat', {}, { authorization: `Bearer ${canary}` })
  const keyless = await explain(native, keyed.id)
  assert.deepEqual([keyless.account, keyless.key, keyless.attempts], [null, null, []])
  assert.deepEqual(keyless.settlement, {
    ...none,
    ...told(keyed),
    ...{ status: 401, code: 'invalid_api_key', cause: null },
  })
  // The sentence of an unknown model quotes it, as it did for its client.
  for (const told of [keyless, { ...unknown, settlement: {} }]) assert.doesNotMatch(JSON.stringify(told), /canary/)
})

test('F-U43 explain shows that no upstream could be asked', async () => {
  const native = await start({ cools: true })
  native.upstream.play(full)
  const first = (await native.ask('chat')).id
  const { stdout } = await runWarm(['explain', first, ...ofServer(native.gateway)])
  assert.match(stdout, /^ {2}2 {2}sim .*\n {2}no further one: nobody else is on, not left alone and not tried/m)
  const { attempts, settlement } = await explain(native, (await native.ask('chat')).id)
  assert.deepEqual([attempts, settlement.cause, settlement.state], [[], 'no_capacity', 'none'])
})

test('explain reads a request that is no longer in memory from the ledger, without its attempts, and says so', async () => {
  const native = await start({ requestsKept: 2 })
  const { gateway, upstream } = native
  upstream.play(whole({ error: {} }, 400), whole(answers.messages))
  const refused = await native.ask('messages')
  const billed = await native.ask('chat', { model: 'native-messages', seed: 7 })
  const before = await explain(native, billed.id)
  await native.ask('messages')
  await native.ask('messages')
  const told = await explain(native, billed.id)
  const { settlement } = before
  assert.deepEqual(told, {
    ...before,
    attempts: null,
    losses: null,
    settlement: { ...settlement, status: null, ...unfailed },
  })
  const { stdout } = await runWarm(['explain', billed.id, ...ofServer(gateway)])
  const unknown =
    'not known: this is from the ledger, which has neither attempts nor losses (who answered: triwire ledger show)'
  assert.ok(stdout.includes(`attempts\n  ${unknown}\n\nlosses\n  ${unknown}\n`), stdout)
  const gone = await runWarm(['explain', refused.id, ...ofServer(gateway)])
  assert.deepEqual([gone.code, gone.stdout], [1, ''])
  assert.match(gone.stderr, /^triwire: There is no request req_\w+: .*refused and failed requests have none\n$/)
})

test('explain without a server reads the ledger and says so; a request that is not there is an error', async () => {
  const native = await start()
  const { gateway, upstream } = native
  upstream.play(whole(answers.chat))
  const { id } = await native.ask('chat')
  const before = await explain(native, id)
  const nowhere = ['--config', gateway.configPath, '--admin-listen', '127.0.0.1:1']
  const { code, stdout, stderr } = await runWarm(['explain', id, '--json', ...nowhere])
  assert.equal(code, 0)
  const cure = '--admin-listen, TRIWIRE_ADMIN_LISTEN or admin_listen in the configuration'
  assert.match(stderr, new RegExp(`^{"note":"no server answers on http://127.0.0.1:1 \\(.+\\): .*${cure}"}\n`))
  const told = JSON.parse(stdout) as Explanation
  assert.deepEqual([told.attempts, told.losses, told.usage], [null, null, before.usage])
  assert.deepEqual([told.price, told.settlement.amount], [before.price, '0.0000612'])
  const gone = await runWarm(['explain', 'req_none', ...nowhere])
  assert.deepEqual([gone.code, gone.stdout], [1, ''])
  assert.match(gone.stderr, /The ledger has no debit of request req_none, and no server could be asked/)
  const chosen = await runWarm(['upstreams', '--config', gateway.configPath])
  assert.match(chosen.stderr, /the configuration lets the server choose its admin port: name it with --admin-listen/)
  const mistyped = await runWarm(['explain', `../${gateway.key}`, ...nowhere])
  assert.deepEqual([mistyped.code, mistyped.stderr.includes(gateway.key)], [2, false])
})

test('explain shows the progress of a running request', async () => {
  const native = await start()
  const { gateway, upstream } = native
  const held = createHeld()
  upstream.play(held.answer)
  const response = await gateway.post(paths.chat, { ...asks.chat, stream: true })
  const id = response.headers.get('x-request-id')!
  gateway.advance(70)
  const { attempts, settlement, usage } = await explain(native, id)
  assert.deepEqual(
    attempts!.map(({ ms, cause }) => [ms, cause]),
    [[70, null]],
  )
  assert.deepEqual([settlement.state, settlement.amount, usage], ['pending', null, null])
  held.letGo()
  await response.text()
  assert.equal((await explain(native, id)).settlement.state, 'in the ledger')
})

async function settlementOf({ gateway }: Native, id: string): Promise<Explanation['settlement']> {
  const response = await gateway.askAdmin(`/api/v1/requests/${id}/explain`)
  return ((await response.json()) as Explanation).settlement
}

test('C3 C13 explain shows a debit as spooled, then in the ledger, and then refunded', async () => {
  const native = await start({ config: { timeouts: { settle_deadline: '200ms' } } })
  const { gateway, upstream } = native
  // Its token is made before nobody can write.
  await gateway.askAdmin('/api/v1/me')
  upstream.play(whole(answers.chat))
  const blocker = holdStore(gateway.storePath)
  const { id } = await native.ask('chat')
  const { state, amount } = await settlementOf(native, id)
  assert.deepEqual([state, amount], ['spooled', '0.0000612'])
  blocker.exec('ROLLBACK')
  blocker.close()
  await until(() => gateway.ledger.ledger.backlog().blockedAccounts === 0)
  assert.equal((await settlementOf(native, id)).state, 'in the ledger')
  gateway.store.postReturns([id])
  assert.equal((await settlementOf(native, id)).state, 'returned')
  const { json } = await runWarm([
    'explain',
    id,
    '--json',
    '--config',
    gateway.configPath,
    '--admin-listen',
    '127.0.0.1:1',
  ])
  assert.equal((json as unknown as Explanation).settlement.state, 'returned')
})

test('C13 explain shows a debit that could not be stored anywhere as refused', async () => {
  const native = await start({ config: { timeouts: { settle_deadline: '150ms' } } })
  const { gateway, upstream } = native
  await gateway.askAdmin('/api/v1/me')
  upstream.play(whole(answers.chat))
  mkdirSync(`${gateway.storePath}.spool`)
  const blocker = holdStore(gateway.storePath)
  const { id, status } = await native.ask('chat')
  assert.equal(status, 500)
  const { state, amount, cause, outcome } = await settlementOf(native, id)
  assert.deepEqual([state, amount, cause, outcome], ['refused', null, 'ledger_unsettled', 'internal_error'])
  blocker.exec('ROLLBACK')
  blocker.close()
  await until(() => gateway.ledger.ledger.backlog().blockedAccounts === 0)
  assert.equal((await settlementOf(native, id)).state, 'refused')
})

test('R16 F-P7 if a server’s ledger does not respond, explain reads it itself; a bug of ours is logged and ends nothing', async () => {
  const native = await start({ requestsKept: 1 })
  const { gateway, upstream } = native
  upstream.play(whole(answers.chat))
  const { id } = await native.ask('chat')
  await native.ask('chat')
  const failures: [error: Error, status: number, name: string, stderr: RegExp][] = [
    [new StoreSilent('no answer'), 503, 'store_unavailable', /"note":"the server says: The ledger cannot be read now/],
    [new Error('a bug'), 500, 'internal', /"note":"the server says: A bug of ours: the log has it/],
  ]
  for (const [error, status, name, says] of failures) {
    gateway.ledger.findDebit = () => Promise.reject(error)
    const response = await gateway.askAdmin(`/api/v1/requests/${id}/explain`)
    const { type } = (await response.json()) as { type: string }
    assert.deepEqual([response.status, type], [status, `urn:triwire:problem:${name}`])
    const { code, stderr, json } = await runWarm(['explain', id, '--json', ...ofServer(gateway)])
    assert.equal(code, 0)
    assert.match(stderr, says)
    assert.equal((json as unknown as Explanation).settlement.state, 'in the ledger')
  }
  assert.match(String((await gateway.logWith({ event: 'bug' }))['error']), /a bug/)
  gateway.takeViolations()
})

test('U1 upstreams shows each account’s state, cause and countdown', async () => {
  const native = await startNative({ cools: true })
  const { gateway, upstream } = native
  const account = (name: string, more = {}) => ({ name, key: `key-of-${name}`, ...more })
  gateway.reload({
    upstreams: {
      sim: { base_url: upstream.url, accounts: [account('a'), account('b', { enabled: false })] },
    },
  })
  upstream.play(whole({ error: { message: 'no' } }, 429, { 'retry-after': '20' }))
  assert.equal((await native.ask('chat')).status, 429)
  gateway.advance(8_000)
  const { json, code } = await run(['upstreams', '--json', ...ofServer(gateway)])
  assert.equal(code, 0)
  const of = {
    upstream: 'sim',
    priority: 1,
    cause: null,
    heard: false,
    failing: false,
    wait_ms: null,
    failures: 0,
    retries_left: 10,
  }
  const ready = { ...of, account: 'a', state: 'ready' }
  const off = { ...of, account: 'b', state: 'off' }
  assert.deepEqual(json, [
    { ...ready, model: 'native-chat', state: 'cooling', cause: 'upstream_429', wait_ms: 12_000, failures: 1 },
    { ...off, model: 'native-chat' },
    { ...ready, model: 'native-messages' },
    { ...off, model: 'native-messages' },
    { ...ready, model: 'native-responses' },
    { ...off, model: 'native-responses' },
  ])
  const { stdout } = await runWarm(['upstreams', ...ofServer(gateway)])
  assert.match(stdout, /^native-chat +sim +a +1 +cooling +upstream_429 +12 s +1 +10$/m)
  assert.match(stdout, /^native-chat +sim +b +1 +off +- +- +0 +10$/m)
  assert.doesNotMatch(stdout, /key-of/)
  gateway.advance(12_000)
  const later = await runWarm(['upstreams', ...ofServer(gateway)])
  assert.match(later.stdout, /^native-chat +sim +a +1 +trial +upstream_429 +- +1 +10$/m)
})

test('upstreams without a server is an error with its cure, also if another program listens there', async () => {
  const { upstream, gateway } = await startNative()
  const none = await runWarm(['upstreams', '--admin-listen', '127.0.0.1:1'])
  assert.deepEqual([none.code, none.stdout], [1, ''])
  assert.match(
    none.stderr,
    /^triwire: no server answers on http:\/\/127.0.0.1:1 \(.+\): start it with triwire serve, or say/,
  )
  assert.match(none.stderr, /--admin-listen, TRIWIRE_ADMIN_LISTEN or admin_listen in the configuration\n$/)
  upstream.play(whole('no triwire'))
  for (const address of [new URL(upstream.url).host, new URL(gateway.url).host]) {
    const other = await runWarm(['upstreams'], { env: { TRIWIRE_ADMIN_LISTEN: address } })
    assert.deepEqual([other.code, other.stdout], [1, ''])
    assert.match(other.stderr, /is no triwire of this version: name its admin listener with --admin-listen\n$/)
  }
})

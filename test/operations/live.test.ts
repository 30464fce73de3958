import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { digestKey } from '../../src/accounts/keys.ts'
import { programs } from '../../src/programs/known/index.ts'
import { runWarm } from '../cli/run.ts'
import { verifyOptions } from '../store/fixtures.ts'
import { testModel } from '../support/gateway.ts'
import { createHeld } from '../support/held.ts'
import { startRawUpstream } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'
import { problemOf, startApi } from './api.ts'

const chat = '/v1/chat/completions'
const question = (content = 'canary-live', more = {}) => ({
  model: 'native-chat',
  messages: [{ role: 'user', content }],
  ...more,
})

/** All pages, one after the other. */
async function walk(
  ask: Awaited<ReturnType<typeof startApi>>['ask'],
  path: string,
  limit: number,
  between = async () => {},
) {
  const items: Record<string, never>[] = []
  let cursor: string | null = ''
  let pages = 0
  while (cursor !== null) {
    const query: string = cursor === '' ? '' : `&cursor=${cursor}`
    const { body, status, text } = await ask('GET', `${path}${path.includes('?') ? '&' : '?'}limit=${limit}${query}`)
    assert.equal(status, 200, text)
    items.push(...body.items!)
    cursor = (body as unknown as { next: string | null }).next
    assert.ok(++pages < 200, 'pages come to an end')
    await between()
  }
  return items
}

test('issue 13: requests are listed newest first, with failed ones, filters and stable pages; older ones come from the ledger', async () => {
  const { ask, gateway, keyA } = await startApi({
    requestsKept: 8,
    models: [testModel('native-chat', 'chat'), testModel('down', 'chat', { upstream: 'gone' })],
    upstream: (url) => ({
      upstreams: {
        sim: { base_url: url, accounts: [{ name: 'a', key: 'upstream-key-1' }] },
        gone: { base_url: 'http://127.0.0.1:9', accounts: [{ name: 'a', key: 'upstream-key-2' }] },
      },
    }),
  })
  const made: string[] = []
  const one = async (body: unknown, headers = {}) => {
    gateway.advance(1_000)
    const answer = await gateway.post(chat, body, headers)
    await answer.text()
    made.unshift(answer.headers.get('x-request-id')!)
    await gateway.logOf(made[0]!)
  }
  const [own] = gateway.store.listKeys('tester')
  await ask('PATCH', `/keys/${own!.id}`, { body: { label: 'laptop' }, headers: { 'if-match': '*' } })
  const known = () => gateway.ledger.directory.findKnownKey(digestKey(keyA))
  await until(() => known()?.label === 'laptop', 'the gateway knows the label')
  for (let at = 0; at < 6; at++) await one(question())
  await one(question('canary-failed', { model: 'down' }))
  await one(question('canary-unknown', { model: 'nothing' }))
  await one(question(), { authorization: 'Bearer wrong' })
  await one(question('canary-stream', { stream: true }))
  await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${keyA}` } })
  const all = await walk(ask, '/requests', 3)
  assert.deepEqual(
    all.map(({ request_id }) => request_id),
    made,
  )
  const labels = all.map(({ key }) => (key as { label: string } | null | undefined)?.label)
  assert.deepEqual([...new Set(labels)], ['laptop', undefined])
  // Of the first one memory knows nothing any more.
  assert.deepEqual(
    all.map(({ source }) => source),
    [...Array(9).fill('memory'), 'ledger'],
  )
  assert.deepEqual(
    all.map(({ outcome, status, credits }) => `${outcome} ${status} ${credits !== null}`),
    [
      'ok 200 true',
      'refused 401 false',
      'refused 404 false',
      'upstream_error 502 false',
      ...Array(5).fill('ok 200 true'),
      'ok null true',
    ],
  )
  const [streamed, wrong] = all as unknown as Record<string, unknown>[]
  assert.deepEqual([wrong!['account'], wrong!['key'], wrong!['attempts']], [null, null, null])
  assert.deepEqual(
    [streamed!['account'], streamed!['client_wire'], streamed!['upstream'], streamed!['attempts']],
    [{ id: gateway.store.findAccount('tester').id, name: 'tester' }, 'chat', 'sim', 1],
  )
  for (const name of ['first_byte_ms', 'total_ms', 'input_tokens', 'output_tokens'])
    assert.equal(typeof streamed![name], 'number', name)
  const count = async (query: string) => (await walk(ask, `/requests?${query}`, 50)).length
  assert.deepEqual(
    [
      await count('account=tester'),
      await count('account=b'),
      await count('outcome=refused,upstream_error'),
      await count('status=401'),
      await count('status=200,502'),
      await count('model=down'),
      await count('upstream=sim&outcome=ok'),
      await count(`key=${keyA.slice(0, 15)}`),
      await count(`from=${all[1]!['at']}`),
      await count(`to=${all[1]!['at']}`),
    ],
    [9, 0, 3, 1, 7, 1, 7, 9, 2, 8],
  )
  assert.equal(problemOf(await ask('GET', '/requests?account=nobody')), 'invalid_request')
  assert.ok(!JSON.stringify(all).includes('canary-'))
  const printed = await runWarm(['requests', '--limit', '4', '--json', ...serverOf(gateway)])
  assert.deepEqual(
    (printed.json as unknown as { request_id: string }[]).map(({ request_id }) => request_id),
    made.slice(0, 4),
    printed.stderr,
  )
})

test('CON-12 requests are sorted by cost, times and tokens, from memory and ledger, those without a value last; and exported as CSV', async () => {
  const { ask, gateway } = await startApi({ requestsKept: 2 })
  const lengths = [700, 20, 3_000, 300]
  for (const [at, length] of lengths.entries()) {
    gateway.advance(500)
    const answer = await gateway.post(chat, question('x'.repeat(length)))
    await answer.text()
    await gateway.logOf(answer.headers.get('x-request-id')!)
    if (at === 1) await (await gateway.post(chat, question(), { authorization: 'Bearer wrong' })).text()
  }
  const list = async (query: string) => (await ask('GET', `/requests?limit=50&${query}`)).body.items!
  const byTime = await list('')
  const figures: Record<string, (row: Record<string, unknown>) => number | null> = {
    at: (row) => Date.parse(String(row['at'])),
    credits: (row) => (row['credits'] === null ? null : Number(row['credits'])),
    total_ms: (row) => row['total_ms'] as number | null,
    first_byte_ms: (row) => row['first_byte_ms'] as number | null,
    input_tokens: (row) => row['input_tokens'] as number | null,
    output_tokens: (row) => row['output_tokens'] as number | null,
  }
  const sources = new Set(byTime.map(({ source }) => source))
  assert.deepEqual([...sources].sort(), ['ledger', 'memory'])
  for (const [name, figure] of Object.entries(figures))
    for (const sign of ['', '-']) {
      const rows = (await list(`sort=${sign}${name}`)).map(figure)
      assert.equal(rows.length, byTime.length, `${sign}${name}`)
      const known = rows.filter((value) => value !== null)
      assert.deepEqual(rows, [...known, ...Array(rows.length - known.length).fill(null)], `${name}: null is last`)
      assert.deepEqual(
        known,
        known.toSorted((a, b) => (sign === '' ? a - b : b - a)),
        `${sign}${name}`,
      )
    }
  const dear = await ask('GET', '/requests?sort=-credits&limit=2')
  assert.deepEqual([dear.body.items!.length, (dear.body as unknown as { next: null }).next], [2, null])
  assert.equal(problemOf(await ask('GET', '/requests?sort=price')), 'invalid_request')
  const csv = async (query: string) => {
    const { headers, text } = await ask('GET', `/requests?${query}`, { headers: { accept: 'text/csv' } })
    assert.match(headers.get('content-type')!, /^text\/csv/)
    const [head, ...lines] = text.trimEnd().split('\r\n')
    assert.match(head!, /^request_id,at,account,account_name,key_id,.*,credits,input_tokens,/)
    return lines.map((line) => line.split(',')[0])
  }
  // The limit of a page is not one of the export.
  assert.deepEqual(
    await csv('limit=1'),
    byTime.map(({ request_id }) => request_id),
  )
  assert.deepEqual(
    await csv('sort=-credits&limit=1'),
    (await list('sort=-credits')).map(({ request_id }) => request_id),
  )
  assert.equal((await csv('outcome=refused')).length, 1)
})

test('CON-18 each loss of a translation is among the fields, including a loss inside of a field', async () => {
  const { ask } = await startApi({
    models: [testModel('native-chat', 'chat'), testModel('native-messages', 'messages')],
  })
  const cached = { type: 'text', text: 'Answer.', cache_control: { type: 'ephemeral' } }
  const asked = { messages: [{ role: 'user', content: [cached] }], max_tokens: 10 }
  for (const [from, model, more] of [
    ['messages', 'native-chat', { system: [cached] }],
    ['messages', 'native-chat', { top_k: 40 }],
    ['messages', 'native-chat', { tools: [{ name: 't', input_schema: {}, cache_control: { type: 'ephemeral' } }] }],
    ['chat', 'native-messages', { messages: question().messages, seed: 1, logit_bias: { 1: 1 }, n: 1 }],
  ] as const) {
    const body = { ...(from === 'messages' ? asked : {}), model, ...more }
    const told = (await ask('POST', '/translate', { body: { from, model, body } })).body as unknown as {
      fields: { field: string }[]
      losses: { field: string }[]
    }
    assert.ok(told.fields, JSON.stringify(told))
    const fields = told.fields.map(({ field }) => field)
    assert.equal(new Set(fields).size, fields.length, `${fields}`)
    assert.deepEqual(
      told.losses.filter(({ field }) => !fields.includes(field)),
      [],
      JSON.stringify(more),
    )
    if ('system' in more) assert.ok(fields.includes('cache_control'), `${fields}`)
  }
})

function serverOf({ configPath, adminUrl }: { configPath: string; adminUrl: string }): string[] {
  return ['--config', configPath, '--admin-listen', new URL(adminUrl).host]
}

test('issue 13: a billed request that memory has forgotten is listed in its place, among refused ones still in memory', async () => {
  const { ask, gateway } = await startApi({ requestsKept: 2 })
  const made: string[] = []
  for (const headers of [{ authorization: 'Bearer wrong' }, { authorization: 'Bearer wrong' }, {}, {}, {}]) {
    gateway.advance(500)
    const answer = await gateway.post(chat, question(), headers as Record<string, string>)
    await answer.text()
    made.unshift(answer.headers.get('x-request-id')!)
    await gateway.logOf(made[0]!)
  }
  for (const limit of [1, 2, 50]) {
    const walked = await walk(ask, '/requests', limit)
    assert.deepEqual(
      walked.map(({ request_id }) => request_id),
      made,
      `by pages of ${limit}`,
    )
  }
})

test('P8 a translation shows no value that the configuration adds to a path or a header', async () => {
  const secret = 'configured-value-7'
  const { ask, viewer } = await startApi({
    upstream: (url) => ({
      upstreams: {
        sim: {
          base_url: url,
          accounts: [{ name: 'a', key: 'upstream-key-1' }],
          query: { key: secret, 'api-version': '7' },
          headers: { 'x-org': secret },
        },
      },
    }),
  })
  const { body, text } = await ask('POST', '/translate', { token: viewer, body: { from: 'chat', body: question() } })
  assert.equal(body['path'], '/v1/chat/completions?key=[configured]&api-version=[configured]')
  assert.ok(!text.includes(secret))
})

test('issue 13: pages of requests stay the same while new requests arrive', async () => {
  const { ask, gateway } = await startApi({ requestsKept: 10 })
  const one = async () => {
    const answer = await gateway.post(chat, question())
    await answer.text()
    return answer.headers.get('x-request-id')!
  }
  const made: string[] = []
  for (let at = 0; at < 12; at++) {
    gateway.advance(10)
    made.unshift(await one())
  }
  await until(async () => (await ask('GET', '/requests?limit=1')).body.items![0]!['request_id'] === made[0])
  const walked = await walk(ask, '/requests', 5, async () => {
    gateway.advance(10)
    await one()
  })
  assert.deepEqual(walked.map(({ request_id }) => `${request_id}`).sort(), made.sort())
})

test('issue 13: the state of the server, the holds of running requests, and the number of streams are shown', async () => {
  const held = createHeld()
  const upstream = await startRawUpstream()
  upstream.play(held.answer)
  const { ask, gateway } = await startApi({ upstreamUrl: upstream.url })
  const { body: before } = await ask('GET', '/status')
  assert.deepEqual([before['store'], before['ready'], before['streams'], before['demo']], ['sqlite', true, 0, false])
  assert.deepEqual(before['ledger'], { writable: true, queued: 0, spooled: 0, oldest_ms: 0, blocked_accounts: 0 })
  const answer = await gateway.post(chat, question('canary-held', { stream: true }))
  await answer.body!.getReader().read()
  assert.equal((await ask('GET', '/status')).body['streams'], 1)
  const accounts = await ask('GET', '/accounts')
  const heldOf = Object.fromEntries(accounts.body.items!.map(({ name, held }) => [name, Number(held)]))
  assert.ok(heldOf['tester']! > 0, accounts.text)
  assert.equal(heldOf['b'], 0)
  assert.equal(Number((await ask('GET', '/accounts/tester')).body['held']), heldOf['tester'])
  held.letGo()
  await until(async () => (await ask('GET', '/accounts/tester')).body['held'] === '0')
  const printed = await runWarm(['status', ...serverOf(gateway)])
  assert.match(printed.stdout, /^store +sqlite$/m, printed.stderr)
})

test('X10 after a reload, the state of the server and settings for agents show what waits for a restart as it is in force', async () => {
  const { ask, gateway } = await startApi({ config: { reporting: { time_zone: 'Asia/Tokyo' } } })
  const read = async () => {
    const {
      reporting,
      store,
      public_url: publicUrl,
    } = (await ask('GET', '/status')).body as unknown as {
      reporting: { time_zone: string; week_starts: string }
      store: string
      public_url: string | null
    }
    const { base_url: url } = (await ask('GET', '/setup/openai-node')).body as unknown as { base_url: string }
    return [reporting.time_zone, reporting.week_starts, store, publicUrl, url]
  }
  const before = await read()
  assert.deepEqual(before, ['Asia/Tokyo', 'monday', 'sqlite', null, gateway.url])
  gateway.reload({
    ...{ listen: '127.0.0.1:1', reporting: { time_zone: 'Europe/Berlin', week_starts: 'sunday' } },
    admin: { public_url: 'https://admin.example' },
  })
  assert.deepEqual(await read(), before)
})

test('issue 13: an upstream is disabled, tried again and enabled, with audit records; at the command line too', async () => {
  const { ask, gateway } = await startApi({ cools: true })
  const post = async (model = 'native-chat') => {
    const answer = await gateway.post(chat, { ...question(), model })
    await answer.text()
    return answer.status
  }
  const stateOf = async (model: string) =>
    (await ask('GET', '/upstreams')).body.items!.find((row) => row['model'] === model)!['state']
  const disabled = await ask('POST', '/upstreams/sim/disable', { body: { model: 'native-chat' } })
  assert.deepEqual(
    (disabled.body.items as unknown as Record<string, string>[]).map(({ model, state }) => [model, state]),
    [['native-chat', 'disabled']],
  )
  assert.equal(await post(), 503)
  assert.equal(await post('native-messages'), 200)
  // A reload changes nothing of it, nor does a try.
  gateway.reload({})
  await ask('POST', '/upstreams/sim/retry', { body: {} })
  assert.equal(await stateOf('native-chat'), 'disabled')
  const printed = await runWarm(['upstream', 'enable', 'sim', ...serverOf(gateway)])
  assert.match(printed.stdout, /native-chat +sim +a +\d+ +ready/, printed.stderr)
  assert.equal(await post(), 200)
  const { pool, config } = gateway.server.gateway.snapshots.current
  const model = config.catalog.models.get('native-chat')!
  const choice = pool.choose(model, { requestId: 'r', affinity: undefined, tried: [], isLast: false })!
  const stay = pool.enter(choice, { affinity: undefined }, false)
  stay.failed({ tell: 'account', cool: 'now' } as never, 'upstream_401', undefined)
  assert.equal(await stateOf('native-chat'), 'cooling')
  assert.notEqual(await post(), 200)
  const tried = await ask('POST', '/upstreams/sim/retry', { body: { account: 'a' } })
  assert.ok(tried.body.items!.some(({ state }) => state === ('trial' as never)))
  assert.equal(await post(), 200)
  assert.equal(await stateOf('native-chat'), 'ready')
  for (const body of [{ account: 'x' }, { model: 'x' }, {}])
    assert.equal(
      problemOf(
        await ask('POST', `/upstreams/${'account' in body || 'model' in body ? 'sim' : 'x'}/disable`, { body }),
      ),
      'not_found',
    )
  const audit = (await ask('GET', '/audit')).body.items as unknown as Record<string, unknown>[]
  assert.deepEqual(
    audit.slice(0, 4).map(({ operation, object, after }) => [operation, object, after]),
    [
      ['upstream.retry', 'sim', { account: 'a', model: null }],
      ['upstream.enable', 'sim', { account: null, model: null }],
      ['upstream.retry', 'sim', { account: null, model: null }],
      ['upstream.disable', 'sim', { account: null, model: 'native-chat' }],
    ],
  )
  assert.match(String(audit[1]!['actor']), /^cli:/)
})

test('issue 13: a playground request is one of an account without a key: its window, its credit, its wire, an audit record', async () => {
  const { ask, gateway, admin } = await startApi({ config: { limits: { requests_per_minute: 3 } } })
  const play = (body: unknown, more = {}) =>
    ask('POST', '/playground', { body: { account: 'b', wire: 'chat', body, ...more } })
  const whole = await play(question())
  assert.equal(whole.status, 200)
  assert.equal((whole.body as unknown as { object: string }).object, 'chat.completion')
  assert.equal(whole.headers.get('access-control-allow-origin'), null)
  const id = whole.headers.get('x-request-id')!
  const entry = gateway.store.findEntry(id)!
  assert.deepEqual([entry.accountName, entry.bill!.keyId, entry.keyPrefix], ['b', undefined, undefined])
  const explained = (await ask('GET', `/requests/${id}/explain`)).body as unknown as Record<string, unknown>
  assert.deepEqual(
    [explained['account'], explained['key'], (explained['settlement'] as Record<string, unknown>)['state']],
    [{ id: entry.accountId, name: 'b' }, null, 'in the ledger'],
  )
  const audit = (await ask('GET', '/audit?operation=playground')).body.items as unknown as Record<string, unknown>[]
  assert.deepEqual(
    audit.map(({ actor, object, after }) => [actor, object, after]),
    [['operator:ann', entry.accountId, { request: id, wire: 'chat', model: 'native-chat' }]],
  )
  const streamed = await fetch(`${gateway.adminUrl}/api/v1/playground`, {
    method: 'POST',
    headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      account: 'b',
      wire: 'messages',
      body: JSON.stringify({ ...question(), max_tokens: 9, stream: true }),
    }),
  })
  assert.equal(streamed.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  assert.match(await streamed.text(), /^event: message_start[\s\S]*event: message_stop\n/)
  // Errors are those of the wire.
  const unknown = await play({ model: 'x', messages: [] })
  assert.deepEqual(
    [unknown.status, (unknown.body as unknown as { error: { code: string } }).error.code],
    [404, 'model_not_found'],
  )
  const [last] = (await ask('GET', '/audit?operation=playground&limit=1')).body.items!
  // U5: the text of a request is stored nowhere, even if it is in the place of a model's name.
  assert.equal((last!['after'] as unknown as { model: null }).model, null)
  const full = await play(question())
  assert.deepEqual(
    [full.status, (full.body as unknown as { error: { code: string } }).error.code],
    [429, 'rate_limit_exceeded'],
  )
  gateway.advance(60_000)
  assert.equal((await play('{"model"')).status, 400)
  assert.equal(problemOf(await play(question(), { account: 'nobody' })), 'not_found')
  await ask('POST', '/accounts', { body: { name: 'poor' } })
  const signs = ['x-should-retry', 'retry-after', 'www-authenticate']
  const signsOf = ({ headers }: { headers: Headers }) => signs.map((name) => headers.get(name))
  assert.deepEqual(signsOf(full), ['true', full.headers.get('retry-after'), null])
  const poor = await play(question(), { account: 'poor' })
  assert.deepEqual([poor.status, ...signsOf(poor)], [402, 'false', null, null])
  await ask('PATCH', '/accounts/b', { body: { state: 'suspended' }, headers: { 'if-match': '*' } })
  await until(() => gateway.ledger.accounts.get(entry.accountId)?.state === 'suspended')
  const suspended = await play(question())
  assert.deepEqual([suspended.status, ...signsOf(suspended)], [401, 'false', null, 'Bearer'])
  assert.deepEqual(await gateway.store.verify(verifyOptions), [])
  const log = await gateway.logOf(id)
  assert.deepEqual([log['account'], log['key'], log['path']], ['b', undefined, chat])
  assert.deepEqual(
    (await gateway.logLines()).filter(({ event }) => event === 'bug'),
    [],
  )
})

test('issue 13: the playground of a newly created account, and a client that leaves in the middle', async () => {
  const held = createHeld()
  const upstream = await startRawUpstream()
  upstream.play(held.answer)
  const { ask, gateway, admin } = await startApi({ upstreamUrl: upstream.url, pollMs: 60_000 })
  await ask('POST', '/accounts', { body: { name: 'fresh', credit: '5' } })
  const abort = new AbortController()
  const answer = await fetch(`${gateway.adminUrl}/api/v1/playground`, {
    method: 'POST',
    headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json' },
    body: JSON.stringify({ account: 'fresh', wire: 'chat', body: question('canary-left', { stream: true }) }),
    signal: abort.signal,
  })
  await answer.body!.getReader().read()
  assert.equal(gateway.server.gateway.deliveries.size, 1)
  abort.abort()
  const { readers, deliveries } = gateway.server.gateway
  await until(() => readers.count > 0 || deliveries.size === 0, 'it is seen that he left')
  held.letGo()
  assert.equal((await gateway.logOf(answer.headers.get('x-request-id')!))['outcome'], 'client_abort')
})

test('reliability §7 issue 13: a draining server waits for a playground request, and begins no other', async () => {
  const held = createHeld()
  const upstream = await startRawUpstream()
  upstream.play(held.answer)
  const { ask, gateway, admin } = await startApi({ upstreamUrl: upstream.url })
  const body = { account: 'b', wire: 'chat', body: question('canary-drain', { stream: true }) }
  const headers = { authorization: `Bearer ${admin}`, 'content-type': 'application/json' }
  const asked = { method: 'POST', headers, body: JSON.stringify(body) }
  const answer = await fetch(`${gateway.adminUrl}/api/v1/playground`, asked)
  const text = answer.text()
  await until(() => gateway.server.gateway.deliveries.size === 1)
  const drained = gateway.server.drain(0, 60_000)
  const refused = await ask('POST', '/playground', { body: { ...body, account: 'tester' } })
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '5'])
  await upstream.untilHeard()
  held.letGo()
  assert.match(await text, /data: \[DONE\]\n\n$/)
  await drained
})

test('issue 13: a translation equals what the command prints, from the running configuration; nothing is sent', async () => {
  const { ask, gateway } = await startApi()
  const told = await ask('POST', '/translate', { body: { from: 'chat', model: 'native-messages', body: question() } })
  const { ok, from, to, path, losses } = told.body as unknown as Record<string, unknown>
  assert.deepEqual([ok, from, to, path], [true, 'chat', 'messages', '/v1/messages'])
  assert.ok(Array.isArray(losses))
  const refused = await ask('POST', '/translate', { body: { from: 'chat', body: { model: 'nothing' } } })
  assert.deepEqual(
    [refused.status, refused.body['ok'], (refused.body['refusal'] as unknown as { code: string }).code],
    [200, false, 'model_not_found'],
  )
  const answer = 'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
  const back = await ask('POST', '/translate', { body: { from: 'messages', model: 'native-chat', answer } })
  assert.equal((back.body['answer'] as unknown as { status: number }).status, 200)
  for (const body of [
    { from: 'chat' },
    { from: 'chat', answer: '{}' },
    { from: 'x', body: {} },
    { from: 'chat', model: 'native-chat', upstream: 'x', body: {} },
    { from: 'chat', upstream: 'x', body: question() },
  ])
    assert.equal(problemOf(await ask('POST', '/translate', { body })), 'invalid_request')
  assert.deepEqual(gateway.simulator.requests, [])
})

test('X14 issue 13: settings for agents equal those that the command prints; an owner sees them too, without a model’s wire', async () => {
  const { ask, keyA } = await startApi()
  const listed = (await ask('GET', '/setup', { token: keyA })).body.items!
  assert.deepEqual(
    listed.map(({ client }) => client),
    Object.keys(programs),
  )
  for (const { client } of listed) {
    const { body, status } = await ask('GET', `/setup/${client}`, { token: keyA })
    assert.equal(status, 200)
    assert.match(JSON.stringify(body), /\$TRIWIRE_API_KEY/, client)
    assert.equal(body['model'], 'native-messages')
    assert.equal(body['wire'], programs[client as unknown as string]!.wires[0])
  }
  const { body } = await ask('GET', '/setup/claude-code?model=native-chat&url=https://llm.example/v1/')
  assert.equal(body['base_url'], 'https://llm.example')
  const [file] = body['files'] as unknown as { path: string; language: string; text: string }[]
  assert.deepEqual([file!.path, file!.language], ['~/.claude/settings.json', 'json'])
  assert.equal(JSON.parse(file!.text).env.ANTHROPIC_MODEL, 'native-chat')
  const lines = body['lines'] as unknown as { shell: string; text: string }[]
  assert.match(lines[0]!.text, /^export ANTHROPIC_AUTH_TOKEN="\$TRIWIRE_API_KEY"\nclaude$/)
  assert.equal(problemOf(await ask('GET', '/setup/none')), 'not_found')
  for (const query of ['model=none', 'wire=chat', 'url=ftp://x', 'url=https://a:b@x'])
    assert.equal(problemOf(await ask('GET', `/setup/claude-code?${query}`)), 'invalid_request', query)
})

test('NEW-1 R15 an owner gets settings with the models of the key only: the main one, the small one and those in pickers', async () => {
  const { ask, gateway, keyB } = await startApi()
  const { key } = gateway.store.createKey('tester', { models: ['native-r*', 'native-chat'] })
  await gateway.untilKnown(key!)
  for (const client of Object.keys(programs)) {
    const { body, status } = await ask('GET', `/setup/${client}`, { token: key! })
    assert.equal(status, 200, client)
    assert.doesNotMatch(JSON.stringify(body), /native-messages/, client)
    assert.match(JSON.stringify(body), /native-(chat|responses)/, client)
  }
  for (const [token, model] of [
    [key!, 'native-messages'],
    [keyB, 'none'],
  ])
    assert.equal(problemOf(await ask('GET', `/setup/codex?model=${model}`, { token: token! })), 'invalid_request')
})

test('CON-3 every source text and file of a client names its own language, on each wire', async () => {
  const { ask } = await startApi()
  const pythons = ['openai-python', 'anthropic-python']
  const { body: list } = await ask('GET', '/setup')
  let texts = 0
  for (const { client, wires } of list['items'] as unknown as { client: string; wires: string[] }[])
    for (const wire of wires) {
      const { body } = await ask('GET', `/setup/${client}?wire=${wire}`)
      for (const { path, language, text } of body['files'] as unknown as Record<string, string>[]) {
        if (path == null) {
          texts++
          const read = language === 'python' ? 'os.environ["TRIWIRE_API_KEY"]' : 'process.env.TRIWIRE_API_KEY'
          assert.ok(
            text!.includes(read) && !text!.includes('$TRIWIRE'),
            `${client} ${wire} sends the name of the variable`,
          )
          const [line] = body['lines'] as unknown as { text: string }[]
          assert.equal(line!.text, 'export TRIWIRE_API_KEY="$TRIWIRE_API_KEY"')
        } else if (text!.includes('$TRIWIRE'))
          assert.match(String(body['notes']), /write the key itself in place of \$TRIWIRE_API_KEY/, client)
        const fits = {
          python: /^from \w+ import \w+$/m.test(text!) && !text!.includes('const '),
          javascript: /^import .* from '[^']+'$/m.test(text!) && text!.includes('const '),
          json: /^[[{]/.test(text!),
          toml: /^\w+ = /m.test(text!),
          yaml: /^\w+:/m.test(text!),
        }[language!]
        assert.ok(fits, `${client} ${wire}: ${language}`)
        assert.equal(language === 'python', pythons.includes(client), client)
      }
    }
  assert.equal(texts, 14)
})

test('Y19 CON-3 settings name the address at which clients reach the gateway, and say where it comes from', async () => {
  const { ask, gateway } = await startApi()
  const read = async (ask: Awaited<ReturnType<typeof startApi>>['ask'], query = '') => {
    const { body } = await ask('GET', `/setup/claude-code${query}`)
    const [file] = body['files'] as unknown as { text: string }[]
    assert.equal(JSON.parse(file!.text).env.ANTHROPIC_BASE_URL, body['base_url'])
    return [body['base_url'], body['base_url_from']]
  }
  // The configured port is 0, so only the listener has the port. A reload does not move the listener.
  assert.deepEqual(await read(ask), [gateway.url, 'listen'])
  for (const listen of ['127.0.0.1:0', '127.0.0.1:9']) {
    gateway.reload({ listen })
    assert.deepEqual(await read(ask), [gateway.url, 'listen'])
  }
  assert.equal((await ask('GET', '/status')).body['api_url'], null)
  const admin = { public_url: 'https://admin.example/triwire' }
  const { ask: askNamed } = await startApi({ config: { api_url: 'https://llm.example/x/v1/', admin } })
  assert.deepEqual(await read(askNamed), ['https://llm.example/x', 'api_url'])
  assert.deepEqual(await read(askNamed, '?url=http://10.0.0.7:8080'), ['http://10.0.0.7:8080', 'asked'])
  const { body: status } = await askNamed('GET', '/status')
  assert.deepEqual(
    [status['api_url'], status['public_url']],
    ['https://llm.example/x', 'https://admin.example/triwire'],
  )
})

test('CON-3 the shell lines of every client work in a POSIX shell: the key is the value of the variable, never its name', async () => {
  const { ask } = await startApi()
  let read = 0
  for (const client of Object.keys(programs)) {
    const { body } = await ask('GET', `/setup/${client}?url=https://llm.example`)
    const lines = body['lines'] as unknown as { shell: string; text: string }[]
    const exports = lines.find(({ shell }) => shell === 'posix')?.text.match(/^export .*$/gm) ?? []
    const names = exports.map((line) => line.slice(7, line.indexOf('=')))
    const script = [...exports, ...names.map((name) => `printf '%s\\n' "$${name}"`)].join('\n')
    const env = { TRIWIRE_API_KEY: 'canary-key' }
    const values = execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8', env })
    assert.doesNotMatch(values, /TRIWIRE_API_KEY/, client)
    if (exports.join().includes('TRIWIRE_API_KEY')) assert.match(values, /canary-key/, client)
    read += exports.length
    for (const { shell, text } of lines) assert.doesNotMatch(text, /'[^'\n"]*\$TRIWIRE_API_KEY/, `${client} ${shell}`)
  }
  assert.ok(read > 10, `${read} lines`)
})

test('CON the last page of requests, of an operator and of an owner, says since when those without a bill are listed', async () => {
  const { ask, gateway, keyA } = await startApi({ requestsKept: 8 })
  const one = async (model: string) => {
    gateway.advance(1_000)
    const answer = await gateway.post(chat, question('canary-bill', { model }))
    await answer.text()
    await gateway.logOf(answer.headers.get('x-request-id')!)
  }
  const sinceOf = async (query: string) =>
    ((await ask('GET', `/requests?${query}`)).body as { unbilled_since?: string }).unbilled_since
  const started = String((await ask('GET', '/status')).body['started'])
  for (let at = 0; at < 3; at++) await one('nothing')
  assert.equal(Date.parse((await sinceOf(''))!), Date.parse(started))
  assert.equal(await sinceOf('sort=total_ms'), await sinceOf(''))
  assert.equal(await sinceOf('limit=2'), undefined, 'a further page follows')
  assert.equal(
    await sinceOf(`from=${new Date(gateway.nowMs()).toISOString()}`),
    undefined,
    'all of that time are listed',
  )
  const own = await ask('GET', '/me/requests', { token: keyA })
  assert.equal((own.body as { unbilled_since?: string }).unbilled_since, await sinceOf(''))
  for (let at = 0; at < 9; at++) await one('nothing')
  assert.ok(Date.parse((await sinceOf(''))!) > Date.parse(started), 'memory has forgotten the first')
})

test('issue 48: the status, and the lists of an operator and of an owner, name the detached months', async () => {
  const { ask, keyA, gateway } = await startApi()
  const seen = async () => {
    const { reporting } = (await ask('GET', '/status')).body as unknown as { reporting: { away?: string[] } }
    const lists = await Promise.all([ask('GET', '/requests'), ask('GET', '/me/requests', { token: keyA })])
    return [reporting.away, ...lists.map(({ body }) => body['away'])]
  }
  assert.deepEqual(await seen(), [undefined, undefined, undefined])
  const db = new DatabaseSync(gateway.storePath, { timeout: 5_000 })
  db.exec(`INSERT INTO archives VALUES ('2026-01', 'UTC', 0, 1769904000000, 'away', 'f', 'd', 1, 1, '', '', ''),
    ('2026-02', 'UTC', 1769904000000, 1772323200000, 'attached', 'f', 'd', 1, 1, '', '', '')`)
  db.close()
  assert.deepEqual(await seen(), [['2026-01'], ['2026-01'], ['2026-01']])
})

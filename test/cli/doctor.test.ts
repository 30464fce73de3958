import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import test, { after, before } from 'node:test'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { atEnd } from '../support/at-end.ts'
import { startEgressProxy } from '../support/egress-proxy.ts'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'
import { listen } from '../support/listen.ts'
import { run, runWarm } from './run.ts'

type Row = { model: string | null; wire: string | null; probe: string; result: string; tokens: number; note: string }

let gateway: TestGateway
before(async () => {
  const model = (id: string, upstream_model: string) => testModel(id, 'chat', { upstream_model, profile: 'simulator' })
  const models = [
    ...(['messages', 'chat', 'responses'] as const).map((wire) =>
      testModel(`well-${wire}`, wire, { upstream_model: 'sim', profile: 'simulator' }),
    ),
    model('cut', 'sim?cut_events=3'),
    model('deaf', 'sim?reply=Hm'),
    model('refused', 'sim?status=500'),
  ]
  gateway = await startTestGateway({ models, config: { limits: { failed_auth_per_minute: 1_000 } } })
})
after(() => gateway.close())

async function doctor(model: string, baseUrl = gateway.url) {
  const args = ['doctor', '--key', gateway.key, '--model', model, '--base-url', baseUrl, '--json']
  const { code, stdout, stderr } = await runWarm(args)
  const findings: Row[] = stdout ? JSON.parse(stdout).findings : []
  const of = (result: string) =>
    findings.filter((row) => row.result === result).map(({ wire, probe }) => `${wire} ${probe}`)
  return { code, stderr, findings, failed: of('failed'), none: of('none') }
}

for (const wire of ['messages', 'chat', 'responses'] as const) {
  test(`doctor finds nothing wrong on any wire with a well-behaved ${wire} model`, async () => {
    const before = gateway.simulator.requests.length
    const { code, findings, failed, none } = await doctor(`well-${wire}`)
    const upstream = gateway.simulator.requests.slice(before).map(({ body }) => JSON.stringify(body))
    assert.deepEqual(failed, [])
    assert.equal(upstream.length, 21)
    // From each of the three wires the result of the call came through.
    assert.equal(upstream.filter((body) => body.includes('The report has been filed.')).length, 3)
    assert.equal(code, 0)
    assert.equal(findings.length, 26)
    // Translation of chat has no way to ask for a summary.
    assert.deepEqual(none, wire === 'responses' ? ['chat reasoning'] : [])
  })
}

test('R18 doctor asks once more if a gateway asks it to wait a moment, as clients do', async () => {
  let times = 0
  const port = await listen(
    createServer(async (request, response) => {
      const path = request.url!
      const isMoment = path === '/v1/messages/count_tokens' && ++times === 1
      if (isMoment)
        return void response.writeHead(429, { 'retry-after': '0' }).end('{"error":{"message":"overloaded"}}')
      const chunks: Uint8Array[] = []
      for await (const chunk of request) chunks.push(chunk)
      const { host: _, ...headers } = request.headers as Record<string, string>
      const body = request.method === 'GET' ? {} : { body: Buffer.concat(chunks) }
      const got = await fetch(gateway.url + path, { method: request.method!, headers, ...body })
      response.writeHead(got.status, Object.fromEntries(got.headers)).end(await got.text())
    }),
  )
  const { code, failed } = await doctor('well-chat', `http://127.0.0.1:${port}`)
  assert.deepEqual([code, failed, times], [0, [], 2])
})

test('N-F4 N-F15 doctor asks a gateway behind a proxy through that proxy', async () => {
  const there = 'gateway.example'
  const proxy = await startEgressProxy({ [there]: new URL(gateway.url).host })
  const args = ['doctor', '--key', gateway.key, '--model', 'well-chat', '--base-url', `http://${there}`]
  const through = () => runWarm(args, { env: { HTTP_PROXY: proxy.url, NO_PROXY: '', no_proxy: '' } })
  const { code, stdout } = await through()
  assert.equal(code, 0, stdout)
  assert.ok(proxy.asked.length > 20)
  proxy.refuse(407)
  const refused = await through()
  assert.match(refused.stderr, /gateway\.example cannot be reached: the proxy of HTTP_PROXY wants other credentials\. /)
})

test('doctor reports streams that end without their terminator, and exits with 1', async () => {
  const { code, failed, findings } = await doctor('cut')
  assert.equal(code, 1)
  assert.deepEqual(failed.slice(0, 4), ['messages text', 'messages stream', 'messages tool call', 'messages reasoning'])
  const stream = findings.find(({ wire, probe }) => wire === 'chat' && probe === 'stream')
  assert.match(stream!.note, /^the stream ended without its terminator/)
})

test('doctor reports a model that does not call a forced tool', async () => {
  const { code, failed } = await doctor('deaf')
  assert.equal(code, 1)
  assert.deepEqual(failed, ['messages tool call', 'chat tool call', 'responses tool call'])
})

test('doctor works with any base URL, and reports a server that is not a gateway', async () => {
  const server = createServer((_request, response) => response.end('hello'))
  const strange = await doctor('any', `http://127.0.0.1:${await listen(server)}/v1/`)
  assert.equal(strange.code, 1)
  // What only triwire promises is asked of nobody else.
  assert.deepEqual([strange.failed.length, strange.none.length], [15, 11])
  assert.match(strange.findings[0]!.note, /not a JSON object: is this base URL a gateway/)
})

test('doctor without a model asks all listed ones, up to --models-max, and prints a table with the cost', async () => {
  const args = ['doctor', '--base-url', gateway.url, '--models-max', '2']
  const { code, stdout, stderr } = await run(args, { env: { TRIWIRE_KEY: gateway.key } })
  assert.equal(code, 0)
  assert.match(
    stdout,
    /^well-messages {2}responses {2}cache hit +ok +\d+ +\d+ +\d+ +\d+ of \d+ tokens read from cache$/m,
  )
  assert.match(stdout, /^well-chat +chat +tool call +ok .*\{"ok":true\}$/m)
  assert.doesNotMatch(stdout, /well-responses/)
  assert.match(stdout, /^all is well; the probes took \d+ tokens, billed to the key's account$/m)
  assert.equal(stderr, 'note: 4 more models are listed: --models-max or --model asks them too\n')
})

test('doctor reports the tokens that the ledger billed', async () => {
  const { key } = gateway.store.createKey(gateway.store.createAccount('doctor-cost', 10_000_000_000n).id)
  const args = ['doctor', '--key', key, '--model', 'well-messages', '--model', 'well-chat', '--base-url', gateway.url]
  const { json } = await runWarm([...args, '--json'])
  const { tokens, models } = json as unknown as { tokens: number; models: string[] }
  const { json: entries } = await runWarm([
    '--store',
    gateway.storePath,
    'ledger',
    'list',
    '--account',
    'doctor-cost',
    '--json',
  ])
  const fields = ['input_tokens', 'cache_read_tokens', 'cache_write_tokens', 'cache_write_1h_tokens', 'output_tokens']
  const billed = entries.flatMap((entry) => fields.map((field) => Number(entry[field] ?? 0)))
  assert.deepEqual(models, ['well-messages', 'well-chat'])
  assert.equal(
    tokens,
    billed.reduce((sum, count) => sum + count, 0),
  )
})

test('doctor names a failing gateway answer, its cure and its request id', async () => {
  const { code, findings } = await doctor('refused')
  assert.equal(code, 1)
  const text = findings.find(({ wire, probe }) => wire === 'chat' && probe === 'text')
  assert.match(text!.note, /^status 502: .*[^.]; look for req_\w+ in the gateway's log$/)
})

test('doctor reports the errors of a broken server, and never prints a key that the server echoes', async () => {
  const url = await startBrokenServer()
  const { code, stdout, stderr } = await runWarm(['doctor', '--key', 'sk-secret-1', '--base-url', url, '--json'])
  assert.equal(code, 1)
  const findings: Row[] = JSON.parse(stdout).findings
  const notes = Object.fromEntries(findings.map(({ wire, probe, note }) => [`${wire} ${probe}`, note]))
  assert.match(notes['null models']!, /^entry 0 has not exactly the fields created, id, object, owned_by$/)
  assert.equal(notes['messages count tokens'], 'input_tokens is not a positive integer')
  assert.equal(
    notes['messages stream'],
    'the stream is out of order: content_block_delta comes for block 0, which is not open',
  )
  assert.equal(notes['messages text'], 'the answer does not count its tokens')
  assert.equal(notes['chat stream'], 'the stream is out of order: [DONE] comes without a chunk of usage and no choices')
  assert.equal(notes['chat text'], 'the answer has no text, but 3 tokens')
  assert.match(notes['responses stream']!, /^a stream was asked for, and the answer is application\/json$/)
  assert.equal(notes['messages unknown model'], 'status 200 and not 404: {"type":"message","content":[]}')
  const shape = 'the error has not the shape of the wire:'
  assert.equal(notes['messages malformed body'], `${shape} its request_id is not the x-request-id of its header`)
  assert.equal(notes['chat unknown model'], `${shape} error.type is missing`)
  assert.equal(notes['chat malformed body'], 'the answer has no x-request-id')
  assert.equal(notes['responses text'], 'status 500: key … seen; look into the log of the server')
  assert.doesNotMatch(stdout + stderr, /sk-secret-1/)
})

test('doctor reports in one line that no server listens', async () => {
  const { code, stderr } = await runWarm(['doctor', '--key', 'sk', '--base-url', 'http://127.0.0.1:1'])
  assert.equal(code, 1)
  assert.match(stderr, /^triwire: http:\/\/127\.0\.0\.1:1 cannot be reached: .*--base-url\n$/)
})

test('doctor with a wrong key stops at once and says how to get a valid one', async () => {
  const { code, stdout, stderr } = await runWarm(['doctor', '--key', 'sk-wrong', '--base-url', gateway.url])
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(
    stderr,
    /^triwire: the gateway refuses the key: .* Check --key or TRIWIRE_KEY; triwire key create makes a key\n$/,
  )
  assert.doesNotMatch(stderr, /sk-wrong/)
})

test('N-F15 doctor asks for the list with the key; our own simulator and a vendor with one wire pass', async () => {
  const { code, failed, findings } = await doctor('sim', gateway.simulator.url)
  assert.deepEqual([code, failed], [0, []])
  assert.match(findings.find(({ probe }) => probe === 'count tokens')!.note, /^\d+ tokens$/)
  assert.match(findings.find(({ probe }) => probe === 'wrong key')!.note, /^unlike triwire: status 200 and not 401/)

  const vendor = await startSimulator({ paths: { '/v1/messages': 'messages' } })
  atEnd(vendor.close)
  const one = await doctor('sim', vendor.url)
  assert.deepEqual([one.code, one.failed], [0, []])
  const others = one.findings.filter(
    ({ wire, probe }) => wire === 'chat' && probe !== 'text' && !/key|body|unknown/.test(probe),
  )
  assert.deepEqual(others, [])
  assert.match(
    one.findings.find(({ wire, probe }) => wire === 'chat' && probe === 'text')!.note,
    /^not served on this wire/,
  )
})

test('N-F15 doctor works with a server that takes its key only in x-api-key', async () => {
  const server = createServer((request, response) => {
    const isKnown = request.headers['x-api-key'] === 'sk' && request.headers['anthropic-version'] !== undefined
    response.statusCode = isKnown ? 200 : 401
    response.end(isKnown ? '{"data":[{"id":"one"}]}' : '{"error":{"message":"Who are you?"}}')
  })
  const url = `http://127.0.0.1:${await listen(server)}`
  const { stderr } = await runWarm(['doctor', '--key', 'sk', '--model', 'two', '--base-url', url])
  assert.match(stderr, /lists no model "two"\. Name one of one/)
  const wrong = await runWarm(['doctor', '--key', 'sk-wrong', '--base-url', url])
  assert.deepEqual([wrong.code, wrong.stdout], [1, ''])
  assert.match(wrong.stderr, /^triwire: the gateway refuses the key: Who are you\?/)
})

test('N-F15 doctor reports in one line an account without credit, and a server without TLS behind https://', async () => {
  const { key } = gateway.store.createKey(gateway.store.createAccount('doctor-poor').id)
  await gateway.untilKnown(key)
  const poor = await runWarm(['doctor', '--key', key, '--base-url', gateway.url])
  assert.deepEqual([poor.code, poor.stdout], [1, ''])
  assert.match(
    poor.stderr,
    /^triwire: the account cannot pay for the probes: .* Give it credit with triwire account credit, .*\n$/,
  )
  const { stderr } = await runWarm(['doctor', '--key', 'sk', '--base-url', gateway.url.replace('http', 'https')])
  assert.match(
    stderr,
    /cannot be reached: it speaks plain HTTP there: write http:\/\/ for https:\/\/ \(ERR_SSL_\w+\)\./,
  )
})

test('doctor with an unlisted model names some listed ones', async () => {
  const { code, stderr } = await doctor('no-such')
  assert.equal(code, 1)
  assert.match(stderr, /lists no model \\"no-such\\"\. Name one of well-messages, well-chat, .*\n$/)
})

for (const [what, args, message] of [
  ['no key', [], /a key is needed: give --key or set TRIWIRE_KEY/],
  ['a key of two lines', ['--key', 'sk-se\ncret'], /has characters that no key has/],
  ['a base URL without a scheme', ['--key', 'sk', '--base-url', 'localhost:1'], /Write it like http:/],
  ['a password in the base URL', ['--key', 'sk', '--base-url', 'http://a:b@localhost'], /no user name/],
  ['a time without a unit', ['--key', 'sk', '--timeout', '60'], /Write it like 500ms, 60s or 2m/],
  ['no models', ['--key', 'sk', '--models-max', '0'], /a number from 1 on/],
] as const) {
  test(`doctor with ${what} exits 2`, async () => {
    const { code, stderr } = await runWarm(['doctor', ...args], { env: { TRIWIRE_KEY: '' } })
    assert.equal(code, 2)
    assert.match(stderr, message)
    assert.doesNotMatch(stderr, /cret/)
  })
}

/** Answers everything, and everything wrongly. */
async function startBrokenServer() {
  const sse = (...datas: unknown[]) =>
    datas.map((data) => `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`).join('')
  const chunk = (delta: unknown, finish_reason: string | null = null) => {
    return { id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] }
  }
  const usage = { prompt_tokens: 2, completion_tokens: 3 }
  const streams: Record<string, string> = {
    '/v1/messages': sse({ type: 'message_start', message: {} }, { type: 'content_block_delta', index: 0, delta: {} }),
    '/v1/chat/completions': sse(chunk({ content: 'Hi' }), chunk({}, 'stop'), '[DONE]'),
  }
  const bodies: Record<string, unknown> = {
    '/v1/models': { object: 'list', data: [{ id: 'm', object: 'model', price: 1 }] },
    '/v1/messages/count_tokens': { input_tokens: 0 },
    '/v1/messages': { type: 'message', content: [] },
    '/v1/chat/completions': { choices: [{ message: { content: '' } }], usage },
  }
  const error = { message: 'no', type: 'invalid_request_error', param: null, code: 'invalid_body' }
  const refusals: Record<string, { status: number; requestId?: string; body: unknown }> = {
    '/v1/messages broken': {
      status: 400,
      requestId: 'req_1',
      body: { type: 'error', error: { type: 'invalid_request_error', message: 'no' }, request_id: 'req_2' },
    },
    '/v1/chat/completions broken': { status: 400, body: { error } },
    '/v1/chat/completions unknown': { status: 404, requestId: 'req_1', body: { error: { message: 'no' } } },
  }
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const piece of request) text += piece
    const path = request.url!
    const mistake = text.includes('no-such-model') ? 'unknown' : text && !text.endsWith('}') ? 'broken' : ''
    const refusal = refusals[`${path} ${mistake}`]
    if (refusal) {
      const headers = refusal.requestId ? { 'x-request-id': refusal.requestId } : {}
      response.writeHead(refusal.status, headers).end(JSON.stringify(refusal.body))
      return
    }
    const stream = text.includes('"stream":true') ? streams[path] : undefined
    // It looks like one of ours, so that all is asked of it.
    if (path === '/v1/models') response.setHeader('x-request-id', 'req_01a202cd54d277b98208c5372dfbc82c')
    response.setHeader('content-type', stream ? 'text/event-stream' : 'application/json')
    if (path === '/v1/responses' && !text.includes('"stream":true')) {
      response.statusCode = 500
      const key = request.headers.authorization!.slice('Bearer '.length)
      response.end(JSON.stringify({ error: { message: `key ${key}\n\u001b seen` } }))
    } else response.end(stream ?? JSON.stringify(bodies[path] ?? {}))
  })
  return `http://127.0.0.1:${await listen(server)}`
}

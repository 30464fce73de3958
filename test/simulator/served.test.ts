import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createServer, type Server } from 'node:net'
import test from 'node:test'
import { type AnsweredRequest, startSimulator } from '../../src/simulator/simulator.ts'
import { run, runWarm } from '../cli/run.ts'
import { atEnd } from '../support/at-end.ts'
import { listen } from '../support/listen.ts'
import { until } from '../support/waiting.ts'

/* The simulator as people use it: counted tokens, pages of a browser, a log, a port that is taken (N-F18). */

async function start() {
  const lines: AnsweredRequest[] = []
  const simulator = await startSimulator({ onAnswered: (line) => void lines.push(line) })
  atEnd(simulator.close)
  const post = (path: string, body: unknown, headers: Record<string, string> = { 'x-api-key': 'any' }) =>
    fetch(simulator.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  return { ...simulator, lines, post }
}

const messages = [{ role: 'user', content: 'What is the capital of France?' }]

test('F-P11 the simulator goes on after connections that could not be accepted', async () => {
  const { post } = await start()
  const ask = async () => (await post('/v1/messages', { model: 'sim', max_tokens: 20, messages })).status
  const servers = new Set<Server>()
  const note = (message: unknown) => void servers.add((message as { socket: { server: Server } }).socket.server)
  subscribe('net.server.socket', note)
  assert.equal(await ask(), 200)
  unsubscribe('net.server.socket', note)
  const [server] = servers
  for (let count = 0; count < 2; count++) server!.emit('error', new Error('accept EMFILE'))
  assert.equal(await ask(), 200)
})

test('N-F18 the simulator’s count of tokens equals its bill, with tools and system', async () => {
  const { post } = await start()
  for (const more of [
    {},
    { system: 'Be brief.', tools: [{ name: 'f', input_schema: { type: 'object' } }] },
    // The vendor counts the tokens of a request with a budget, although its maximum is left out.
    { thinking: { type: 'enabled', budget_tokens: 1024 } },
  ]) {
    const body = { model: 'sim', messages, ...more }
    const counted = await post('/v1/messages/count_tokens', body)
    assert.deepEqual([counted.status, counted.headers.get('request-id')?.slice(0, 4)], [200, 'req_'])
    const { input_tokens: count, ...others } = (await counted.json()) as { input_tokens: number }
    assert.deepEqual(others, {})
    const answer = (await (await post('/v1/messages', { ...body, max_tokens: 2000 })).json()) as {
      usage: { input_tokens: number }
    }
    assert.equal(count, answer.usage.input_tokens)
  }
  const refusals: [body: unknown, message: RegExp][] = [
    [{ messages }, /model: is required/],
    [{ model: 'sim', messages: [] }, /messages/],
    ['x', /not a JSON object/],
  ]
  for (const [body, message] of refusals) {
    const refused = await post('/v1/messages/count_tokens', body)
    const { type, error } = (await refused.json()) as { type: string; error: { message: string } }
    assert.deepEqual([refused.status, type], [400, 'error'])
    assert.match(error.message, message)
  }
  assert.equal((await post('/v1/messages/count_tokens', { model: 'sim', messages }, {})).status, 401)
})

test('the simulator answers a request that it cannot carry out, in words', async () => {
  const { post } = await start()
  const asked: [path: string, body: object, message: RegExp][] = [
    ['/v1/chat/completions', { model: 'sim?content_type=a%0Ab', messages }, /Invalid character in header/],
    ['/model/100%/invoke', { anthropic_version: 'bedrock-2023-05-31', max_tokens: 9, messages }, /URI malformed/],
    [
      '/v1/chat/completions',
      {
        ...{ model: 'sim', messages },
        response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { $ref: '#' } } },
      },
      /call stack/,
    ],
  ]
  for (const [path, body, message] of asked) {
    const refused = await post(path, body)
    const { error } = (await refused.json()) as { error: { message: string } }
    assert.equal(refused.status, 400, path)
    assert.match(error.message, message)
  }
})

test('N-F18 the simulator answers requests from pages of any origin', async () => {
  const { url, post } = await start()
  const preflight = await fetch(`${url}/v1/chat/completions`, {
    method: 'OPTIONS',
    headers: { origin: 'http://localhost:3000', 'access-control-request-headers': 'authorization, content-type' },
  })
  const told = ['origin', 'headers', 'methods'].map((name) => preflight.headers.get(`access-control-allow-${name}`))
  assert.deepEqual([preflight.status, ...told], [204, '*', 'authorization, content-type', 'GET, POST'])
  for (const asked of [
    { model: 'sim', messages },
    { model: 'sim', messages, stream: true },
    { model: 'sim?status=500', messages },
  ]) {
    const { headers, ...answer } = await post('/v1/chat/completions', asked)
    assert.equal(headers.get('access-control-allow-origin'), '*')
    assert.match(headers.get('access-control-expose-headers')!, /x-request-id, request-id, retry-after/)
    void answer
  }
})

test('N-F18 the simulator prints for each request what was asked for and its result, without any content', async () => {
  const { url, post, lines } = await start()
  await (await post('/v1/chat/completions', { model: 'sim', messages })).text()
  await (await post('/v1/responses', { model: 'sim?status=429', input: 'canary-asked' })).text()
  await (await fetch(`${url}/v1/models`)).text()
  await (await fetch(`${url}/nowhere?canary-query`)).text()
  await until(() => lines.length === 4, 'it has told of all')
  assert.deepEqual(
    lines.map(({ ms, ...line }) => [line, ms >= 0]),
    [
      [{ method: 'POST', path: '/v1/chat/completions', model: 'sim', status: 200, isCut: false }, true],
      [{ method: 'POST', path: '/v1/responses', model: 'sim?status=429', status: 429, isCut: false }, true],
      [{ method: 'GET', path: '/v1/models', status: 401, isCut: false }, true],
      [{ method: 'GET', path: '/nowhere', status: 401, isCut: false }, true],
    ],
  )
})

test('N-F18 triwire simulator names a port in use, and the cure', async () => {
  const port = await listen(createServer())
  const { code, stderr } = await run(['simulator', '--port', `${port}`])
  assert.equal(code, 1)
  assert.equal(
    stderr,
    `triwire: cannot listen on 127.0.0.1:${port}: something listens there already: stop it, or choose another --port (0: any free one)\n`,
  )
  const json = await runWarm(['simulator', '--port', `${port}`, '--json'])
  assert.match(json.stderr, /^\{"ok":false,"error":\{"code":"failed","message":"cannot listen on/)
})

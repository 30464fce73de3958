import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import OpenAI from 'openai'
import {
  builtInScripts,
  parseScript,
  parseScripts,
  type Simulator,
  startSimulator,
} from '../../src/simulator/simulator.ts'
import { testFolder } from '../support/folder.ts'
import { openRaw } from '../support/raw.ts'
import { within } from '../support/waiting.ts'

const file = `
agent-loop:
  turns:
    - tool_calls: [{ name: get_weather, arguments: { city: Paris }, id: call_fixed }]
    - reply: It is sunny in Paris.
      by_nothing: 1
`

let simulator: Simulator
before(async () => {
  simulator = await startSimulator({
    record: true,
    scripts: {
      'agent-loop': parseScript(`
turns:
  - tool_calls: [{ name: get_weather, arguments: { city: Paris }, id: call_fixed }]
  - reply: It is sunny in Paris.
by_wire:
  responses: { reply: Only here. }
`),
    },
  })
})
after(() => simulator.close())

test('an unknown key of a script is refused with its path and its line', () => {
  assert.throws(() => parseScripts(file), {
    name: 'Error',
    message: 'agent-loop.turns.1.by_nothing (line 6): unknown key',
  })
  assert.throws(() => parseScript('reply: hi\ncut:\n  how: explode\n'), /^Error: cut\.how \(line 3\): /)
  assert.throws(() => parseScript('events:\n  - data: 1\n'), /^Error: events\.0\.data \(line 2\): /)
  assert.throws(() => parseScripts('sim: {}'), /a script name/)
  assert.throws(() => parseScript('reply: [unclosed'), /line 1/)
})

test('scripts are read from a file', async (t) => {
  const folder = testFolder('simulator')
  const path = join(folder, 'scripts.yaml')
  await writeFile(path, 'greeting: { reply: Good day }\n')
  const other = await startSimulator({ scripts: path })
  t.after(other.close)
  const answer = await whole('script:greeting', other)
  assert.equal(answer.text.includes('"content":"Good day"'), true)
})

test('the `first` actions of a step run once each, also for one turn, and again with a new script', async () => {
  const script = {
    first: [
      { status: 429, retry_after: 1 },
      { reply: 'Half', cut: { how: 'error' as const } },
    ],
    reply: 'Whole.',
  }
  for (const name of ['passing', 'passing']) {
    simulator.script(name, { turns: [script] })
    const statuses = []
    for (let asked = 0; asked < 4; asked++) statuses.push((await whole(`script:${name}`)).status)
    assert.deepEqual(statuses, [429, 500, 200, 200])
  }
})

test('turns are chosen by the number of assistant turns in the request', async () => {
  const client = new OpenAI({ apiKey: 'k', baseURL: `${simulator.url}/v1`, maxRetries: 0 })
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Weather?' }]
  const first = await client.chat.completions.create({ model: 'agent-loop', messages })
  assert.equal(first.choices[0]!.message.tool_calls![0]!.id, 'call_fixed')
  messages.push(first.choices[0]!.message, { role: 'tool', tool_call_id: 'call_fixed', content: 'sunny' })
  const second = await client.chat.completions.create({ model: 'agent-loop', messages })
  assert.equal(second.choices[0]!.message.content, 'It is sunny in Paris.')
  messages.push({ role: 'assistant', content: 'Yes.' }, { role: 'user', content: 'Sure?' })
  const last = await client.chat.completions.create({ model: 'agent-loop', messages })
  assert.equal(last.choices[0]!.message.content, 'It is sunny in Paris.')
  const other = await client.responses.create({ model: 'agent-loop', input: 'Weather?' })
  assert.equal(other.output.at(-1)!.type, 'function_call')
  assert.equal(other.output_text, 'Only here.')
})

test('a script sets the status, headers and the vendor’s error body', async () => {
  const answer = await whole('sim?status=429&retry_after=7')
  assert.equal(answer.status, 429)
  assert.equal(answer.headers.get('retry-after'), '7')
  assert.deepEqual(JSON.parse(answer.text), {
    error: {
      message: 'The simulator was told to answer 429.',
      type: 'rate_limit_error',
      param: null,
      code: 'rate_limit_exceeded',
    },
  })
  simulator.script('html', { status: 502, body: '<html>', content_type: 'text/html', headers: { 'x-from': 'a' } })
  const page = await whole('html')
  assert.deepEqual([page.status, page.text, page.headers.get('content-type')], [502, '<html>', 'text/html'])
  assert.equal(page.headers.get('x-from'), 'a')
})

test('a body with status 200 is sent even if a stream was asked for', async () => {
  simulator.script('odd', { body: { error: { message: 'no' } } })
  const answer = await streamed('odd')
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.equal(answer.text, '{"error":{"message":"no"}}')
})

test('a script sends exact events: names, comments, raw bytes, strings', async () => {
  simulator.script('exact', {
    events: [
      { comment: 'keep-alive' },
      { data: { type: 'x' } },
      { event: 'ping', data: '{' },
      '[DONE]',
      { raw: 'data: cut' },
    ],
  })
  assert.equal(
    (await streamed('exact')).text,
    ': keep-alive\n\ndata: {"type":"x"}\n\nevent: ping\ndata: {\n\ndata: [DONE]\n\ndata: cut',
  )
  const named = await post('/v1/responses', { model: 'exact', input: 'Hi', stream: true })
  assert.match(await named.text(), /\n\nevent: x\ndata: \{"type":"x"\}\n\n/)
})

test('a script sets line ends, a byte order mark, and a missing last blank line', async () => {
  simulator.script('lines', { events: ['1', '2'] })
  assert.equal((await streamed('lines?crlf=1')).text, 'data: 1\r\n\r\ndata: 2\r\n\r\n')
  assert.equal((await streamed('lines?no_last_blank=1')).text, 'data: 1\n\ndata: 2\n')
  const bytes = await (await post('/v1/chat/completions', { ...ask('lines?bom=1'), stream: true })).bytes()
  assert.deepEqual([...bytes.subarray(0, 4)], [0xef, 0xbb, 0xbf, 0x64])
})

test('a script cuts after events and bytes, counted from either end', async () => {
  simulator.script('five', { events: ['1', '2', '3', '4', '5'] })
  assert.equal((await streamed('five?cut_events=2&cut_how=end')).text, 'data: 1\n\ndata: 2\n\n')
  assert.equal((await streamed('five?cut_events=-1&cut_how=end')).text, 'data: 1\n\ndata: 2\n\ndata: 3\n\ndata: 4\n\n')
  assert.equal((await streamed('five?cut_bytes=12&cut_how=end')).text, 'data: 1\n\ndat')
  assert.equal((await streamed('five?cut_events=0&cut_how=end')).text, '')
  await assert.rejects(streamed('five?cut_events=2'), /terminated/)
})

test('a reset arrives after the bytes before it', async () => {
  // Not by fetch, which forgets what nobody has taken from it when the reset comes.
  const { socket, write, read } = await openRaw(simulator.url)
  const reset = new Promise<NodeJS.ErrnoException>((resolve) => socket.once('error', resolve))
  const body = JSON.stringify({ ...ask('five?cut_events=2'), stream: true })
  write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  const { answers } = await read()
  assert.deepEqual([answers[0]?.body, answers[0]?.isWhole], ['data: 1\n\ndata: 2\n\n', false])
  assert.equal((await within(reset, 'the connection is reset')).code, 'ECONNRESET')
  assert.equal(simulator.requests.at(-1)!.closedEarly, false)
})

test('a failure midway is sent in the form of each vendor', async () => {
  const chat = await streamed('sim?cut_events=2&cut_how=error')
  assert.match(chat.text, /data: \{"error":\{"message":"The server had an error\.".*\}\}\n\n$/)
  const message = {
    model: 'sim?cut_events=3&cut_how=error',
    max_tokens: 9,
    messages: [{ role: 'user', content: 'Hi' }],
  }
  const messages = await (await post('/v1/messages', { ...message, stream: true })).text()
  assert.match(
    messages,
    /event: error\ndata: \{"type":"error","error":\{"type":"overloaded_error","message":"Overloaded"\}\}\n\n$/,
  )
  const failed = await post('/v1/responses', { model: 'sim?cut_events=4&cut_how=error', input: 'Hi', stream: true })
  const events = (await failed.text()).split('\n').filter((line) => line.startsWith('event: '))
  assert.deepEqual(events.slice(4), ['event: error', 'event: response.failed'])
  assert.equal((await whole('sim?cut_events=2&cut_how=error')).status, 500)
})

test('hang keeps the connection open until the client leaves, and this is recorded', async () => {
  const controller = new AbortController()
  const response = await post(
    '/v1/chat/completions',
    { ...ask('five?cut_events=1&cut_how=hang'), stream: true },
    controller.signal,
  )
  const reader = response.body!.getReader()
  assert.equal(new TextDecoder().decode((await reader.read()).value), 'data: 1\n\n')
  const recorded = simulator.requests.at(-1)!
  assert.equal(recorded.closedEarly, false)
  controller.abort()
  await assert.rejects(reader.read())
  while (!recorded.closedEarly) await new Promise((resolve) => setImmediate(resolve))
  assert.ok(recorded.closedAt! > 0)
})

test('usage may be missing or in the wire’s own shape, and finish in the wire’s own word', async () => {
  assert.equal('usage' in JSON.parse((await whole('sim?usage=none')).text), false)
  simulator.script('odd-usage', { usage: { prompt_tokens: -1 }, finish: 'eos' })
  const odd = JSON.parse((await whole('odd-usage')).text)
  assert.deepEqual(odd.usage, { prompt_tokens: -1 })
  assert.equal(odd.choices[0].finish_reason, 'eos')
  const refused = { model: 'sim?finish=refusal', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] }
  assert.equal(((await (await post('/v1/messages', refused)).json()) as { stop_reason: string }).stop_reason, 'refusal')
  const filtered = await (await post('/v1/responses', { model: 'sim?finish=content_filter', input: 'Hi' })).json()
  assert.deepEqual((filtered as { incomplete_details: unknown }).incomplete_details, { reason: 'content_filter' })
})

test('directives give a reply, a long reply, a call, or single bytes', async () => {
  const reply = JSON.parse((await whole('sim?reply=Grüße,+Welt&reasoning=Hm')).text)
  assert.equal(reply.choices[0].message.content, 'Grüße, Welt')
  assert.equal(reply.choices[0].message.reasoning_content, 'Hm')
  assert.equal(JSON.parse((await whole('sim?tokens=2000')).text).usage.completion_tokens, 2000)
  const call = JSON.parse((await whole('sim?call=get_weather')).text)
  assert.equal(call.choices[0].message.tool_calls[0].function.name, 'get_weather')
  const clean = (await streamed('five')).text
  assert.equal((await streamed('five?split=1')).text, clean)
})

test('an unknown script or directive is refused as the vendor would refuse it', async () => {
  const missing = await whole('script:nowhere')
  assert.equal(missing.status, 404)
  assert.equal(JSON.parse(missing.text).error.code, 'model_not_found')
  const unknown = await whole('sim?speed=9')
  assert.equal(unknown.status, 400)
  assert.match(unknown.text, /\\"speed\\" is not a directive/)
  assert.match((await whole('sim?constructor=9')).text, /\\"constructor\\" is not a directive/)
  assert.match((await whole('sim?status=99')).text, /status/)
})

test('every built-in script answers on its wire', async () => {
  assert.equal(builtInScripts.length, 14)
  assert.equal(new Set(builtInScripts.map((one) => one.id)).size, 14)
  const bodies = {
    messages: ['/v1/messages', { max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] }],
    chat: ['/v1/chat/completions', { messages: [{ role: 'user', content: 'Hi' }] }],
    responses: ['/v1/responses', { input: 'Hi' }],
  } as const
  const statuses: Record<string, number> = { 'sim-chat-429': 429, 'sim-chat-500': 500, 'sim-responses-failed': 500 }
  for (const { id, wire, upstreamModel } of builtInScripts) {
    const [path, body] = bodies[wire]
    const controller = new AbortController()
    const model = upstreamModel.replace('first_delay_ms=1000', 'first_delay_ms=1')
    const response = await post(path, { ...body, model }, controller.signal)
    assert.equal(response.status, statuses[id] ?? 200, id)
    controller.abort()
  }
})

test('record keeps method, path, headers and body; models and unknown paths are answered', async () => {
  await whole('sim')
  const { method, path, headers, json, body, status } = simulator.requests.at(-1)!
  assert.deepEqual([method, path, headers.authorization, status], ['POST', '/v1/chat/completions', 'Bearer k', 200])
  assert.deepEqual(json, ask('sim'))
  assert.equal(body, JSON.stringify(ask('sim')))
  const models = await fetch(`${simulator.url}/v1/models`, { headers: { 'x-api-key': 'k' } })
  assert.equal(((await models.json()) as { data: { id: string }[] }).data[0]!.id, 'sim')
  assert.equal((await post('/v1/embeddings', {})).status, 404)
})

function ask(model: string) {
  return { model, messages: [{ role: 'user', content: 'Hi' }] }
}

function post(path: string, body: object, signal: AbortSignal | null = null, to = simulator): Promise<Response> {
  const headers = { authorization: 'Bearer k' }
  return fetch(to.url + path, { method: 'POST', headers, body: JSON.stringify(body), signal })
}

async function whole(model: string, to = simulator) {
  const response = await post('/v1/chat/completions', ask(model), null, to)
  return { status: response.status, headers: response.headers, text: await response.text() }
}

async function streamed(model: string) {
  const response = await post('/v1/chat/completions', { ...ask(model), stream: true })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

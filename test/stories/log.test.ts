import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test, { after, before } from 'node:test'
import { createLog } from '../../src/log/log.ts'
import { testFolder } from '../support/folder.ts'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'
import { assertQuiet } from '../support/quiet.ts'
import { openRaw, raw } from '../support/raw.ts'
import { until } from '../support/waiting.ts'

let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway({
    models: [
      testModel('plain', 'chat'),
      testModel('cut', 'chat', { upstream_model: 'script:cut' }),
      testModel('failing', 'chat', { upstream_model: 'script:failing' }),
      testModel('rejecting', 'chat', { upstream_model: 'script:rejecting' }),
      testModel('endless', 'chat', { upstream_model: 'script:endless' }),
    ],
    config: { timeouts: { headers: 200, body: 200 } },
  })
  gateway.simulator.script('cut', { reply: 'canary-answer one two three', cut: { after_events: 3, how: 'reset' } })
  gateway.simulator.script('failing', { status: 500, body: { error: { message: 'canary-upstream-text' } } })
  gateway.simulator.script('rejecting', { status: 400, body: { error: { message: 'canary-rejection' } } })
  gateway.simulator.script('endless', { reply: 'canary-answer one two three', cut: { after_events: 3, how: 'hang' } })
})
after(() => gateway.close())

const path = '/v1/chat/completions'
const body = (model: string, stream = false) =>
  JSON.stringify({ model, stream, user: 'canary-user', messages: [{ role: 'user', content: 'canary-question' }] })

/** A request whose headers, query and body all carry texts that must stay out of the log. @returns its id. */
async function ask(model: string, stream = false, key = gateway.key): Promise<string> {
  const response = await fetch(`${gateway.url}${path}?q=canary-query`, {
    method: 'POST',
    headers: {
      'x-api-key': key,
      'x-session-id': 'canary-session',
      'x-other': 'canary-header',
      'user-agent': 'canary-agent',
    },
    body: body(model, stream),
  })
  await response.text().catch(() => '')
  return response.headers.get('x-request-id')!
}

function post(lines: readonly string[], text: string): string {
  return [`POST ${path} HTTP/1.1`, 'host: x', `x-api-key: ${gateway.key}`, ...lines, '', text].join('\r\n')
}

const cases: Record<string, { ask: () => Promise<string>; line: Record<string, unknown> }> = {
  'an answer': {
    ask: () => ask('plain'),
    line: {
      outcome: 'ok',
      status: 200,
      code: undefined,
      account: 'tester',
      wire: 'chat',
      model: 'plain',
      stream: false,
    },
  },
  'a stream': {
    ask: () => ask('plain', true),
    line: { outcome: 'ok', status: 200, stream: true, usage_source: 'final' },
  },
  'a bad key': {
    ask: () => ask('plain', false, 'sk-tri-canary-key'),
    line: { outcome: 'refused', status: 401, code: 'invalid_api_key', account: undefined, model: undefined },
  },
  'an unknown model': {
    ask: () => ask('canary-model'),
    line: { outcome: 'refused', status: 404, model: undefined, code: 'model_not_found' },
  },
  'a rejection': { ask: () => ask('rejecting'), line: { outcome: 'refused', status: 400, code: 'invalid_request' } },
  'an upstream failure': {
    ask: () => ask('failing'),
    line: { outcome: 'upstream_error', status: 502, code: 'upstream_error' },
  },
  'a stream that was cut': {
    ask: () => ask('cut', true),
    line: { outcome: 'upstream_cut', status: 200, stream: true },
  },
  'an unknown path with a key in it': {
    ask: async () => (await fetch(`${gateway.url}/v1/${gateway.key}/canary?canary-query`)).headers.get('x-request-id')!,
    line: { outcome: 'refused', status: 404, path: '/v1/sk-…/canary' },
  },
  'the models list': {
    ask: async () => (await fetch(`${gateway.url}/v1/models`)).headers.get('x-request-id')!,
    line: { outcome: 'ok', status: 200, method: 'GET', path: '/v1/models', ip: '127.0.0.1' },
  },
  'a preflight': {
    ask: async () => (await fetch(`${gateway.url}/v1/models`, { method: 'OPTIONS' })).headers.get('x-request-id')!,
    line: { outcome: 'ok', status: 204, method: 'OPTIONS' },
  },
  'bad framing': {
    ask: () => idOf(post(['content-length: 1', 'transfer-encoding: chunked', 'x-other: canary-header'], '')),
    line: { outcome: 'refused', status: 400, cause: 'bad_http', code: 'invalid_body' },
  },
  'bytes that are not HTTP': {
    ask: () => idOf('canary\r\n\r\n'),
    line: { outcome: 'refused', status: 400, cause: 'bad_http', path: '' },
  },
  'a bad chunk': {
    ask: () => idOf(post(['transfer-encoding: chunked'], 'canary\r\n')),
    line: { outcome: 'refused', status: 400, code: 'invalid_body', path },
  },
  'a body that does not come': {
    ask: () => idOf(post(['content-length: 100'], '{"canary":')),
    line: { outcome: 'client_timeout', status: 408, path },
  },
}

async function idOf(bytes: string): Promise<string> {
  return (await raw(gateway.url, bytes)).answers[0]!.headers.get('x-request-id')!
}

for (const [name, { ask, line: wanted }] of Object.entries(cases)) {
  test(`U5 reliability §1.1 one access line for ${name}, with its outcome and without content`, async () => {
    const id = await ask()
    await gateway.logOf(id)
    await assertQuiet(gateway)
    const lines = (await gateway.logLines()).filter((line) => line['id'] === id)
    assert.equal(lines.length, 1)
    for (const [field, value] of Object.entries(wanted)) assert.deepEqual(lines[0]![field], value, field)
    assert.ok((lines[0]!['end_ms'] as number) >= 0)
    if (wanted['status'] !== 204 && !('cause' in wanted)) assert.ok((lines[0]!['first_byte_ms'] as number) >= 0)
  })
}

test('F-C5 one access line for a client that leaves its stream', async () => {
  const { socket, write, read } = await openRaw(gateway.url)
  const text = body('endless', true)
  write(post([`content-length: ${text.length}`], text))
  const id = (await read({ until: /canary-answer/ })).answers[0]!.headers.get('x-request-id')!
  socket.resetAndDestroy()
  const { readers } = gateway.server.gateway
  await until(() => readers.count > 0, 'it is read on for its figures')
  gateway.advance(10_000)
  assert.equal((await gateway.logOf(id))['outcome'], 'client_abort')
})

test('U5 no key and no content is in any line, after all of the above', async () => {
  await gateway.logLines()
  const text = readFileSync(join(dirname(gateway.configPath), 'access.log'), 'utf8')
  assert.doesNotMatch(text.replaceAll('/canary"', ''), /canary/)
  assert.doesNotMatch(text, /sk-tri-[A-Za-z0-9]{20}|upstream-key/)
})

test('F-P12 a sink that takes nothing blocks no request; lines that do not fit are dropped and counted', async () => {
  const fifo = join(testFolder('log'), 'sink')
  execFileSync('mkfifo', [fifo])
  // Open on both ends here, so that it never closes; and full.
  const reader = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK)
  assert.throws(() => {
    for (;;) writeSync(reader, 'x'.repeat(4_096))
  }, /EAGAIN/)
  const log = createLog({ level: 'info', isPretty: false, descriptor: openSync(fifo, 'w'), nowMs: Date.now })
  for (let i = 0; i < 30_000; i++) log.event('info', 'line', { i, text: 'some words of a line' })
  // Whoever stops the process does not wait for it either.
  await log.flush(50)
  let text = ''
  const buffer = Buffer.alloc(65_536)
  const written = () => text.match(/"event":"line"/g)?.length ?? 0
  const dropped = () => Number(text.match(/"event":"log_dropped","lines":(\d+)/)?.[1] ?? 0)
  await until(() => {
    try {
      for (;;) text += buffer.toString('utf8', 0, readSync(reader, buffer))
    } catch {
      return written() + dropped() >= 30_000
    }
  }, 'every line is there or counted')
  closeSync(reader)
  assert.ok(dropped() > 1_000, text.slice(-300))
  assert.equal(written() + dropped(), 30_000)
})

import assert from 'node:assert/strict'
import { request } from 'node:http'
import test, { after, before } from 'node:test'
import { createCatalog } from '../../src/catalog/model.ts'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { answers, asks, frames, type Native, named, paths, startNative } from '../support/native.ts'
import { stream, whole } from '../support/raw-upstream.ts'

let native: Native
before(async () => {
  native = await startNative()
})
after(() => native.close())

/** The headers of the request that an upstream saw. */
async function seen(headers: Record<string, string>, on: Native = native) {
  on.upstream.play(whole(answers.messages))
  await on.ask('messages', {}, headers)
  return on.upstream.requests[0]!
}

test('N3 spec 9.2 the version is the client’s in either spelling, the neutral one first, else 2023-06-01', async () => {
  const cases: [Record<string, string>, string][] = [
    [{}, '2023-06-01'],
    [{ 'anthropic-version': 'any-1' }, 'any-1'],
    [{ 'msgwire-version': 'any-2' }, 'any-2'],
    [{ 'msgwire-version': 'any-2', 'anthropic-version': 'any-1' }, 'any-2'],
  ]
  for (const [headers, version] of cases) assert.equal((await seen(headers)).header('anthropic-version'), version)
})

test('N3 the beta header is forwarded as sent, with repeated lines joined, and left out if the client sends none', async () => {
  assert.equal((await seen({})).header('anthropic-beta'), undefined)
  assert.equal((await seen({ 'msgwire-beta': 'a-1,b-2' })).header('anthropic-beta'), 'a-1,b-2')
  assert.equal((await seen({ 'anthropic-beta': 'c-3' })).header('anthropic-beta'), 'c-3')
  native.upstream.play(whole(answers.messages))
  await new Promise((resolve) => {
    const raw = request(
      native.gateway.url + paths.messages,
      { method: 'POST', headers: { 'x-api-key': native.gateway.key, 'anthropic-beta': ['a', 'b, c', 'd\u00e9'] } },
      (response) => response.resume().on('end', resolve),
    )
    raw.end(Buffer.from(JSON.stringify(asks.messages)))
  })
  assert.equal(native.upstream.requests[0]!.header('anthropic-beta'), 'a, b, c, d\u00e9')
})

test('B12 C7 betas that raise the price do not reach the model unless its entry allows them', async () => {
  const betas = 'a-1, context-1m-2025-08-07,b-2'
  assert.equal((await seen({ 'anthropic-beta': betas })).header('anthropic-beta'), 'a-1,b-2')
  assert.equal((await seen({ 'msgwire-beta': 'context-1m-2025-08-07' })).header('anthropic-beta'), undefined)
  const other = await startNative()
  const { config } = other.gateway.server.gateway.snapshots.current
  const models = [...config.catalog.models.values()].map((model) => ({
    ...model,
    allowedFields: new Set(['context-1m-2025-08-07']),
  }))
  other.gateway.server.reload({ ...config, catalog: createCatalog(models, 1, 'o') })
  assert.equal((await seen({ 'anthropic-beta': betas }, other)).header('anthropic-beta'), betas)
  await other.close()
})

test('B12 C7 Y13 betas that raise the price or let another model answer are dropped in any spelling, also in the body', async () => {
  const costly = [
    'Context-1M-2025-08-07',
    'SERVER-side-fallback-2026-07-01',
    'fallback-Credit-2026-06-09',
    'context-1m-x',
  ]
  for (const beta of costly) {
    for (const header of ['anthropic-beta', 'msgwire-beta', 'Anthropic-Beta']) {
      assert.equal((await seen({ [header]: `a-1,\t ${beta} ,B-2` })).header('anthropic-beta'), 'a-1,B-2', beta)
      assert.equal((await seen({ [header]: beta })).header('anthropic-beta'), undefined, beta)
    }
  }
  native.upstream.play(whole(answers.messages))
  const { id } = await native.ask(
    'messages',
    { betas: costly, Anthropic_Beta: costly },
    { 'anthropic-beta': costly[0]! },
  )
  assert.deepEqual((await native.gateway.logOf(id))['losses'], ['betas', 'anthropic_beta', 'beta'])
  const { body } = native.upstream.requests[0]!
  assert.doesNotMatch(body.toString(), /beta|context-1m|fallback/i)
})

test('N3 an upstream that expects the neutral spelling gets it', async () => {
  const other = await startNative()
  const { config } = other.gateway.server.gateway.snapshots.current
  const upstreams = new Map(
    [...config.upstreams].map(([name, one]) => [name, { ...one, messagesHeaders: 'msgwire' as const }]),
  )
  other.gateway.server.reload({ ...config, upstreams })
  const { header } = await seen({ 'anthropic-beta': 'a' }, other)
  assert.deepEqual(
    [header('msgwire-version'), header('msgwire-beta'), header('anthropic-version')],
    ['2023-06-01', 'a', undefined],
  )
  await other.close()
})

test('P4 no other header of the client is forwarded; the credential is ours', async () => {
  const sent = {
    cookie: 'c=1',
    'x-forwarded-for': '1.2.3.4',
    'x-stainless-lang': 'js',
    'x-session-id': 's',
    'x-request-id': 'mine',
    'user-agent': 'theirs',
  }
  for (const wire of clientWireNames) {
    native.upstream.play(whole(answers[wire]))
    await native.ask(wire, {}, sent)
    const { headers, header } = native.upstream.requests[0]!
    const names = headers.map(([name]) => name).sort()
    const own = wire === 'messages' ? ['anthropic-version', 'x-api-key'] : ['authorization']
    assert.deepEqual(
      names,
      ['accept-encoding', 'connection', 'content-length', 'content-type', 'host', 'user-agent', ...own].sort(),
    )
    assert.equal(
      wire === 'messages' ? header('x-api-key') : header('authorization'),
      wire === 'messages' ? 'upstream-key-1' : 'Bearer upstream-key-1',
    )
    assert.equal(header('user-agent'), 'triwire')
  }
})

test('P4 F-U46 no header of the upstream is forwarded', async () => {
  const theirs = {
    server: 'nginx',
    via: '1.1 x',
    'set-cookie': 'a=b',
    'x-request-id': 'req_up',
    'request-id': 'req_up',
    'x-ratelimit-remaining-tokens': '7',
    'openai-organization': 'org-1',
    'cf-ray': '1',
    'x-should-retry': 'false',
    'retry-after': '9',
  }
  for (const wire of clientWireNames) {
    for (const play of [
      whole(answers[wire], 200, theirs),
      stream(frames[wire], { headers: theirs }),
      whole({ error: { message: 'x' } }, 400, theirs),
    ]) {
      native.upstream.play(play)
      const { headers } = await native.ask(wire, { stream: true })
      for (const name of Object.keys(theirs)) {
        if (name === 'x-request-id' || (name === 'request-id' && wire === 'messages'))
          assert.match(headers.get(name)!, /^req_[0-9a-f]{32}$/)
        else if (name !== 'x-should-retry') assert.equal(headers.get(name), null, name)
      }
    }
  }
})

test('P6 the conversation key sent upstream is stable for an account and differs between accounts', async () => {
  native.gateway.store.createAccount('second', 1_000_000_000n)
  const { key } = native.gateway.store.createKey('second')
  await native.gateway.untilKnown(key)
  const sentBy = async (headers: Record<string, string>) => {
    native.upstream.play(whole(answers.chat))
    assert.equal((await native.ask('chat', { prompt_cache_key: 'canary-session' }, headers)).status, 200)
    return native.upstream.requests[0]!.json()['prompt_cache_key'] as string
  }
  const mine = await sentBy({})
  const theirs = await sentBy({ authorization: `Bearer ${key}` })
  assert.equal(await sentBy({}), mine)
  assert.notEqual(mine, theirs)
  assert.doesNotMatch(mine + theirs, /canary/)
  assert.ok(mine.length > 0 && mine.length <= 64)
})

test('F-C38 F-U37 tool arguments that are not JSON, and lone surrogates, pass unchanged', async () => {
  const events = [
    frames.messages[0]!,
    named({
      type: 'content_block_start',
      index: 0,
      content_block: { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} },
    }),
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\\ud83d"}}\n\n',
    named({ type: 'content_block_stop', index: 0 }),
    ...frames.messages.slice(-2),
  ]
  native.upstream.play(stream(events))
  const { text } = await native.ask('messages', { stream: true })
  assert.ok(text.includes('"partial_json":"{\\ud83d"'))
})

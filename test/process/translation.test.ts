import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test, { after, before } from 'node:test'
import fc from 'fast-check'
import { findPages } from '../../scripts/pages.ts'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { describeTranslation, type TranslationOptions } from '../../src/live/translation.ts'
import { runsUpTo, takeTurn } from '../support/runs.ts'
import { blockOf } from '../translation/page.ts'
import { fullBodies } from '../translation/support/bodies.ts'
import { conversation, requestAt } from '../translation/support/conversations.ts'
import {
  json,
  paths,
  plainModels,
  type ScriptedGateway,
  sse,
  startScriptedGateway,
  wires,
} from '../translation/support/scripted.ts'
import { created, events, wholeMessage } from '../translation/upstreams.ts'

/*
 * What `translate` shows is what the gateway does: each request and each answer of the pages goes both ways, on nine pairs.
 */

let gateway: ScriptedGateway
let accountId: string
before(async () => {
  gateway = await startScriptedGateway({
    models: plainModels(),
    config: {
      seal_key: Buffer.from('a seal key of thirty-two bytes..').toString('base64'),
      limits: { requests_per_minute: 100_000 },
    },
  })
  accountId = gateway.store.findAccount('tester').id
})
after(() => gateway.close())

function describe(wire: ClientWire, body: string | undefined, modelId?: string, options: TranslationOptions = {}) {
  const { config } = gateway.server.gateway.snapshots.current
  const bytes = body === undefined ? undefined : Buffer.from(body)
  return describeTranslation(config, wire, bytes, modelId, { accountId, nowMs: gateway.nowMs, ...options })
}

/** Ids of ours are made from the request's, and a seal has a beginning by chance. */
function withoutIds(text: string): string {
  return text
    .replaceAll(/\b(msg_|chatcmpl-|resp_|req_|fc_|rs_|call_|toolu_)[A-Za-z0-9]{16,}/g, '$1')
    .replaceAll(/tw1\.[\w-]+/g, 'tw1.')
}

type Page = {
  name: string
  client: ClientWire
  upstream: ClientWire
  asks: string
  answers: { language: string; text: string }
}

const pages: Page[] = findPages().map(({ path, client, upstream, name }) => {
  const page = readFileSync(path, 'utf8')
  const answers = blockOf(page, 'Upstream answers')!
  const text = answers.language === 'json' || answers.text.endsWith('…') ? answers.text : `${answers.text}\n\n`
  return {
    name: `${client}-to-${upstream}/${name}`,
    client,
    upstream,
    asks: blockOf(page, 'Client asks')!.text,
    answers: { ...answers, text },
  }
})

type Compared = { id: string; losses: string[]; outcome: string; cost: unknown; flags: unknown }

/** What a request is asked upstream, and answered, is what is described. @returns what its line in the log must say */
async function compare(wire: ClientWire, body: string, answer: Page['answers']): Promise<Compared[]> {
  gateway.play(answer.language === 'json' ? json(answer.text) : sse(answer.text))
  const response = await gateway.post(paths[wire], body)
  const text = await response.text()
  const [asked] = gateway.asked
  const described = await describe(wire, body, undefined, { answer: { body: Buffer.from(answer.text) } })
  if (!described.ok) {
    assert.equal(asked, undefined)
    assert.deepEqual(
      [described.refusal.status, withoutIds(described.refusal.body)],
      [response.status, withoutIds(text)],
    )
    return []
  }
  assert.ok(asked && described.path !== undefined)
  assert.equal(described.body, asked.text)
  assert.equal(described.path, asked.path)
  const { host: _, connection: __, authorization: ___, 'x-api-key': ____, ...headers } = asked.headers
  assert.deepEqual(Object.fromEntries(described.headers), headers)
  const { status, content_type, body: told, outcome, cost, doubts, cut } = described.answer!
  assert.deepEqual([status, cut], [response.status, false])
  assert.ok(response.headers.get('content-type')!.startsWith(content_type))
  assert.equal(withoutIds(told), withoutIds(text))
  const losses = described.losses.map(({ field }) => field)
  return [{ id: response.headers.get('x-request-id')!, losses, outcome, cost: cost ?? undefined, flags: doubts }]
}

/** The log says the same of each. */
async function checkLog(compared: readonly Compared[]): Promise<void> {
  assert.ok(compared.length > 0)
  await gateway.logOf(compared.at(-1)!.id)
  const lines = new Map((await gateway.logLines()).map((line) => [line['id'], line]))
  for (const { id, ...said } of compared) {
    const { losses = [], outcome, cost, flags = [] } = lines.get(id)!
    assert.deepEqual(said, { losses, outcome, cost, flags })
  }
}

for (const client of wires) {
  for (const wire of wires) {
    const model = `plain-${wire}`
    const ask = (body: string, more: object = {}) => JSON.stringify({ ...JSON.parse(body), model, ...more })
    const own = pages.filter((page) => page.client === client)
    const others = pages.filter((page) => page.upstream === wire)
    const { answers } = others[0]!

    test(`T9 translate ${client} to ${wire} prints what the gateway sends and answers, on all pages`, async () => {
      assert.ok(own.length > 10 && others.length > 10)
      const compared: Compared[] = []
      // Three models share the questions of a client, and three clients the answers of a model.
      for (const asks of takeTurn([...new Set(own.map((page) => page.asks))], wires.indexOf(wire), 3))
        compared.push(...(await compare(client, ask(asks), answers)))
      for (const [at, page] of takeTurn(others, wires.indexOf(client), 3).entries()) {
        // The forms of an answer are tried elsewhere: that both are played rightly some of them tell.
        for (const stream of at % 4 === 0 ? [true, false] : [true])
          compared.push(...(await compare(client, ask(own[0]!.asks, { stream }), page.answers)))
      }
      compared.push(...(await compare(client, ask(JSON.stringify(fullBodies[client])), answers)))
      await checkLog(compared)
      // Within one wire what is wrong with an answer is the model's own.
      const violations = gateway.takeViolations()
      if (client !== wire) assert.deepEqual(violations, [])
    })

    test(`T8 translate ${client} to ${wire} prints what the gateway sends, for any conversation`, async () => {
      await fc.assert(
        fc.asyncProperty(conversation, async (rounds) => {
          await compare(client, ask(requestAt(client, rounds)), answers)
        }),
        { numRuns: runsUpTo(20) },
      )
    })
  }
}

test('P1 within one wire the fields are reported by their bytes', async () => {
  const body =
    '{"model":"plain-chat","messages":[{"role":"developer","content":"x"}],"max_tokens":9999999,"max_completion_tokens":9999999,"stream":true,"seed":1.0,"speed":"fast","n":null}'
  const described = await describe('chat', body)
  assert.ok(described.ok && described.path !== undefined)
  assert.deepEqual(described.fields, [
    { field: 'model', what: 'mapped', why: 'what the upstream calls it' },
    { field: 'messages', what: 'mapped', why: 'partly edited, the rest as it is' },
    { field: 'max_tokens', what: 'mapped', why: 'sent in another field' },
    { field: 'max_completion_tokens', what: 'mapped', why: 'within what the model and its upstream take' },
    { field: 'stream', what: 'carried', why: 'as it is' },
    { field: 'seed', what: 'carried', why: 'as it is' },
    { field: 'speed', what: 'dropped', why: 'not taken by the model' },
    { field: 'stream_options', what: 'added', why: 'usage is always asked for' },
  ])
})

test('T9 between two wires the fields are reported in the words of the table, each with its outcome', async () => {
  const body =
    '{"model":"plain-chat","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],"output_config":{"effort":"low"},"top_k":3,"mcp_servers":null,"mine":1}'
  const described = await describe('messages', body)
  assert.ok(described.ok && described.path !== undefined)
  assert.deepEqual(
    described.fields.map(({ field, what, why }) => [field, what, why]),
    [
      ['model', 'mapped', '`model`: what the upstream calls it'],
      ['max_tokens', 'mapped', '`max_completion_tokens` or `max_tokens`, lowered to the model’s maximum'],
      ['messages', 'mapped', '`messages`; results become `tool` messages directly behind their calls'],
      ['output_config', 'mapped', 'see its members'],
      ['output_config.effort', 'mapped', '`reasoning_effort`'],
      ['top_k', 'dropped', 'the model does not take it'],
      ['mine', 'dropped', 'not a field of this wire'],
    ],
  )
  const one = await describe('chat', '{"model":"plain-messages","messages":[{"role":"user","content":"Hi"}],"n":1}')
  assert.ok(one.ok && one.path !== undefined)
  const inner = await describe('responses', '{"model":"plain-chat","input":"Hi","text":{"verbosity":"low"}}')
  assert.ok(inner.ok && inner.path !== undefined)
  assert.deepEqual(inner.fields.slice(2), [
    { field: 'text', what: 'mapped', why: 'see its members' },
    { field: 'text.verbosity', what: 'dropped', why: 'the model does not take it' },
  ])
  assert.deepEqual(one.fields.at(-1), { field: 'n', what: 'dropped', why: 'refused above 1; else nothing to send' })
})

test('R1 size is checked first, then JSON, the model, the conversation key, the fields, the pair', async () => {
  const { limits } = gateway.server.gateway.snapshots.current.config
  const large = `{"model":"nobody","x":"${'y'.repeat(limits.bodyBytesMax)}"`
  const long = `"prompt_cache_key":"${'k'.repeat(257)}"`
  const order: [body: string, code: string, param: string | null][] = [
    [large, 'request_too_large', null],
    ['\ufeff{"model":"nobody"}', 'invalid_body', null],
    ['{"model":"nobody"', 'invalid_body', null],
    [`{"model":"nobody",${long}}`, 'model_not_found', 'model'],
    [`{"model":"plain-messages",${long}}`, 'invalid_cache_key', 'prompt_cache_key'],
    ['{"model":"plain-messages","n":2}', 'invalid_body', 'messages'],
    ['{"model":"plain-messages","messages":[],"max_tokens":0,"n":2}', 'invalid_body', 'max_tokens'],
    ['{"model":"plain-messages","messages":[],"n":2}', 'invalid_body', 'n'],
  ]
  for (const [body, code, param] of order) {
    const described = await describe('chat', body)
    assert.ok(!described.ok, body.slice(0, 80))
    assert.deepEqual([described.refusal.code, described.refusal.param], [code, param], body.slice(0, 80))
    const response = await gateway.post(paths.chat, body)
    const id = response.headers.get('x-request-id')!
    assert.equal(await response.text(), described.refusal.body.replaceAll(/req_0+/g, id))
  }
})

test('R7 a session key and the headers of the wire count as they do in the gateway', async () => {
  const headers = { 'x-session-id': 'canary-é', 'anthropic-beta': 'context-1m', 'anthropic-version': '2024-01-01' }
  const body = JSON.stringify({
    ...fullBodies.messages,
    model: 'plain-messages',
    thread: undefined,
    container: undefined,
  })
  gateway.play(sse(pages.find(({ upstream }) => upstream === 'messages')!.answers.text))
  const sent = new Map(Object.entries(headers).map(([name, value]) => [name, Buffer.from(value).toString('latin1')]))
  const response = await gateway.post(paths.messages, body, Object.fromEntries(sent))
  await response.text()
  const described = await describe('messages', body, undefined, { headers: sent })
  assert.ok(described.ok && described.path !== undefined)
  assert.equal(described.body, gateway.asked[0]!.text)
  assert.deepEqual(described.headers.slice(-2), [
    ['anthropic-version', '2024-01-01'],
    ['anthropic-beta', 'context-1m'],
  ])
  assert.equal(gateway.asked[0]!.headers['anthropic-beta'], 'context-1m')
})

test('U2 a refusal by the model is reported in the words that its client would read', async () => {
  const refusals: [status: number, body: string][] = [
    [
      400,
      '{"error":{"message":"max_completion_tokens is wrong for canary-model-name","type":"invalid_request_error"}}',
    ],
    [429, '{"error":{"message":"canary slow down"}}'],
    [401, '{"error":{"message":"canary key"}}'],
    [404, '{"error":{"message":"The model `hosted-model` does not exist"}}'],
    [500, '<html>canary</html>'],
    [302, ''],
  ]
  for (const [status, text] of refusals) {
    gateway.play(json(text, status))
    const body = '{"model":"plain-chat","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}'
    const response = await gateway.post(paths.messages, body)
    const described = await describe('messages', body, undefined, { answer: { status, body: Buffer.from(text) } })
    assert.ok(described.ok)
    const { answer } = described
    assert.deepEqual([answer!.status, withoutIds(answer!.body)], [response.status, withoutIds(await response.text())])
    assert.deepEqual([answer!.usage, answer!.cost], [null, null])
  }
})

test('C12 a stop sequence that we enforce ends an answer whose model continues, and never shows the model’s figures', async () => {
  const body = '{"model":"plain-responses","messages":[{"role":"user","content":"Hi"}],"stop":["END"],"stream":true}'
  const answer = Buffer.from(events(created, ...wholeMessage(0, 'before END behind')))
  const described = await describe('chat', body, undefined, { answer: { body: answer } })
  assert.ok(described.ok && described.answer)
  assert.match(described.answer.body, /before /)
  assert.doesNotMatch(described.answer.body, /END|behind/)
  assert.match(described.answer.body, /"finish_reason":"stop".*\[DONE\]/s)
  assert.equal(described.answer.usage_source, 'estimated')
})

import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import type { Json } from './cases.ts'
import { framesOf } from './grammar.ts'
import {
  checkStream,
  directions,
  errorOf,
  json,
  paths,
  type ScriptedGateway,
  say,
  sse,
  startScriptedGateway,
} from './support/scripted.ts'
import {
  added,
  argumentsDelta,
  blockDelta,
  blockStart,
  call,
  chatError,
  created,
  events,
  functionCall,
  message,
  messageStart,
  messagesError,
  raw,
  terminal,
  text,
  textDelta,
} from './upstreams.ts'

/** How a model's answer goes wrong, as the client of every other wire is told it: by status before, by frame within a stream. */

let gateway: ScriptedGateway
before(async () => {
  gateway = await startScriptedGateway()
})
after(() => gateway.close())

const responsesBegun = [created, added(0, message(0)), textDelta(0, 'Hel')]
const begun: Record<ClientWire, string> = {
  messages:
    messageStart() + blockStart(0, { type: 'text', text: '' }) + blockDelta(0, { type: 'text_delta', text: 'Hel' }),
  chat: text('Hel'),
  responses: events(...responsesBegun),
}
const callBegun: Record<ClientWire, string> = {
  messages:
    messageStart() +
    blockStart(0, { type: 'tool_use', id: 'a', name: 'f', input: {} }) +
    blockDelta(0, { type: 'input_json_delta', partial_json: '{"a":' }),
  chat: call([0, 'a', 'f', '{"a":']),
  responses: events(created, added(0, functionCall(0, 'f', '')), argumentsDelta(0, '{"a":')),
}
/** Each vendor's error within a stream, of a kind; the texts tell of hosting. */
const failing: Record<ClientWire, Record<'server' | 'busy' | 'long', string>> = {
  messages: {
    server: messagesError('api_error', 'hosted-model failed at https://hosted.example'),
    busy: messagesError('overloaded_error', 'hosted-model is full'),
    long: messagesError('invalid_request_error', 'prompt is too long: 9 tokens > 8 maximum for hosted-model'),
  },
  chat: {
    server: chatError('hosted-model failed', { type: 'server_error' }),
    busy: chatError('hosted-model is full', { code: 'rate_limit_exceeded' }),
    long: chatError("This model's maximum context length is 8 tokens, hosted-model", {
      code: 'context_length_exceeded',
    }),
  },
  responses: {
    server: failed('server_error', 'hosted-model failed'),
    busy: failed('rate_limit_exceeded', 'hosted-model is full'),
    long: failed('context_length_exceeded', 'This exceeds the maximum context length of hosted-model'),
  },
}

function failed(code: string, words: string): string {
  return events(terminal('failed', [], { error: { code, message: words }, usage: null }))
}

const broken = { status: 502, messages: 'api_error', chat: 'upstream_error', responses: 'server_error' }
const busy = {
  status: 429,
  messages: 'rate_limit_error',
  chat: 'rate_limit_exceeded',
  responses: 'rate_limit_exceeded',
}
const long = {
  status: 400,
  messages: 'invalid_request_error',
  chat: 'invalid_request',
  responses: 'context_length_exceeded',
}

for (const { client, wire } of directions) {
  const pair = `${client} client, ${wire} model`
  const cuts = [
    { id: 'A49', what: 'the stream ends after some text', reply: sse(begun[wire]), says: broken },
    { id: 'A50', what: 'the connection is lost within arguments', reply: sse(callBegun[wire], 'reset'), says: broken },
    { id: 'A51', what: 'an error comes after text', reply: sse(begun[wire] + failing[wire].server), says: broken },
    { id: 'A54', what: 'a frame is not JSON', reply: sse(`${begun[wire]}${raw('{"broken')}`), says: broken },
    { id: 'A92', what: 'the model is busy midway', reply: sse(begun[wire] + failing[wire].busy), says: busy },
    { id: 'A74', what: 'the prompt turns out too long', reply: sse(begun[wire] + failing[wire].long), says: long },
  ]
  for (const { id, what, reply, says } of cuts) {
    test(`${id} T4 ${what}: an error frame and no terminator; the evidence is billed (${pair})`, async () => {
      gateway.play(reply)
      const response = await gateway.post(paths[client], say(client, wire, { stream: true }))
      const told = await response.text()
      assert.equal(response.status, 200)
      assert.deepEqual(checkStream[client](told), [])
      assert.doesNotMatch(told, /hosted/)
      assertFrame(client, told, says[client])
      const entry = await entryOf(response)
      assert.ok(entry!.amountNanos > 0n)
      assert.equal((await gateway.logOf(idOf(response)))['outcome'], 'upstream_cut')
    })

    test(`${id} ${what}: a client that asked for JSON gets ${says.status}, and nothing is billed (${pair})`, async () => {
      gateway.play(reply)
      const response = await gateway.post(paths[client], say(client, wire))
      await assertRefusal(client, response, says)
    })
  }

  const firsts = [
    { id: 'A52', what: 'an error as the first event', reply: sse(failing[wire].server), says: broken },
    { id: 'A53', what: 'an error body with status 200', reply: json('{"error":{"message":"no"}}'), says: broken },
    { id: 'U2', what: 'a busy model as the first event', reply: sse(failing[wire].busy), says: busy },
    { id: 'A75', what: 'a prompt too long as the first event', reply: sse(failing[wire].long), says: long },
    { id: 'A49', what: 'no event at all', reply: sse(''), says: broken },
    { id: 'P2', what: 'a body that is not an answer', reply: json('{"hello":1}'), says: broken },
    { id: 'U2', what: 'a body that is not JSON', reply: json('<html>hosted</html>'), says: broken },
  ]
  for (const { id, what, reply, says } of firsts) {
    for (const stream of [true, false]) {
      test(`${id} ${what} is HTTP ${says.status}, ${stream ? 'streamed' : 'JSON'} (${pair})`, async () => {
        gateway.play(reply)
        const response = await gateway.post(paths[client], say(client, wire, { stream }))
        await assertRefusal(client, response, says)
      })
    }
  }
}

function assertFrame(client: ClientWire, told: string, word: string): void {
  const last: Json = JSON.parse(framesOf(told).at(-1)!.data)
  if (client === 'messages') assert.equal(last['error'].type, word)
  else if (client === 'chat') assert.equal(last['error'].code, word)
  else assert.equal(last['response'].error.code, word)
}

async function assertRefusal(client: ClientWire, response: Response, says: typeof broken): Promise<void> {
  const told = await response.text()
  assert.equal(response.status, says.status, told)
  assert.match(response.headers.get('content-type')!, /^application\/json/)
  assert.doesNotMatch(told, /hosted/)
  if (client === 'messages') assert.equal(errorOf(told)['type'], says.messages)
  else assert.equal(errorOf(told)['code'], says.chat)
  assert.equal(await entryOf(response), undefined)
}

function idOf(response: Response): string {
  return response.headers.get('x-request-id')!
}

/** The bill of a request that is over, if it has one. */
async function entryOf(response: Response) {
  await gateway.logOf(idOf(response))
  return gateway.store.findEntry(idOf(response))
}

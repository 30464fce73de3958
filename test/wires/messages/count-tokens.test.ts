import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { GatewayError } from '../../../src/errors.ts'
import { estimateTextTokens } from '../../../src/inference/estimate.ts'
import { checkConversation } from '../../../src/wires/requests/checks.ts'
import { ClientBody } from '../../../src/wires/requests/client-body.ts'
import { wires } from '../../../src/wires/wires.ts'

const text = 'Which of the two ladders is the longer one, and who has borrowed it?'
const words = estimateTextTokens(text)

/** The tokens of a body, checked as the gateway does it. */
function count(value: unknown): number {
  const body = new ClientBody(Buffer.from(JSON.stringify(value)))
  checkConversation(wires.messages.client, body)
  return wires.messages.client.counter!.countTokens(JSON.parse(body.text()))
}

function user(content: unknown) {
  return { messages: [{ role: 'user', content }] }
}

test('spec 4.2 the text of all messages counts, and 4 tokens for each message', () => {
  assert.equal(count({ messages: [] }), 0)
  assert.equal(count(user(text)), words + 4)
  assert.equal(
    count(
      user([
        { type: 'text', text },
        { type: 'text', text },
      ]),
    ),
    2 * words + 4,
  )
  assert.equal(count({ ...user(text), system: text }), 2 * words + 4)
  assert.equal(count({ ...user(text), system: [{ type: 'text', text }] }), 2 * words + 4)
  const turns = [{ role: 'user', content: text }, { role: 'assistant', content: text }, { role: 'system' }]
  assert.equal(count({ messages: turns }), 2 * words + 12)
})

test('R7 null in an optional field counts as absent', () => {
  assert.equal(count({ ...user(text), system: null, tools: null }), words + 4)
  assert.equal(count(user([{ type: 'tool_result', tool_use_id: 'a', content: null }])), 4)
})

test('spec 4.2 tool calls, their results and thinking count', () => {
  const input = { path: 'src/main.ts', text }
  const call = { type: 'tool_use', id: 'toolu_1', name: 'write_file', input }
  const called = estimateTextTokens('write_file') + estimateTextTokens(JSON.stringify(input))
  assert.equal(count(user([call])), called + 4)
  assert.equal(count(user([{ type: 'thinking', thinking: text, signature: 'x'.repeat(999) }])), words + 4)
  assert.equal(count(user([{ type: 'tool_result', tool_use_id: 'toolu_1', content: text }])), words + 4)
  const result = {
    type: 'tool_result',
    tool_use_id: 'toolu_1',
    content: [
      { type: 'text', text },
      { type: 'text', text },
    ],
  }
  assert.equal(count(user([result])), 2 * words + 4)
})

test('spec 4.2 T20 a summary counts, and so does a tool that the conversation defines', () => {
  assert.equal(count(user([{ type: 'compaction', content: text }])), words + 4)
  const definition = { name: 'f', description: text, input_schema: { type: 'object' } }
  const added = (tool: object) => ({ messages: [{ role: 'system', content: [{ type: 'tool_addition', tool }] }] })
  const declared = count({ messages: [{ role: 'system' }], tools: [definition] })
  assert.equal(count(added({ type: 'tool_definition', definition })), declared)
  assert.equal(count(added({ type: 'tool_reference', name: 'f' })), 4)
})

test('spec 4.2 tools count by name, description and schema', () => {
  const schema = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] }
  const tool = { name: 'read_file', description: text, input_schema: schema }
  const tokens = estimateTextTokens('read_file') + words + estimateTextTokens(JSON.stringify(schema))
  assert.equal(count({ ...user(text), tools: [tool] }), words + 4 + tokens)
})

test('spec 4.2 unknown blocks count nothing', () => {
  assert.equal(count(user([{ type: 'hologram', text }, { type: 'constructor' }, {}])), 4)
})

function image(bytes: Buffer) {
  return user([{ type: 'image', source: { type: 'base64', media_type: 'image/x', data: bytes.toString('base64') } }])
}

function bytesOf(hex: string) {
  return Buffer.concat([Buffer.from(hex.replaceAll(' ', ''), 'hex'), Buffer.alloc(40)])
}

test('spec 4.2 an image counts one token per 750 pixels, read from its header, at most 1,600', () => {
  // 300 × 200 in each format: 80 tokens.
  const png = '89504e470d0a1a0a 0000000d49484452 0000012c 000000c8'
  const gif = '474946383961 2c01 c800'
  const jpeg = 'ffd8 ffe0 0010 4a46494600010100000100010000 ffc0 0011 08 00c8 012c 03'
  const webpLossy = '52494646 00000000 57454250 56503820 00000000 000000 9d012a 2c01 c800'
  const webpLossless = '52494646 00000000 57454250 5650384c 00000000 2f 2bc13100'
  const webpExtended = '52494646 00000000 57454250 56503858 0a000000 00000000 2b0100 c70000'
  for (const hex of [png, gif, jpeg, webpLossy, webpLossless, webpExtended]) {
    assert.equal(count(image(bytesOf(hex))), 80 + 4, hex)
  }
  assert.equal(count(image(bytesOf('89504e470d0a1a0a 0000000d49484452 00002000 00002000'))), 1_600 + 4)
})

test('spec 4.2 an image of unknown size counts 1,600', () => {
  assert.equal(count(image(Buffer.from('not a picture'))), 1_604)
  assert.equal(count(image(bytesOf('ffd8 ffe0 0000'))), 1_604)
  assert.equal(count(user([{ type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } }])), 1_604)
})

function document(source: unknown) {
  return user([{ type: 'document', source }])
}

test('spec 4.2 a PDF counts 2,000 tokens for every 50,000 bytes begun, at most 100 pages', () => {
  const pdf = (bytes: number) => {
    const data = Buffer.concat([Buffer.from('%PDF-1.7\n'), Buffer.alloc(bytes - 9)]).toString('base64')
    return document({ type: 'base64', media_type: 'application/pdf', data })
  }
  assert.equal(count(pdf(900)), 2_004)
  assert.equal(count(pdf(120_000)), 6_004)
  assert.equal(count(pdf(9_000_000)), 200_004)
})

test('spec 4.2 a document of text counts as its text', () => {
  assert.equal(count(document({ type: 'text', media_type: 'text/plain', data: text })), words + 4)
  assert.equal(count(document({ type: 'content', content: [{ type: 'text', text }] })), words + 4)
})

test('R10 an unreadable body is a 400 that names the field', () => {
  const cases: [body: unknown, param: string][] = [
    [{}, 'messages'],
    [{ messages: 'hello' }, 'messages'],
    [{ messages: [null] }, 'messages'],
    [{ messages: ['hello'] }, 'messages'],
    [user(5), 'messages'],
    [user([5]), 'messages'],
    [user([{ type: 'text', text: 5 }]), 'messages'],
    [user([{ type: 'image' }]), 'messages'],
    [user([{ type: 'tool_result', content: {} }]), 'messages'],
    [{ messages: [], system: 5 }, 'system'],
    [{ messages: [], system: [null] }, 'system'],
    [{ messages: [], tools: {} }, 'tools'],
    [{ messages: [], tools: [[]] }, 'tools'],
  ]
  for (const [body, param] of cases) {
    assert.throws(
      () => count(body),
      (error) => error instanceof GatewayError && error.code === 'invalid_body' && error.param === param,
      JSON.stringify(body),
    )
  }
})

test('R10 no JSON makes the count fail in any other way', () => {
  const type = fc.constantFrom('text', 'image', 'document', 'tool_use', 'tool_result', 'search_result', 'thinking')
  const block = fc.record(
    { type, text: fc.jsonValue(), content: fc.jsonValue(), source: fc.jsonValue(), input: fc.jsonValue() },
    { requiredKeys: ['type'] },
  )
  const content = fc.oneof(fc.jsonValue(), fc.array(fc.oneof(block, fc.jsonValue()), { maxLength: 4 }))
  const messages = fc.array(fc.record({ role: fc.constant('user'), content }), { maxLength: 3 })
  const body = fc.oneof(fc.jsonValue(), fc.record({ messages, system: content, tools: fc.jsonValue() }))
  fc.assert(
    fc.property(body, (value) => {
      try {
        assert.ok(Number.isSafeInteger(count(value)))
      } catch (error) {
        assert.ok(error instanceof GatewayError, String(error))
      }
    }),
  )
})

test('R10 results nested ten thousand deep do not overflow the stack', () => {
  let content: unknown = text
  for (let depth = 0; depth < 10_000; depth++) content = [{ type: 'tool_result', content }]
  assert.equal(wires.messages.client.counter!.countTokens(user(content)), words + 4)
})

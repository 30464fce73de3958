import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { asks, paths } from '../support/native.ts'

/*
 * Tools in the shape of another wire, on translated models: people copy them from the pages of another vendor. Read as one
 * of this wire such a tool would lose its schema or its name, so it is refused, and the shape that is wanted is told.
 */

let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway()
})
after(() => gateway.close())

const [name, schema] = ['get_weather', { type: 'object', properties: { city: { type: 'string' } } }]
const shapes: Record<ClientWire, object[]> = {
  messages: [
    { name, input_schema: schema },
    { type: 'custom', name, input_schema: schema },
  ],
  chat: [{ type: 'function', function: { name, parameters: schema } }, { function: { name, parameters: schema } }],
  responses: [{ type: 'function', name, parameters: schema }],
}
const wanted: Record<ClientWire, RegExp> = {
  messages: /^tools\[0\]: .* here it is \{"name": …, "description": …, "input_schema": \{…\}\}\.$/,
  chat: /^tools\[0\]: .* here it is \{"type": "function", "function": \{"name": …, .*\}\}\.$/,
  responses: /^tools\[0\]: .* here it is \{"type": "function", "name": …, .*\}\.$/,
}
const translated: Record<ClientWire, string> = {
  messages: 'native-chat',
  chat: 'native-messages',
  responses: 'native-messages',
}

async function ask(wire: ClientWire, more: object) {
  const response = await gateway.post(paths[wire], { ...asks[wire], model: translated[wire], ...more })
  const { error } = (await response.json()) as { error?: { message: string; param?: string } }
  return { status: response.status, error }
}

for (const wire of clientWireNames) {
  for (const other of clientWireNames) {
    for (const [number, tool] of shapes[other].entries()) {
      test(`R9 a tool in the shape of ${other} (${number + 1}) on ${wire} is ${wire === other ? 'accepted' : 'refused with the shape of this wire'}`, async () => {
        const { status, error } = await ask(wire, { tools: [tool] })
        assert.equal(status, wire === other ? 200 : 400, JSON.stringify(error))
        if (wire !== other) assert.match(error!.message, wanted[wire])
        assert.doesNotMatch(error?.message ?? '', /get_weather|web_search/)
      })
    }
  }
}

test('R9 a tool choice in the words of another wire is refused with those of this one', async () => {
  const rows: [wire: ClientWire, choice: unknown, told: RegExp][] = [
    ['messages', 'auto', /^tool_choice: must be an object here: \{"type": "auto"\}/],
    ['messages', 'required', /^tool_choice: must be an object here/],
    ['chat', { type: 'auto' }, /^tool_choice: must be "auto", "none" or "required" here/],
    ['chat', { type: 'tool', name }, /^tool_choice: must be "auto", "none" or "required" here, or an object/],
    ['responses', { type: 'any' }, /^tool_choice: must be "auto", "none" or "required" here/],
  ]
  for (const [wire, choice, told] of rows) {
    const { status, error } = await ask(wire, { tools: shapes[wire].slice(0, 1), tool_choice: choice })
    assert.equal(status, 400)
    assert.match(error!.message, told)
  }
})

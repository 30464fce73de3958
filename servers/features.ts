import assert from 'node:assert/strict'
import type { ClientWire } from '../src/catalog/wire-names.ts'
import type { Ask, Call, Client, Told, Tool, Turn } from './client.ts'
import { modelIds } from './gateway.ts'
import { sayings, type Trigger } from './model/tiny-model.ts'

/** The setting in which a feature is tried: a client, the wire of the model, and whether the answer is streamed. */
export type Trial = {
  client: Client
  modelWire: ClientWire
  isStreamed: boolean
  /** Asks the model. @throws Error if the usage of the answer is impossible */
  ask(asked: Ask, model?: string): Promise<Told>
  /** Asks for an answer that will be cut. @throws Error if it is complete */
  cut(asked: Ask): Promise<void>
  /** Sends a request that must be refused. @returns the error */
  refusal(asked: Ask, model?: string): Promise<{ status: number; text: string }>
}

export type Feature = {
  name: string
  /** Whether the client's wire has the feature. If absent, all wires have it. */
  isOn?(client: Client): boolean
  /** Whether it is tried only without a stream, such as a count or a refusal. */
  isWholeOnly?: true
  /** Whether the gateway itself answers, so that the server is not tried directly. */
  isOurs?: true
  run(trial: Trial): Promise<void>
}

const says = (text: string): Turn => ({ by: 'user', text })
const prompt = (trigger?: Trigger): Turn[] => [says(trigger ? `${trigger} please` : 'Good morning')]
const schemaOf = (field: string) => ({
  type: 'object',
  properties: { [field]: { type: 'string' } },
  required: [field],
  additionalProperties: false,
})
const tools: Tool[] = [
  { name: 'get_weather', schema: schemaOf('city') },
  { name: 'get_time', schema: schemaOf('zone') },
]
const named = (calls: readonly Call[]) => calls.map(({ name, arguments: input }) => ({ name, arguments: input }))
const call: Call = { id: 'call_0a1b2c3d4e5f', ...sayings.weather }
const image = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='

export const features: readonly Feature[] = [
  {
    name: 'text, with characters cut in two',
    async run({ ask }) {
      const told = await ask({ turns: prompt() })
      assert.equal(told.text.trim(), sayings.greeting)
      assert.equal(told.why, 'end')
    },
  },
  {
    name: 'system text',
    async run({ ask }) {
      const [plain, told] = [
        await ask({ turns: prompt() }),
        await ask({ turns: prompt(), system: 'Be brief. 日本 😀' }),
      ]
      assert.equal(told.text.trim(), sayings.greeting)
      assert.ok(told.usage.input > plain.usage.input, 'the system text does not count as input')
    },
  },
  {
    name: 'a longer conversation',
    async run({ ask }) {
      const said: Turn = { by: 'model', text: sayings.greeting }
      const told = await ask({ turns: [says('Hi'), said, says('And?'), said, says('Good morning')] })
      assert.equal(told.text.trim(), sayings.greeting)
    },
  },
  {
    name: 'a tool call',
    async run({ ask }) {
      const told = await ask({ turns: prompt('@call'), tools })
      assert.deepEqual(named(told.calls), [sayings.weather])
      assert.equal(told.why, 'calls')
    },
  },
  {
    name: 'two tool calls',
    async run({ ask }) {
      const told = await ask({ turns: prompt('@pair'), tools })
      assert.deepEqual(named(told.calls), [sayings.weather, sayings.time])
    },
  },
  {
    name: 'text, then a tool call',
    async run({ ask }) {
      const told = await ask({ turns: prompt('@mix'), tools })
      assert.equal(told.text.trim(), sayings.mixed)
      assert.deepEqual(named(told.calls), [sayings.weather])
    },
  },
  {
    name: 'tools that are not called',
    async run({ ask }) {
      const told = await ask({ turns: prompt(), tools })
      assert.equal(told.text.trim(), sayings.greeting)
      assert.deepEqual(told.calls, [])
    },
  },
  {
    name: 'the result of a tool call',
    async run({ ask }) {
      const turns: Turn[] = [
        ...prompt('@call'),
        { by: 'model', calls: [call] },
        { by: 'tool', id: call.id, text: 'sunny' },
      ]
      const told = await ask({ turns, tools })
      assert.equal(told.text.trim(), sayings.afterTool)
    },
  },
  {
    name: 'no tool may be called',
    async run({ ask }) {
      const told = await ask({ turns: prompt('@call'), tools, choice: 'none' })
      assert.deepEqual(told.calls, [])
    },
  },
  {
    name: 'some tool must be called',
    async run({ ask }) {
      const told = await ask({ turns: prompt('@call'), tools, choice: 'required' })
      assert.deepEqual(named(told.calls), [sayings.weather])
    },
  },
  {
    name: 'one tool must be called',
    async run({ ask }) {
      const told = await ask({ turns: prompt('@call'), tools, choice: { name: 'get_time' } })
      assert.ok(told.calls.length > 0)
      for (const { name } of told.calls) assert.equal(name, 'get_time')
    },
  },
  {
    name: 'reasoning, shown',
    async run({ ask }) {
      const told = await ask({ turns: prompt('@think'), reasoning: 'shown' })
      assert.equal(told.reasoning.trim(), sayings.reasoning)
      assert.equal(told.text.trim(), sayings.answer)
    },
  },
  {
    name: 'reasoning, then a tool call',
    async run({ ask }) {
      const told = await ask({ turns: prompt('@rcall'), tools, reasoning: 'shown' })
      assert.equal(told.reasoning.trim(), sayings.reasoning)
      assert.deepEqual(named(told.calls), [sayings.weather])
    },
  },
  {
    name: 'reasoning, switched off',
    async run({ ask }) {
      const told = await ask({ turns: prompt('@think'), reasoning: 'off' })
      assert.equal(told.reasoning, '')
      assert.equal(told.text.trim(), sayings.greeting, 'the model still reasons')
    },
  },
  {
    name: 'a stop sequence',
    isOn: ({ can }) => can.stop,
    async run({ ask, client, modelWire }) {
      const told = await ask({ turns: prompt('@stop'), stops: ['STOP'] })
      assert.equal(told.text.trim(), sayings.beforeStop)
      // On chat and responses, no server reports whether a stop sequence ended the answer.
      if (client.wire === 'messages' && modelWire === 'messages') assert.equal(told.why, 'stop')
    },
  },
  {
    name: 'twelve stop sequences',
    isOn: ({ can }) => can.stop,
    async run({ ask }) {
      const others = Array.from({ length: 11 }, (_, index) => `never ${index}`)
      const told = await ask({ turns: prompt('@stop'), stops: [...others, 'STOP'] })
      assert.equal(told.text.trim(), sayings.beforeStop)
    },
  },
  {
    name: 'the output cap',
    async run({ ask }) {
      const told = await ask({ turns: prompt('@loop'), cap: 20 })
      assert.equal(told.why, 'cap')
      assert.equal(told.usage.output, 20)
    },
  },
  {
    name: 'a JSON schema',
    async run({ ask }) {
      const schema = {
        type: 'object',
        properties: { city: { type: 'string' }, count: { type: 'integer' } },
        required: ['city', 'count'],
        additionalProperties: false,
      }
      const { city, count } = JSON.parse((await ask({ turns: prompt(), schema })).text) as Record<string, unknown>
      assert.equal(typeof city, 'string')
      assert.ok(Number.isInteger(count))
    },
  },
  {
    name: 'the tokens that were read from cache',
    async run({ ask }) {
      const asked: Ask = { turns: [says(`Good morning ${'once more and '.repeat(20)}again`)] }
      await ask(asked)
      const { usage } = await ask(asked)
      assert.ok(usage.cached > usage.input / 2, `${usage.cached} of ${usage.input} tokens`)
    },
  },
  {
    name: 'an image, refused by the server',
    isWholeOnly: true,
    async run({ refusal }) {
      const { status, text } = await refusal({ turns: [{ by: 'user', text: 'What is it?', imageBase64: image }] })
      assert.equal(status, 400)
      assert.match(text, /image input is not supported/)
    },
  },
  {
    name: 'an image, for a model that accepts only text',
    isWholeOnly: true,
    isOurs: true,
    async run({ refusal, modelWire, client }) {
      const asked: Ask = { turns: [{ by: 'user', text: 'What is it?', imageBase64: image }] }
      const { status, text } = await refusal(asked, modelIds.textOnly(modelWire))
      assert.equal(status, 400)
      if (client.wire !== modelWire) assert.doesNotMatch(text, /mmproj/, 'the server was asked')
    },
  },
  {
    name: 'an over-long prompt',
    isWholeOnly: true,
    async run({ refusal }) {
      const { status, text } = await refusal({ turns: [says('word '.repeat(4000))] })
      assert.equal(status, 400)
      assert.match(text, /prompt is too long: \d+ tokens > 8192 maximum/)
    },
  },
  {
    name: 'a long prompt',
    async run({ ask }) {
      const told = await ask({ turns: [says(`${'z'.repeat(2500)}\nGood morning`)] })
      assert.equal(told.text.trim(), sayings.greeting)
      assert.ok(told.usage.input > 2500)
    },
  },
  {
    name: 'tokens are counted',
    isOn: ({ can }) => can.countTokens,
    isWholeOnly: true,
    async run({ client, modelWire }) {
      const counted = await client.countTokens!(modelIds.plain(modelWire), 'Good morning')
      assert.ok(counted > 0)
    },
  },
]

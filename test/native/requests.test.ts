import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import test from 'node:test'
import fc from 'fast-check'
import type { Model } from '../../src/catalog/model.ts'
import type { ProfileSetting } from '../../src/catalog/profiles.ts'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { GatewayError } from '../../src/errors.ts'
import type { AdaptedRequest } from '../../src/wires/requests/adapt-bytes.ts'
import { checkFields } from '../../src/wires/requests/checks.ts'
import { ClientBody } from '../../src/wires/requests/client-body.ts'
import { wires } from '../../src/wires/wires.ts'
import { runsUpTo } from '../support/runs.ts'
import { modelOf } from './models.ts'

const ours = 'triwire-sealed'

function adapt(text: string, model: Model, scopedKey?: string): AdaptedRequest {
  const body = new ClientBody(Buffer.from(text))
  const { client, native } = wires[model.wire as ClientWire]
  checkFields(client, body)
  return native.adaptRequest(body, model, { scopedKey, isOurSeal: (sealed) => sealed === ours })
}

type Case = {
  rule: string
  wire: ClientWire
  model?: Partial<Model>
  profile?: ProfileSetting
  from: string
  to: string
}

const user = '{"role":"user","content":"Hi"}'
const unsigned = '{"type":"thinking","thinking":"a","signature":""}'
const signed = '{"type":"thinking","thinking":"a","signature":"s"}'
const clearing = '{"type":"clear_thinking_20251015","keep":"all"}'
const call = '{"type":"tool_use","id":"t1","name":"f","input":{}}'
const result = '{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r"}]}'

const cases: Case[] = [
  {
    rule: 'P1 unknown fields, order, white space and number spellings go through',
    wire: 'chat',
    from: `{ "z" : 1.0 ,\n\t"model":"m", "seed":9007199254740993, "temperature":1e0,"messages":[${user}] ,"x":{"b":-0,"a":[1e400]} }\n`,
    to: `{ "z" : 1.0 ,\n\t"model":"up", "seed":9007199254740993, "temperature":1e0,"messages":[${user}] ,"x":{"b":-0,"a":[1e400]} }\n`,
  },
  {
    rule: 'P1 F-C37 an escaped key is edited, and what is nested keeps its repeated members',
    wire: 'chat',
    from: `{"mod\\u0065l":"m","messages":[{"role":"user","content":"model","content":"mine"}]}`,
    to: `{"mod\\u0065l":"up","messages":[{"role":"user","content":"model","content":"mine"}]}`,
  },
  {
    rule: 'P1 Y12 usage is asked for in every repeated include_usage',
    wire: 'chat',
    from: `{"model":"m","messages":[${user}],"stream":true,"stream_options":{"include_usage":false,"include_usage":true}}`,
    to: `{"model":"up","messages":[${user}],"stream":true,"stream_options":{"include_usage":true,"include_usage":true}}`,
  },
  {
    rule: 'P1 Y12 of repeated thinking budgets one that is too large has all of them lowered',
    wire: 'messages',
    from: `{"model":"m","max_tokens":64000,"thinking":{"type":"enabled","budget_tokens":32000,"budget_tokens":1024},"messages":[]}`,
    to: `{"model":"up","max_tokens":8192,"thinking":{"type":"enabled","budget_tokens":4096,"budget_tokens":4096},"messages":[]}`,
  },
  {
    rule: 'P1 lone surrogate escapes and escaped text stay as they are',
    wire: 'messages',
    from: String.raw`{"max_tokens":5,"model":"m","messages":[{"role":"user","content":"\ud800 \u00e9 é \/"}]}`,
    to: String.raw`{"max_tokens":5,"model":"up","messages":[{"role":"user","content":"\ud800 \u00e9 é \/"}]}`,
  },
  {
    rule: 'P1 with nothing to edit the bytes are the same',
    wire: 'messages',
    model: { upstreamModel: 'm' },
    from: `{"max_tokens":5, "model":"m","messages":[]}`,
    to: `{"max_tokens":5, "model":"m","messages":[]}`,
  },
  {
    rule: 'spec 8 a cap above the maximum is lowered, another number stays',
    wire: 'messages',
    from: `{"model":"m","max_tokens":9000.0,"messages":[],"top_k":5.0}`,
    to: `{"model":"up","max_tokens":8192,"messages":[],"top_k":5.0}`,
  },
  {
    rule: 'P1 the thinking budget is halved with a lowered cap, its other members stay',
    wire: 'messages',
    from: `{"model":"m","max_tokens":64000,"thinking":{"type":"enabled", "budget_tokens":32000,"x":1.0},"messages":[]}`,
    to: `{"model":"up","max_tokens":8192,"thinking":{"type":"enabled", "budget_tokens":4096,"x":1.0},"messages":[]}`,
  },
  {
    rule: 'P1 a budget that gets too small goes with its thinking',
    wire: 'messages',
    model: { outputTokensMax: 2000 },
    from: `{"model":"m","max_tokens":64000,"thinking":{"type":"enabled","budget_tokens":32000},"messages":[]}`,
    to: `{"model":"up","max_tokens":2000,"messages":[]}`,
  },
  {
    rule: 'P1 a budget that is wrong already is the model to judge',
    wire: 'messages',
    from: `{"model":"m","max_tokens":100,"thinking":{"type":"enabled","budget_tokens":32000},"messages":[]}`,
    to: `{"model":"up","max_tokens":100,"thinking":{"type":"enabled","budget_tokens":32000},"messages":[]}`,
  },
  {
    rule: 'T17 a cap below the floor is raised to it',
    wire: 'responses',
    profile: { minOutput: 16 },
    from: `{"model":"m","input":"x","max_output_tokens":1,"store":false}`,
    to: `{"model":"up","input":"x","max_output_tokens":16,"store":false}`,
  },
  {
    rule: 'T17 of two caps the smaller is sent, in the field that is taken',
    wire: 'chat',
    from: `{"model":"m","max_tokens":50,"max_completion_tokens":70,"messages":[]}`,
    to: `{"model":"up","max_completion_tokens":50,"messages":[]}`,
  },
  {
    rule: 'P1 maxField: the other cap becomes the one that is taken',
    wire: 'chat',
    profile: { maxField: 'max_tokens' },
    from: `{"model":"m","max_completion_tokens":70,"messages":[]}`,
    to: `{"model":"up","messages":[],"max_tokens":70}`,
  },
  {
    rule: 'P1 spec 2.5 either cap reaches a model that refuses the older one',
    wire: 'chat',
    profile: { extends: 'openai-reasoning' },
    from: `{"model":"m","max_tokens":70,"messages":[]}`,
    to: `{"model":"up","messages":[],"max_completion_tokens":70}`,
  },
  {
    rule: 'P1 stream_options.include_usage is true when streaming',
    wire: 'chat',
    from: `{"model":"m","stream":true,"messages":[]}`,
    to: `{"model":"up","stream":true,"messages":[],"stream_options":{"include_usage":true}}`,
  },
  {
    rule: 'spec 2.5 include_usage false counts as true, the other options stay',
    wire: 'chat',
    from: `{"model":"m","stream":true,"stream_options":{ "include_usage":false,"x":1.0},"messages":[]}`,
    to: `{"model":"up","stream":true,"stream_options":{ "include_usage":true,"x":1.0},"messages":[]}`,
  },
  {
    rule: 'P1 no stream_options without a stream',
    wire: 'chat',
    from: `{"model":"m","stream":false,"messages":[]}`,
    to: `{"model":"up","stream":false,"messages":[]}`,
  },
  {
    rule: 'spec 2.7 store is sent as false whatever the client says',
    wire: 'responses',
    from: `{"model":"m","store":true,"input":"x"}`,
    to: `{"model":"up","store":false,"input":"x"}`,
  },
  ...['true', '"true"', '1'].map((store) => ({
    rule: `spec 1.7 C7 a chat request never asks to be stored, however it says so: ${store}`,
    wire: 'chat' as const,
    from: `{"model":"m","store":${store},"messages":[]}`,
    to: `{"model":"up","store":false,"messages":[]}`,
  })),
  {
    rule: 'P1 drops: a provider that does not take store gets none, whatever the client says',
    wire: 'responses',
    profile: { drops: new Set(['store']) },
    from: `{"model":"m","store":true,"input":"x"}`,
    to: `{"model":"up","input":"x"}`,
  },
  {
    rule: 'P1 P5 drops: nor is metadata added for the user',
    wire: 'messages',
    profile: { strictFields: true, drops: new Set(['metadata']) },
    from: `{"model":"m","max_tokens":5,"user":"u1","messages":[]}`,
    to: `{"model":"up","max_tokens":5,"messages":[]}`,
  },
  {
    rule: 'P1 drops: a provider that does not take store gets none on chat either',
    wire: 'chat',
    profile: { drops: new Set(['store']) },
    from: `{"model":"m","store":true,"messages":[]}`,
    to: `{"model":"up","messages":[]}`,
  },
  {
    rule: 'P1 drops: nor is it added',
    wire: 'responses',
    profile: { drops: new Set(['store']) },
    from: `{"model":"m","input":"x"}`,
    to: `{"model":"up","input":"x"}`,
  },
  {
    rule: 'C7 fields that cost beyond the token price are dropped',
    wire: 'messages',
    from: `{"service_tier":"priority","model":"m","speed":"fast","max_tokens":5,"messages":[],"inference_geo":"us"}`,
    to: `{"model":"up","max_tokens":5,"messages":[]}`,
  },
  {
    rule: 'C7 default tiers and allowed fields pass',
    wire: 'messages',
    model: { allowedFields: new Set(['speed']) },
    from: `{"service_tier":"auto","model":"m","speed":"fast","max_tokens":5,"messages":[]}`,
    to: `{"service_tier":"auto","model":"up","speed":"fast","max_tokens":5,"messages":[]}`,
  },
  {
    rule: 'P1 drops: what the profile does not take goes, each with its comma',
    wire: 'chat',
    profile: { drops: new Set(['seed', 'logit_bias', 'user']) },
    from: `{"seed":1,"model":"m", "logit_bias":{} ,"messages":[],"user":"u" }`,
    to: `{"model":"up", "messages":[] }`,
  },
  {
    rule: 'P1 developerRole false: developer is sent as system',
    wire: 'chat',
    profile: { developerRole: false },
    from: `{"model":"m","messages":[{"role":"developer","content":"developer"},{"content":"x","role":"user"}]}`,
    to: `{"model":"up","messages":[{"role":"system","content":"developer"},{"content":"x","role":"user"}]}`,
  },
  {
    rule: 'P1 developerRole true: it stays',
    wire: 'chat',
    profile: { developerRole: true },
    from: `{"model":"m","messages":[{"role":"developer","content":"x"}]}`,
    to: `{"model":"up","messages":[{"role":"developer","content":"x"}]}`,
  },
  {
    rule: 'P1 developerRole false: developer is sent as system, and other items than messages stay',
    wire: 'responses',
    profile: { extends: 'llama-cpp' },
    from: `{"model":"m","input":[{"role":"developer","content":"developer"},{"type":"message","content":"x","role":"developer"},{"type":"additional_tools","role":"developer","tools":[]}],"store":false}`,
    to: `{"model":"up","input":[{"role":"system","content":"developer"},{"type":"message","content":"x","role":"system"},{"type":"additional_tools","role":"developer","tools":[]}],"store":false}`,
  },
  {
    rule: 'P1 developerRole false: no item is edited in an input that is a text, or if it is left out',
    wire: 'responses',
    profile: { developerRole: false },
    from: `{"model":"m","input":[${user},{"type":"reasoning","role":"developer","type":"message"}],"store":false}`,
    to: `{"model":"up","input":[${user}],"store":false}`,
  },
  {
    rule: 'P5 user is passed on',
    wire: 'messages',
    from: `{"model":"m","max_tokens":5,"user":"u1","messages":[]}`,
    to: `{"model":"up","max_tokens":5,"user":"u1","messages":[]}`,
  },
  {
    rule: 'P5 strictFields: user becomes metadata.user_id',
    wire: 'messages',
    profile: { strictFields: true },
    from: `{"model":"m","max_tokens":5,"user":"u1","metadata":{ "a":1.0},"messages":[]}`,
    to: `{"model":"up","max_tokens":5,"metadata":{ "a":1.0,"user_id":"u1"},"messages":[]}`,
  },
  {
    rule: 'P5 strictFields: an address of e-mail, which the provider refuses, becomes its hash',
    wire: 'messages',
    profile: { strictFields: true },
    from: `{"model":"m","max_tokens":5,"user":"a@b.example","messages":[]}`,
    to: `{"model":"up","max_tokens":5,"messages":[],"metadata":{"user_id":"${createHash('sha256').update('a@b.example').digest('hex')}"}}`,
  },
  {
    rule: 'P5 strictFields: a metadata.user_id that is there stays',
    wire: 'messages',
    profile: { strictFields: true },
    from: `{"model":"m","max_tokens":5,"user":"u1","metadata":{"user_id":"mine"},"messages":[]}`,
    to: `{"model":"up","max_tokens":5,"metadata":{"user_id":"mine"},"messages":[]}`,
  },
  {
    rule: 'P1 unsigned thinking is taken out, signed thinking stays, an emptied message goes',
    wire: 'messages',
    from: `{"model":"m","max_tokens":5,"messages":[${user},{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":""} , {"type":"text","text":"b"}]},${user},{"role":"assistant","content":[{"type":"thinking","thinking":"c","signature":""}]},${user},{"role":"assistant","content":[{"type":"thinking","thinking":"d","signature":"s"},{"type":"text","text":"e"}]}]}`,
    to: `{"model":"up","max_tokens":5,"messages":[${user},{"role":"assistant","content":[{"type":"text","text":"b"}]},${user},${user},{"role":"assistant","content":[{"type":"thinking","thinking":"d","signature":"s"},{"type":"text","text":"e"}]}]}`,
  },
  {
    rule: 'P1 thinking whose signature is left out is unsigned too',
    wire: 'messages',
    from: `{"model":"m","max_tokens":5,"messages":[${user},{"role":"assistant","content":[{"type":"thinking","thinking":"a"},{"type":"text","text":"b"}]},${user},{"role":"assistant","content":[{"thinking":"c","signature":null,"type" : "thinking"}]},${user},{"role":"assistant","content":[${signed},{"type":"text","text":"e"}]}],"thinking":{"type":"adaptive"}}`,
    to: `{"model":"up","max_tokens":5,"messages":[${user},{"role":"assistant","content":[{"type":"text","text":"b"}]},${user},${user},{"role":"assistant","content":[${signed},{"type":"text","text":"e"}]}],"thinking":{"type":"adaptive"}}`,
  },
  {
    rule: 'P1 the same where a tool has a signature among its arguments',
    wire: 'messages',
    from: `{"model":"m","max_tokens":5,"messages":[${user},{"role":"assistant","content":[{"type":"thinking","thinking":"a"},{"type":"tool_use","id":"t1","name":"f","input":{"signature":"f(x)"}}]},${result}]}`,
    to: `{"model":"up","max_tokens":5,"messages":[${user},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{"signature":"f(x)"}}]},${result}]}`,
  },
  {
    rule: 'P1 unsigned thinking is passed on to a provider that signs nothing',
    wire: 'messages',
    profile: { extends: 'deepseek' },
    from: `{"model":"m","max_tokens":5,"messages":[${user},{"role":"assistant","content":[${unsigned},${call}]}]}`,
    to: `{"model":"up","max_tokens":5,"messages":[${user},{"role":"assistant","content":[${unsigned},${call}]}]}`,
  },
  {
    rule: 'P1 R-HIST where calls are answered whose thinking was taken out, none is asked for by tokens',
    wire: 'messages',
    from: `{"model":"m","max_tokens":5,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[${user},{"role":"assistant","content":[${unsigned},${call}]},${result}]}`,
    to: `{"model":"up","max_tokens":5,"messages":[${user},{"role":"assistant","content":[${call}]},${result}]}`,
  },
  {
    rule: 'P1 R-HIST an edit that clears thinking goes with the thinking',
    wire: 'messages',
    from: `{"model":"m","max_tokens":5,"thinking":{"type":"enabled","budget_tokens":2000},"context_management":{"edits":[${clearing}]},"messages":[${user},{"role":"assistant","content":[${unsigned},${call}]},${result}]}`,
    to: `{"model":"up","max_tokens":5,"messages":[${user},{"role":"assistant","content":[${call}]},${result}]}`,
  },
  {
    rule: 'P1 R-HIST other edits of the conversation stay, also where the cap leaves no room for thinking',
    wire: 'messages',
    model: { outputTokensMax: 1500 },
    from: `{"model":"m","max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2000},"context_management":{"edits":[${clearing},{"type":"clear_tool_uses_20250919"}]},"messages":[${user}]}`,
    to: `{"model":"up","max_tokens":1500,"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]},"messages":[${user}]}`,
  },
  {
    rule: 'P1 an edit that clears thinking stays with the thinking',
    wire: 'messages',
    from: `{"model":"m","max_tokens":5,"thinking":{"type":"adaptive"},"context_management":{"edits":[${clearing}]},"messages":[${user}]}`,
    to: `{"model":"up","max_tokens":5,"thinking":{"type":"adaptive"},"context_management":{"edits":[${clearing}]},"messages":[${user}]}`,
  },
  {
    rule: 'P1 R-HIST the same where the cap is lowered below its tokens',
    wire: 'messages',
    from: `{"model":"m","max_tokens":64000,"messages":[${user},{"role":"assistant","content":[${unsigned},${call}]},${result}],"thinking":{"type":"enabled","budget_tokens":32000}}`,
    to: `{"model":"up","max_tokens":8192,"messages":[${user},{"role":"assistant","content":[${call}]},${result}]}`,
  },
  {
    rule: 'P1 R-PRE where the model continues a turn whose thinking was taken out, none is asked for by tokens',
    wire: 'messages',
    from: `{"model":"m","max_tokens":5,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[${user},{"role":"assistant","content":[${unsigned},{"type":"text","text":"So"}]}]}`,
    to: `{"model":"up","max_tokens":5,"messages":[${user},{"role":"assistant","content":[{"type":"text","text":"So"}]}]}`,
  },
  {
    rule: 'P1 R-HIST thinking stays asked for where a whole turn at the end was taken out',
    wire: 'messages',
    from: `{"model":"m","max_tokens":5,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[${user},{"role":"assistant","content":[${unsigned}]}]}`,
    to: `{"model":"up","max_tokens":5,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[${user}]}`,
  },
  {
    rule: 'P1 R-HIST thinking that is asked for otherwise, or proven in that turn, stays asked for',
    wire: 'messages',
    from: `{"model":"m","max_tokens":5,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[${user},{"role":"assistant","content":[${unsigned},${call}]},${result},{"role":"assistant","content":[${signed},${call}]},${result}]}`,
    to: `{"model":"up","max_tokens":5,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[${user},{"role":"assistant","content":[${call}]},${result},{"role":"assistant","content":[${signed},${call}]},${result}]}`,
  },
  {
    rule: 'P1 T7 reasoning without a seal is passed on to a server that seals nothing, an envelope of ours is not',
    wire: 'responses',
    profile: { extends: 'vllm' },
    from: `{"model":"m","input":[{"type":"reasoning","content":[{"type":"reasoning_text","text":"r"}]},{"type":"reasoning","encrypted_content":"${ours}"},${user}]}`,
    to: `{"model":"up","input":[{"type":"reasoning","content":[{"type":"reasoning_text","text":"r"}]},${user}],"store":false}`,
  },
  {
    rule: 'P1 T7 reasoning items that the provider cannot open are taken out',
    wire: 'responses',
    from: `{"model":"m","input":[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"reasoning","id":"rs_2","encrypted_content":"${ours}"}, {"type":"reasoning","id":"rs_3","encrypted_content":"theirs"},${user}]}`,
    to: `{"model":"up","input":[{"type":"reasoning","id":"rs_3","encrypted_content":"theirs"},${user}],"store":false}`,
  },
  {
    rule: 'T3 remote image URLs pass untouched on the same wire',
    wire: 'responses',
    from: `{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"https://x/y.png"}]}]}`,
    to: `{"model":"up","input":[{"role":"user","content":[{"type":"input_image","image_url":"https://x/y.png"}]}],"store":false}`,
  },
  {
    rule: 'spec 2.7 hosted tools pass on a native model',
    wire: 'responses',
    from: `{"model":"m","tools":[{"type":"web_search"}],"input":"x"}`,
    to: `{"model":"up","tools":[{"type":"web_search"}],"input":"x","store":false}`,
  },
]

for (const { rule, wire, model, profile, from, to } of cases) {
  test(`${rule} (${wire})`, () => {
    assert.equal(adapt(from, modelOf(wire, model, profile)).body.toString(), to)
  })
}

test('P6 the conversation key is sent upstream only in its form scoped to the account', () => {
  for (const wire of ['chat', 'responses'] as const) {
    const text = `{"model":"m","prompt_cache_key":"mine","messages":[],"input":"x"}`
    const sent = adapt(text, modelOf(wire), 'scoped-1').body.toString()
    assert.match(sent, /"prompt_cache_key":"scoped-1"/)
    assert.doesNotMatch(sent, /mine/)
  }
})

test('C7 hosted tools are refused if the model entry says so', () => {
  for (const wire of clientWireNames) {
    const text = `{"model":"m","max_tokens":5,"messages":[],"input":"x","tools":[{"type":"function","name":"f","function":{"name":"f"}},{"type":"web_search"}]}`
    const from = wire === 'messages' ? text.replace('"type":"function",', '') : text
    assert.throws(
      () => adapt(from, modelOf(wire, { hostedTools: 'refuse' })),
      (error) => error instanceof GatewayError && error.code === 'invalid_body' && error.param === 'tools',
    )
  }
})

test('C6 C7 with n answers the cap covers all of them together', () => {
  assert.equal(adapt('{"model":"m","n":3,"max_tokens":100,"messages":[]}', modelOf('chat')).outputTokensCap, 300)
})

test('C6 if the upstream takes no cap on the same wire, the model’s maximum is the limit', () => {
  for (const [wire, field, ask] of [
    ['messages', 'max_tokens', '{"model":"m","max_tokens":100,"messages":[]}'],
    ['chat', 'max_completion_tokens', '{"model":"m","max_completion_tokens":100,"messages":[]}'],
    ['responses', 'max_output_tokens', '{"model":"m","max_output_tokens":100,"input":"x"}'],
  ] as const) {
    const { body, outputTokensCap, losses } = adapt(ask, modelOf(wire, {}, { drops: new Set([field]) }))
    assert.ok(!body.includes(field))
    assert.equal(outputTokensCap, 8192)
    assert.deepEqual(losses, [{ field, what: 'dropped', why: 'not taken by the model' }])
  }
})

test('C7 an invalid number of answers is refused, because a server may read it as one', () => {
  const ask = (n: string) => `{"model":"m","n":${n},"max_tokens":100,"messages":[]}`
  for (const n of ['"4"', '[4]', 'true', '0', '-1', '1.5', '129', '1e400'])
    assert.throws(
      () => adapt(ask(n), modelOf('chat')),
      (error) => error instanceof GatewayError && error.param === 'n' && /from 1 to 128/.test(error.message),
      n,
    )
  assert.equal(adapt(ask('null'), modelOf('chat')).choices, 1)
})

test('P1 for any body, the upstream gets it with the edits, and every other byte unchanged', () => {
  const values = fc.jsonValue({ maxDepth: 3 })
  const extra = fc.uniqueArray(
    fc.tuple(
      fc.string({ maxLength: 8 }).map((key) => `x${key}`),
      values,
    ),
    { maxLength: 6, selector: ([key]) => key },
  )
  const space = fc.constantFrom('', ' ', '\n', '\t ', '\r\n')
  const required: [string, unknown][] = [
    ['model', 'm'],
    ['max_tokens', 100_000],
    ['messages', [{ role: 'user', content: 'é' }]],
    ['input', 'é'],
    ['service_tier', 'priority'],
    ['store', true],
  ]
  fc.assert(
    fc.property(
      fc.constantFrom(...clientWireNames),
      extra,
      fc.array(fc.nat(20), { minLength: 6, maxLength: 6 }),
      space,
      (wire, more, places, gap) => {
        const members: [string, unknown][] = [...more]
        for (const [i, member] of required.entries()) members.splice(places[i]! % (members.length + 1), 0, member)
        const write = (value: (key: string, own: unknown) => string | undefined) =>
          members.flatMap(([key, own]) => {
            const text = value(key, own)
            return text === undefined ? [] : [`${JSON.stringify(key)}${gap}:${gap}${text}`]
          })
        const sent = adapt(`{${write((_, own) => JSON.stringify(own)).join(',')}}`, modelOf(wire)).body.toString()
        const expected = write((key, own) => {
          if (key === 'model') return '"up"'
          if (key === 'service_tier') return undefined
          if (key === 'max_tokens' && wire !== 'responses') return '8192'
          if (key === 'store' && wire !== 'messages') return 'false'
          return JSON.stringify(own)
        })
        assert.equal(sent, `{${expected.join(',')}}`)
      },
    ),
    { numRuns: runsUpTo(300) },
  )
})

const many = Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`m${i}`, i]))
const crowded: [place: string, wire: ClientWire, profile: ProfileSetting | undefined, body: Record<string, unknown>][] =
  [
    ['stream_options', 'chat', undefined, { messages: [], stream: true, stream_options: many }],
    [
      'metadata beside user',
      'messages',
      { strictFields: true },
      { messages: [], max_tokens: 5, user: 'u', metadata: many },
    ],
    [
      'thinking with a budget that is lowered',
      'messages',
      undefined,
      { messages: [], max_tokens: 99_999, thinking: { ...many, type: 'enabled', budget_tokens: 90_000 } },
    ],
    [
      'a message of a developer',
      'chat',
      { developerRole: false },
      { messages: [{ ...many, role: 'developer', content: 'x' }] },
    ],
    [
      'a message with unsigned thinking',
      'messages',
      undefined,
      {
        max_tokens: 5,
        messages: [{ ...many, role: 'assistant', content: [{ type: 'thinking', thinking: 'x', signature: '' }] }],
      },
    ],
  ]

for (const [place, wire, profile, body] of crowded) {
  test(`B21 R9 an object of 10,001 members, ${place}, is refused in our words`, () => {
    const model = modelOf(wire, {}, profile)
    assert.throws(
      () => adapt(JSON.stringify({ model: 'm', ...body }), model),
      new GatewayError(
        'invalid_body',
        'The request body has more than 10000 fields in one object: send one JSON object in UTF-8.',
      ),
    )
  })
}

const marked = (text: string) => `[{"type":"text","text":${text},"cache_control":{"type":"ephemeral"}}]`
const sameWire: ProfileSetting = { autoCache: 'auto', autoCacheSameWire: true }
const asked = (messages: string, more = '') => `{"model":"m","max_tokens":5,"messages":[${messages}]${more}}`

const markCases: [title: string, from: string, to: string, profile?: ProfileSetting, key?: string][] = [
  [
    'tool, system and the last two user turns, whatever their form',
    asked(
      `${user},{"role":"assistant","content":"a"},${user},{"role":"user","content":[{"type":"text","text":"x"},{ "type":"text","text":"y" }]}`,
      `,"tools":[{"name":"f","input_schema":{}},{"name":"late","input_schema":{},"defer_loading":true}],"system":"Be brief."`,
    ),
    asked(
      `${user},{"role":"assistant","content":"a"},{"role":"user","content":${marked('"Hi"')}},{"role":"user","content":[{"type":"text","text":"x"},{ "type":"text","text":"y" ,"cache_control":{"type":"ephemeral"}}]}`,
      `,"tools":[{"name":"f","input_schema":{},"cache_control":{"type":"ephemeral"}},{"name":"late","input_schema":{},"defer_loading":true}],"system":${marked('"Be brief."')}`,
    ).replace('"m"', '"up"'),
  ],
  [
    'a list of system blocks',
    asked(user, `,"system":[{"type":"text","text":"S"}],"tools":[]`),
    asked(
      `{"role":"user","content":${marked('"Hi"')}}`,
      `,"system":[{"type":"text","text":"S","cache_control":{"type":"ephemeral"}}],"tools":[]`,
    ).replace('"m"', '"up"'),
    sameWire,
    'k',
  ],
  ['nothing of a single shot without a key', asked(user), asked(user).replace('"m"', '"up"')],
  [
    'nothing where the client marks',
    asked(user, `,"tools":[{"name":"f","cache_control":{"type":"ephemeral"}}]`),
    asked(user, `,"tools":[{"name":"f","cache_control":{"type":"ephemeral"}}]`).replace('"m"', '"up"'),
  ],
  [
    'no empty text',
    asked(`{"role":"user","content":""},{"role":"assistant","content":"a"}`, `,"system":""`),
    asked(`{"role":"user","content":""},{"role":"assistant","content":"a"}`, `,"system":""`).replace('"m"', '"up"'),
  ],
  [
    'nothing unless the profile says so',
    asked(user, `,"tools":[{"name":"f"}]`),
    asked(user, `,"tools":[{"name":"f"}]`).replace('"m"', '"up"'),
    {},
  ],
]

for (const [title, from, to, profile = sameWire, key] of markCases) {
  test(`A2 T5 P1 marks on the same wire: ${title}`, () => {
    assert.equal(adapt(from, modelOf('messages', {}, profile), key).body.toString(), to)
  })
}

test('P1 unsigned thinking is found in any order of its members, beside any other block', () => {
  const members = fc.shuffledSubarray(['type', 'thinking', 'signature'], { minLength: 3 })
  const signatures = fc.constantFrom(undefined, null, '', 's', 'thinking')
  const texts = fc.constantFrom('', 'a', '"thinking":"x","signature":"y"', 'thinking')
  const gap = fc.constantFrom('', ' ', '\n  ')
  const thought = fc.tuple(members, signatures, texts, gap).map(([order, signature, text, blank]) => {
    const block: Record<string, unknown> = { type: 'thinking', thinking: text, signature }
    const parts = order.flatMap((name) =>
      block[name] === undefined ? [] : [`"${name}"${blank}:${blank}${JSON.stringify(block[name])}`],
    )
    return { text: `{${parts.join(`${blank},${blank}`)}}`, isKept: Boolean(signature) }
  })
  const other = fc
    .constantFrom(
      '{"type":"text","text":"thinking"}',
      '{"signature":"s","type":"text","text":"a"}',
      '{"type":"tool_use","id":"t","name":"f","input":{"thinking":"a","type":"thinking2","signature":"s"}}',
      '{"type":"tool_use","id":"t","name":"f","input":{"thinking":{"signature":"s"}}}',
    )
    .map((text) => ({ text, isKept: true }))
  fc.assert(
    fc.property(fc.array(fc.oneof(thought, other), { minLength: 1, maxLength: 5 }), gap, (blocks, blank) => {
      const kept = blocks.filter(({ isKept }) => isKept).map(({ text }) => JSON.parse(text))
      const content = blocks.map(({ text }) => text).join(`${blank},${blank}`)
      const { body } = adapt(asked(`${user},{"role":"assistant","content":[${content}]},${user}`), modelOf('messages'))
      const { messages } = JSON.parse(body.toString())
      assert.deepEqual(messages.length === 2 ? [] : messages[1].content, kept)
    }),
    { numRuns: runsUpTo(500) },
  )
})

test('P5 Y13 T9 the user is moved into metadata from which tags were removed, and listed if it is dropped', () => {
  const profile = { strictFields: true, routingFields: ['metadata.tags'] }
  const tags = { field: 'metadata.tags', what: 'dropped', why: 'would choose another model, provider, host or price' }
  const lost = { field: 'user', what: 'dropped', why: 'not taken by the model' }
  for (const [metadata, sent, losses] of [
    ['{"tags":["paid"],"n":12345678901234567890}', '{"n":12345678901234567890,"user_id":"u1"}', [tags]],
    ['{"tags":["paid"],"user_id":null}', '{"user_id":"u1"}', [tags]],
    ['{"tags":["paid"],"user_id":"mine"}', '{"user_id":"mine"}', [tags, lost]],
    ['{"user_id":"mine"}', '{"user_id":"mine"}', [lost]],
    ['{"a":1}', '{"a":1,"user_id":"u1"}', []],
  ] as const) {
    const text = `{"model":"m","max_tokens":5,"messages":[],"user":"u1","metadata":${metadata}}`
    const read = adapt(text, modelOf('messages', {}, profile))
    assert.equal(read.body.toString(), `{"model":"up","max_tokens":5,"messages":[],"metadata":${sent}}`)
    assert.deepEqual(read.losses, losses)
  }
  const drops = new Set(['metadata'])
  const read = adapt(
    '{"model":"m","max_tokens":5,"messages":[],"user":"u1"}',
    modelOf('messages', {}, { ...profile, drops }),
  )
  assert.deepEqual(read.losses, [lost])
})

test('P1 T9 parts removed from a conversation are listed', () => {
  const thinking = asked(
    `${user},{"role":"assistant","content":[${unsigned},${call}]},${result}`,
    `,"thinking":{"type":"enabled"},"context_management":{"edits":[${clearing}]}`,
  )
  assert.deepEqual(adapt(thinking, modelOf('messages')).losses, [
    { field: 'messages', what: 'dropped', why: 'unsigned thinking' },
    { field: 'thinking', what: 'dropped', why: 'the turn that goes on has no signed thinking' },
    { field: 'context_management', what: 'dropped', why: 'an edit of thinking, which is not asked for' },
  ])
  assert.deepEqual(adapt('{"model":"m","input":[{"type":"reasoning"}]}', modelOf('responses')).losses, [
    { field: 'input', what: 'dropped', why: 'reasoning that the model cannot open' },
  ])
  assert.deepEqual(adapt(asked(user), modelOf('messages')).losses, [])
})

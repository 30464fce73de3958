import { deepEqual, equal, ok } from 'node:assert/strict'
import test from 'node:test'
import { ClientBody } from '../../src/wires/requests/client-body.ts'
import { wires } from '../../src/wires/wires.ts'
import { modelOf } from '../native/models.ts'
import { smallest, translate } from './support/exchange.ts'

/* What vendors are known to refuse or to need, by the profiles that carry their names. */

const context = { scopedKey: 'k', isOurSeal: () => false }

/** Fields of the chat wire, and of servers beside it, that Gemini's endpoint refuses as unknown names. */
const unknownToGemini = {
  ...{ frequency_penalty: 0.5, logit_bias: { 1: 2 }, user: 'u', store: false, service_tier: 'auto', seed: 1 },
  ...{ metadata: { a: 'b' }, prompt_cache_key: 'k', reasoning: { effort: 'low' }, top_k: 5, verbosity: 'low' },
  ...{ parallel_tool_calls: true, safety_identifier: 's', prompt_cache_retention: '24h' },
}

for (const profile of ['gemini', 'gemini-3']) {
  for (const from of ['chat', 'responses'] as const)
    test(`BUG-15 ${profile} never gets a field that it does not know, from ${from}`, () => {
      const fields = { ...unknownToGemini, presence_penalty: 0.5, prompt_cache_key: undefined }
      const { body } = translate(from, 'chat', { ...smallest[from], ...fields }, { profile })
      for (const field of Object.keys(unknownToGemini)) ok(!(field in body), field)
    })

  test(`BUG-15 ${profile} never gets such a field on the same wire, and the field is listed`, () => {
    const known = { presence_penalty: 0.5, temperature: 1, top_p: 0.5, reasoning_effort: 'low', stop: ['x'] }
    const asked = { ...smallest.chat, ...unknownToGemini, ...known, extra_body: { google: { thinking_config: {} } } }
    const bytes = new ClientBody(Buffer.from(JSON.stringify(asked)))
    const { body, losses } = wires.chat.native.adaptRequest(bytes, modelOf('chat', {}, { extends: profile }), context)
    const sent = JSON.parse(body.toString())
    for (const field of Object.keys(unknownToGemini)) {
      ok(!(field in sent), field)
      ok(losses.some((loss) => loss.field === field) || field === 'user', field)
    }
    for (const field of [...Object.keys(known), 'extra_body']) ok(field in sent, field)
  })
}

test('Kimi gets no sampling settings, which are fixed, and no choice of a cache whose cost its usage does not show', () => {
  const fixed = { temperature: 0.7, top_p: 0.9, presence_penalty: 0, frequency_penalty: 0.1 }
  const asked = { ...fixed, prompt_cache_options: { mode: 'implicit', ttl: '1h' }, seed: 1 }
  const bytes = new ClientBody(Buffer.from(JSON.stringify({ ...smallest.chat, ...asked })))
  const { body, losses } = wires.chat.native.adaptRequest(bytes, modelOf('chat', {}, { extends: 'moonshot' }), context)
  const sent = Object.keys(JSON.parse(body.toString()))
  deepEqual(
    Object.keys(asked).filter((field) => sent.includes(field)),
    ['seed'],
  )
  deepEqual(losses.map(({ field }) => field).toSorted(), Object.keys(asked).slice(0, -1).toSorted())
  const ask = { ...smallest.messages, temperature: 0.7, top_p: 0.9 }
  const up = translate('messages', 'chat', ask, { profile: 'moonshot' }).body
  ok(!('temperature' in up || 'top_p' in up))
})

test('Y6 Kimi K3 is asked for its own levels of reasoning, is forced to call with `required`, and gets the cache key', () => {
  const tools = ['f', 'g'].map((name) => ({ name, input_schema: { type: 'object' } }))
  const asked = (more: object, profile = 'moonshot-k3') => {
    const setting = { profile, cacheKey: 'k' }
    const { body } = translate('messages', 'chat', { ...smallest.messages, max_tokens: 4096, tools, ...more }, setting)
    const { reasoning_effort: effort, tool_choice: choice, tools: sent, prompt_cache_key: key } = body
    return [effort, choice, sent.length, key]
  }
  const effort = (level: string) => ({ thinking: { type: 'adaptive' }, output_config: { effort: level } })
  deepEqual(asked({}), [undefined, undefined, 2, 'k'])
  deepEqual(asked(effort('low')), ['low', undefined, 2, 'k'])
  deepEqual(asked(effort('medium')), ['low', undefined, 2, 'k'])
  deepEqual(asked(effort('max')), ['max', undefined, 2, 'k'])
  deepEqual(asked({ tool_choice: { type: 'any' } }), [undefined, 'required', 2, 'k'])
  deepEqual(asked({ tool_choice: { type: 'tool', name: 'f' } }), [undefined, 'required', 1, 'k'])
  deepEqual(asked({ ...effort('high'), tool_choice: { type: 'any' } }, 'moonshot'), [undefined, 'auto', 2, 'k'])
})

for (const profile of ['moonshot', 'gemini'] as const)
  test(`R-NAME ${profile} gets tool names that begin with a letter, and the client gets its own names back`, () => {
    const tools = ['21st_magic', '_x', 'f1'].map((name) => ({ name, input_schema: { type: 'object' } }))
    const call = { type: 'tool_use', id: 'toolu_1', name: '21st_magic', input: {} }
    const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'r' }
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: [call] },
      { role: 'user', content: [result] },
    ]
    const choice = { type: 'tool', name: '21st_magic' }
    const ask = { ...smallest.messages, tools, messages, tool_choice: choice }
    const { body, encoded } = translate('messages', 'chat', ask, { profile })
    const sent: string[] = translate(
      'messages',
      'chat',
      { ...ask, tool_choice: undefined },
      { profile },
    ).body.tools.map((tool: { function: { name: string } }) => tool.function.name)
    deepEqual(
      sent.map((name) => name.replace(/_[0-9a-f]{10}$/, '_#')),
      ['t_21st_magic_#', 't__x_#', 'f1'],
    )
    const called = body.messages.find((turn: { tool_calls?: unknown }) => turn.tool_calls)
    equal(called.tool_calls[0].function.name, sent[0])
    equal(body.tools[0].function.name, sent[0])
    deepEqual([...encoded.names.values()], [{ name: '21st_magic' }, { name: '_x' }])
    const kept = translate('messages', 'chat', ask).body.tools[0].function.name
    equal(kept, '21st_magic')
  })

const thought = { type: 'thinking', thinking: 'deep', signature: 'sig' }
const turns = [
  { role: 'user', content: 'Hi' },
  { role: 'assistant', content: [thought, { type: 'text', text: 'a' }] },
  { role: 'user', content: 'Go on' },
  { role: 'assistant', content: [thought, { type: 'tool_use', id: 't1', name: 'f', input: {} }] },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'r' }] },
]

/** By profile, the field in which a thought of the present tool loop returns; undefined: it does not. */
const replays: [profile: string, field: string | undefined, ofAllTurns?: true][] = [
  ['openrouter', 'reasoning'],
  ['moonshot', 'reasoning_content'],
  ['deepseek', 'reasoning_content', true],
  ['default-chat', undefined],
]

for (const [name, field, ofAllTurns] of replays)
  test(`BUG-13 T23 ${name} gets the thoughts of ${ofAllTurns ? 'all' : 'tool'} turns ${field ? `in ${field}` : 'never'}`, () => {
    const ask: object = { ...smallest.messages, messages: turns }
    const { body } = translate('messages', 'chat', ask, { profile: name })
    const [, answer, , calls] = body.messages as Record<string, unknown>[]
    for (const turn of [answer!, calls!])
      for (const key of ['reasoning', 'reasoning_content'])
        equal(turn[key], (turn === calls || ofAllTurns) && key === field ? 'deep' : undefined, key)
  })

/** A pattern in the tool `Artifact` of Claude Code 2.1.265 and later. */
const artifact = '^(?!__.*__$)[^\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}"\\\\./[\\]]{1,200}$'

for (const to of ['chat', 'responses'] as const)
  test(`R-SCHEMA T9 OpenAI gets no pattern that Python cannot compile, on ${to}, and the loss is listed`, () => {
    const sent = (schema: object, profile = 'openai') => {
      const ask = { ...smallest.messages, tools: [{ name: 'Artifact', input_schema: schema }] }
      const { body, encoded } = translate('messages', to, ask, { profile })
      const [tool] = body.tools
      return [(tool.function ?? tool).parameters, encoded.losses.map(({ field, what }) => `${field} ${what}`)]
    }
    const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more })
    const list = (items: object) => object({ a: { type: 'array', items } })
    const text = { type: 'string' }
    const refused = [artifact, '^(?<year>\\d{4})$', '\\u{1F600}', '\\cA', '\\x', 'a\\\\\\P{L}']
    for (const pattern of [...refused, '^[\\w-.]+@x$', '[[\\]\\d-_]', '[^]*']) {
      const some = object({ a: { ...text, pattern } })
      deepEqual(sent(some), [object({ a: text }), ['tools rewritten']], pattern)
      deepEqual(sent(list({ ...text, pattern })), [list(text), ['tools rewritten']], pattern)
      deepEqual(sent(some, `default-${to}`), [some, []])
      const byPattern = { [pattern]: text, '^a': text }
      const others = object({}, { patternProperties: { '^a': text } })
      deepEqual(sent({ ...others, patternProperties: byPattern, additionalProperties: false })[0], others)
    }
    for (const pattern of [
      '^(?!_)[a-z]{1,9}$',
      '\\\\p',
      '(?<=a)b(?<!c)',
      '^[\\x20-\\x7e\\u00e9]+$',
      '^\\/a\\-\\.\\S+$',
      '^[\\w.-]+@[\\w-]+$',
      '\\[\\d-x[\\w\\\\-x]',
    ])
      deepEqual(sent(object({ a: { ...text, pattern } })), [object({ a: { ...text, pattern } }), []])
    const named = object({ pattern: { ...text, default: artifact } })
    deepEqual(sent(named), [named, []])
  })

test('R-HIST R-THINK DeepSeek gets the thoughts of translated clients on messages, and does not think if one is missing', () => {
  const call = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }
  const messages = (reasoning_content?: string) => [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: null, tool_calls: [call], reasoning_content },
    { role: 'tool', tool_call_id: 'c1', content: 'r' },
  ]
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }]
  const sent = (more: object, profile = 'deepseek') => {
    const { body } = translate('chat', 'messages', { ...smallest.chat, max_tokens: 4096, ...more }, { profile })
    return body
  }
  const kept = sent({ messages: messages('deep'), tools, reasoning_effort: 'max' })
  deepEqual(kept.messages[1].content[0], { type: 'thinking', thinking: 'deep', signature: '' })
  deepEqual([kept.thinking, kept.output_config], [undefined, { effort: 'max' }])
  const off = { type: 'disabled' }
  deepEqual(sent({ messages: messages(), tools }).thinking, off)
  deepEqual(sent({ messages: messages(), tools, reasoning_effort: 'max' }).thinking, off)
  deepEqual(sent({ messages: messages('deep'), tools, tool_choice: 'required' }).thinking, off)
  deepEqual(sent({ reasoning_effort: 'none' }).thinking, off)
  deepEqual(sent({ tools }).thinking, undefined)
  const input = [
    { role: 'user', content: 'Hi' },
    { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'deep' }] },
    { role: 'assistant', content: [{ type: 'output_text', text: 'a' }] },
    { role: 'user', content: 'And?' },
  ]
  const up = translate('responses', 'messages', { ...smallest.responses, input }, { profile: 'deepseek' }).body
  deepEqual(up.messages[1].content[0], { type: 'thinking', thinking: 'deep', signature: '' })
  deepEqual(
    sent({ messages: messages('deep'), tools }, 'anthropic').messages[1].content.map(
      ({ type }: { type: string }) => type,
    ),
    ['tool_use'],
  )
})

test('R-JSON R-THINK Qwen does not think if the answer must be JSON, which it refuses while it thinks', () => {
  const sent = (profile: string, format: object | undefined, effort?: string) => {
    const ask = { ...smallest.responses, ...(format && { text: { format } }), ...(effort && { reasoning: { effort } }) }
    const { body, encoded } = translate('responses', 'chat', ask, { profile })
    return [body.enable_thinking, body.response_format?.type, encoded.losses.some(({ field }) => field === 'reasoning')]
  }
  const json = { type: 'json_object' }
  const schema = { type: 'json_schema', name: 'n', schema: { type: 'object', properties: {} } }
  for (const format of [json, schema]) {
    deepEqual(sent('qwen-thinking', format), [false, 'json_object', false])
    deepEqual(sent('qwen-thinking', format, 'medium'), [false, 'json_object', true])
    // This profile is also for models that do not think unasked, or that do not know the field.
    deepEqual(sent('qwen', format), [undefined, 'json_object', false])
    deepEqual(sent('qwen', format, 'medium'), [false, 'json_object', true])
  }
  for (const profile of ['qwen', 'qwen-thinking']) {
    deepEqual(sent(profile, undefined), [undefined, undefined, false])
    deepEqual(sent(profile, undefined, 'medium'), [true, undefined, false])
  }
})

test('R-HIST R-THINK MiMo gets the thoughts of turns with calls, and does not think if one is missing', () => {
  const call = { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'r' }
  const sent = (content: object[], more: object = {}) => {
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content },
      { role: 'user', content: [result] },
    ]
    const tools = [{ name: 'f', input_schema: { type: 'object' } }]
    const ask = { ...smallest.messages, messages, tools, ...more }
    return translate('messages', 'chat', ask, { profile: 'xiaomi' }).body
  }
  const kept = sent([thought, call])
  deepEqual([kept.messages[1].content, kept.messages[1].reasoning_content, kept.thinking], ['', 'deep', undefined])
  deepEqual(sent([call]).thinking, { type: 'disabled' })
  deepEqual(sent([thought, call], { thinking: { type: 'disabled' } }).thinking, { type: 'disabled' })
  const asked = sent([thought, call], { thinking: { type: 'adaptive' }, output_config: { effort: 'max' } })
  deepEqual([asked.thinking, asked.reasoning_effort], [{ type: 'enabled' }, 'high'])
})

test('Z.ai gets the cap in the one field that it reads, and only choices and formats that it takes', () => {
  const bytes = new ClientBody(Buffer.from(JSON.stringify({ ...smallest.chat, max_completion_tokens: 5 })))
  const { body } = wires.chat.native.adaptRequest(bytes, modelOf('chat', {}, { extends: 'zai' }), context)
  const sent = JSON.parse(body.toString())
  deepEqual([sent.max_tokens, 'max_completion_tokens' in sent], [5, false])
  const forced = { tools: [{ name: 'f', input_schema: { type: 'object' } }], tool_choice: { type: 'any' } }
  const format = { type: 'json_schema', schema: { type: 'object', properties: {}, additionalProperties: false } }
  const ask = { ...smallest.messages, ...forced, output_config: { format }, max_tokens: 7 }
  const up = translate('messages', 'chat', ask, { profile: 'zai' }).body
  deepEqual([up.max_tokens, up.tool_choice, up.response_format], [7, 'auto', { type: 'json_object' }])
})

import { deepEqual, equal, ok } from 'node:assert/strict'
import test from 'node:test'
import type { ProfileSetting } from '../../src/catalog/profiles.ts'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { smallest, translate, type Upstream } from './support/exchange.ts'

/*
 * FID-5, ruling Y6: every way in which a client forces a call, towards every set of choices that a model may take. The kind
 * is: three clients, three wires, `any` of one and of two tools, a named one, a subset, and what profiles lack.
 */

type Choice = 'auto' | 'none' | 'required' | 'named'
type Force = 'any' | 'named' | 'subset'

const schema = { type: 'object', properties: {} }

/** The request of a client that forces one of the tools. `named` and `subset`: the first one. */
const forcing: Record<ClientWire, (tools: string[], force: Force) => object> = {
  messages: (tools, force) => ({
    tools: tools.map((name) => ({ name, input_schema: schema })),
    tool_choice: force === 'any' ? { type: 'any' } : { type: 'tool', name: tools[0] },
  }),
  chat: (tools, force) => {
    const named = { type: 'function', function: { name: tools[0] } }
    const subset = { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [named] } }
    return {
      tools: tools.map((name) => ({ type: 'function', function: { name, parameters: schema } })),
      tool_choice: { any: 'required', named, subset }[force],
    }
  },
  responses: (tools, force) => {
    const named = { type: 'function', name: tools[0] }
    const subset = { type: 'allowed_tools', mode: 'required', tools: [named] }
    return {
      tools: tools.map((name) => ({ type: 'function', name, parameters: schema })),
      tool_choice: { any: 'required', named, subset }[force],
    }
  },
}

function namesOf({ tools = [] }: Upstream): string[] {
  return tools.map((tool: Upstream) => tool.name ?? tool.function.name)
}

/** The choice of an upstream's body in one form: a mode, or `=` and the name of the tool. */
function choiceOf({ tool_choice: choice }: Upstream): string | undefined {
  if (choice === undefined || typeof choice === 'string') return choice
  const name = choice.name ?? choice.function?.name
  if (name !== undefined) return `=${name}`
  return choice.type === 'any' ? 'required' : choice.type
}

function textOf(body: Upstream): string {
  return JSON.stringify([body.system, body.instructions, body.messages, body.input])
}

const cases: [takes: Choice[], force: Force, tools: string[], declared: string[], choice?: string, line?: string][] = [
  [['auto', 'none'], 'any', ['f'], ['f'], 'auto', 'calling the tool f.'],
  [['auto', 'none'], 'any', ['f', 'g'], ['f', 'g'], 'auto', 'calling one of the tools.'],
  [['auto', 'none'], 'named', ['f', 'g'], ['f'], 'auto', 'calling the tool f.'],
  [['auto', 'none'], 'subset', ['f', 'g'], ['f'], 'auto', 'calling the tool f.'],
  [[], 'any', ['f'], ['f'], undefined, 'calling the tool f.'],
  [['auto', 'named'], 'any', ['f'], ['f'], '=f'],
  [['auto', 'named'], 'any', ['f', 'g'], ['f', 'g'], 'auto', 'calling one of the tools.'],
  [['auto', 'named'], 'subset', ['f', 'g'], ['f', 'g'], '=f'],
  [['auto', 'required'], 'named', ['f', 'g'], ['f'], 'required'],
  [['auto', 'required', 'named'], 'any', ['f'], ['f'], 'required'],
  [['auto', 'required', 'named'], 'named', ['f', 'g'], ['f', 'g'], '=f'],
]

for (const from of clientWireNames) {
  for (const to of clientWireNames.filter((wire) => wire !== from)) {
    test(`Y6 FID-5 a forced call is expressed in the form that the model takes (${from}→${to})`, () => {
      for (const [takes, force, tools, declared, choice, line] of cases) {
        if (force === 'subset' && from === 'messages') continue
        const body = { ...smallest[from], ...forcing[from](tools, force) }
        const { body: up, encoded } = translate(from, to, body, { profile: { toolChoice: new Set(takes) } })
        const said = `${takes} ${force} ${tools}`
        deepEqual(namesOf(up), declared, said)
        equal(choiceOf(up), choice, said)
        equal(textOf(up).includes('Answer by calling'), line !== undefined, said)
        if (line !== undefined) ok(textOf(up).includes(`Answer by ${line}`), said)
        const isListed = encoded.losses.some(({ field, what }) => field === 'tool_choice' && what === 'rewritten')
        equal(isListed, line !== undefined, said)
      }
    })
  }
}

test('Y6 FID-5 a subset of two tools stays a list for a model that takes lists and cannot be forced', () => {
  const tools = ['f', 'g', 'h'].map((name) => ({ type: 'function', name }))
  const only = [tools[0], tools[1]]
  const body = { ...smallest.responses, tools, tool_choice: { type: 'allowed_tools', mode: 'required', tools: only } }
  const profile: ProfileSetting = { toolChoice: new Set(['auto'] as const), accepts: new Set(['allowed_tools']) }
  const { body: up } = translate('responses', 'chat', body, { profile })
  deepEqual(namesOf(up), ['f', 'g', 'h'])
  equal(up.tool_choice.allowed_tools.mode, 'auto')
  equal(up.tool_choice.allowed_tools.tools.length, 2)
  ok(textOf(up).includes('Answer by calling one of the tools.'))
})

test('Y6 FID-5 a model whose profile drops the field gets the instruction line', () => {
  const body = { ...smallest.messages, ...forcing.messages(['f', 'g'], 'named') }
  const { body: up } = translate('messages', 'chat', body, { profile: { drops: new Set(['tool_choice']) } })
  deepEqual([namesOf(up), choiceOf(up)], [['f'], undefined])
  ok(textOf(up).includes('Answer by calling the tool f.'))
})

test('Y6 FID-5 the line is placed next to the one that asks for JSON, and is the same in each turn (T8)', () => {
  const ask = (messages: object[]) =>
    translate(
      'chat',
      'messages',
      { model: 'm', messages, response_format: { type: 'json_object' }, ...forcing.chat(['f'], 'any') },
      { profile: { toolChoice: new Set(['auto'] as const) } },
    ).body
  const user = { role: 'user', content: 'q' }
  const first = ask([user])
  deepEqual(
    first.system.map(({ text }: Upstream) => text),
    ['Answer with one JSON object and nothing else.', 'Answer by calling the tool f.'],
  )
  deepEqual(ask([user, { role: 'assistant', content: 'a' }, user]).system, first.system)
})

for (const profile of ['moonshot', 'qwen']) {
  test(`Y6 FID-5 the default output of pydantic-ai reaches ${profile}`, () => {
    const body = { ...smallest.messages, ...forcing.messages(['final_result'], 'any') }
    const { body: up } = translate('messages', 'chat', body, { profile })
    equal(choiceOf(up), profile === 'qwen' ? '=final_result' : 'auto')
  })
}

test('Y6 FID-5 a model that cannot be forced while it reasons is forced without reasoning, and the loss is listed', () => {
  const asked = { reasoning_effort: 'high' }
  const never = ['enable_thinking', false] as const
  const off = { deepseek: ['thinking', { type: 'disabled' }], qwen: never, 'qwen-thinking': never } as const
  for (const profile of ['deepseek', 'qwen', 'qwen-thinking'] as const) {
    const ask = (force: Force | undefined, more: object = {}) => {
      const forced = force ? forcing.responses(['f'], force) : { tools: [{ type: 'function', name: 'f' }] }
      const reasoning = 'reasoning_effort' in more ? { reasoning: { effort: more.reasoning_effort } } : {}
      const { body, encoded } = translate(
        'responses',
        'chat',
        { ...smallest.responses, ...forced, ...reasoning },
        { profile },
      )
      const [field, value] = off[profile]
      const isOff = JSON.stringify(body[field]) === JSON.stringify(value)
      return [isOff, encoded.losses.some((loss) => loss.field === 'reasoning' && loss.what === 'dropped')]
    }
    for (const force of ['any', 'named', 'subset'] as const) {
      deepEqual(ask(force, asked), [true, true], `${profile} ${force}`)
      // Reasoning is switched off only for models that reason by default.
      deepEqual(ask(force), [profile !== 'qwen', false], `${profile} ${force}`)
    }
    deepEqual(ask(undefined, asked), [false, false])
    deepEqual(ask(undefined), [false, false])
  }
  const { body } = translate('chat', 'responses', { ...smallest.chat, ...forcing.chat(['f'], 'any'), ...asked }, {})
  equal(body.reasoning.effort, 'high')
})

test('Y6 FID-5 R-THINK the models of Claude that always think are asked in words for a call, and keep thinking', () => {
  for (const cloud of ['', '-google', '-bedrock', '-mantle'])
    for (const [effort, sent] of [
      ['none', 'low'],
      ['high', 'high'],
    ]) {
      const profile = `anthropic${cloud}-always-thinking`
      const asked = { ...forcing.chat(['f', 'g'], 'any'), reasoning_effort: effort, temperature: 0.5 }
      const { body: up } = translate('chat', 'messages', { ...smallest.chat, ...asked }, { profile })
      deepEqual([choiceOf(up), up.thinking.type, up.output_config.effort], ['auto', 'adaptive', sent], profile)
      ok(textOf(up).includes('Answer by calling one of the tools.') && !('temperature' in up), profile)
    }
  const plain = { ...smallest.chat, ...forcing.chat(['f'], 'any'), reasoning_effort: 'none' }
  const { body: up } = translate('chat', 'messages', plain, { profile: 'anthropic-fixed-sampling' })
  deepEqual([choiceOf(up), up.thinking.type], ['required', 'disabled'])
})

test('STR-11 a request without reasoning is sent with the switch of each style of chat models', () => {
  const off = {
    none: {},
    effort: { reasoning_effort: 'none' },
    budget: { thinking: { type: 'disabled' } },
    adaptive: { thinking: { type: 'disabled' } },
    switch: { thinking: { type: 'disabled' } },
    toggle: { enable_thinking: false },
  } as const
  for (const style of Object.keys(off) as (keyof typeof off)[]) {
    const asked = { ...smallest.messages, thinking: { type: 'disabled' } }
    const { body } = translate('messages', 'chat', asked, {
      profile: { reasoning: { style, canDisable: true } } as ProfileSetting,
    })
    const { thinking, reasoning_effort, enable_thinking } = body
    deepEqual(JSON.parse(JSON.stringify({ thinking, reasoning_effort, enable_thinking })), off[style], style)
  }
})

test('Y6 B25 a forced call with very many tools takes no more time than a free one', () => {
  const tools = Array.from({ length: 20_000 }, (_, i) => ({ name: `f${i}` }))
  const costOf = (choice: object) => {
    const body = Buffer.from(JSON.stringify({ ...smallest.messages, tools, ...choice }))
    const before = process.cpuUsage()
    equal(translate('messages', 'chat', body).body.tools.length, tools.length)
    return process.cpuUsage(before).user
  }
  const [, free, forced] = [{}, {}, { tool_choice: { type: 'any' } }].map(costOf)
  ok(forced! < 3 * free! + 100_000, `${forced} µs instead of ${free}`)
})

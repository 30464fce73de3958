import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { type Candidate, chooseModel, chooseSmall, findFamily, listCandidates } from '../../src/programs/figures.ts'
import { programs } from '../../src/programs/known/index.ts'
import type { Access, Program } from '../../src/programs/program.ts'
import { testFolder } from '../support/folder.ts'
import { testModel } from '../support/gateway.ts'
import { runWarm } from './run.ts'

/* NEW-1 NEW-16: the models that a program is given, for which work each is, and the word that names its user. */

const home = testFolder('home')
const env = { HOME: home, SHELL: '/bin/bash', PATH: process.env['PATH']! }

type Price = { input: string; output: string }
const dear = { input: '2', output: '10' }

type Printed = { model: string; small_model: string; text: string; file: { text: string }; notes: string }

/** Writes a configuration with these models, and returns what `setup` says beside it. */
function folderOf(models: readonly object[]): (...args: string[]) => Promise<Printed> {
  const cwd = testFolder('models')
  const upstreams = { sim: { base_url: 'http://127.0.0.1:9/v1', accounts: [{ name: 'a', key: 'k' }] } }
  writeFileSync(join(cwd, 'triwire.yaml'), JSON.stringify({ upstreams, catalog: { pinned: '2026-11-01', models } }))
  return async (...args) => {
    const run = await runWarm(['setup', ...args, '--json'], { cwd, env })
    assert.equal(run.code, 0, run.stderr)
    return { ...(run.json as unknown as Printed), notes: run.stderr }
  }
}

const claude = (id: string, price: Price = dear, more: object = {}) =>
  testModel(id, 'messages', { prices: price, ...more })
const gpt = (id: string, price: Price = dear) => testModel(id, 'responses', { prices: price })
const presets = [
  gpt('gpt-6.2-sol'),
  gpt('gpt-6-luna', { input: '0.1', output: '0.5' }),
  claude('claude-opus-5-5', { input: '4', output: '20' }),
  claude('claude-sonnet-5-5'),
  claude('claude-haiku-5-5', { input: '0.1', output: '0.5' }),
]

/** The catalog, the options, and the main model, then OPUS, SONNET, FABLE and HAIKU. */
const families: [name: string, models: readonly object[], args: readonly string[], set: readonly string[]][] = [
  [
    'the families by their names, whatever comes first',
    presets,
    [],
    ['claude-sonnet-5-5', 'claude-opus-5-5', 'claude-sonnet-5-5', 'claude-sonnet-5-5', 'claude-haiku-5-5'],
  ],
  [
    'a model of another vendor, and the families',
    presets,
    ['--model', 'gpt-6.2-sol'],
    ['gpt-6.2-sol', 'claude-opus-5-5', 'claude-sonnet-5-5', 'gpt-6.2-sol', 'claude-haiku-5-5'],
  ],
  [
    'the cheapest for small work if it has no family, unless the model itself costs as little',
    [gpt('a'), gpt('b', { input: '1', output: '2' }), claude('c', { input: '1', output: '1' }), claude('d', dear)],
    ['--model', 'd'],
    ['d', 'd', 'd', 'd', 'c'],
  ],
  ['one model for all if there is but one', [gpt('only')], [], ['only', 'only', 'only', 'only', 'only']],
  [
    'the first that speaks the wire if there is no family',
    [gpt('a', dear), claude('b', dear)],
    [],
    ['b', 'b', 'b', 'b', 'b'],
  ],
  [
    'the newest of a family, by ids of providers and with days, unless an older one is named',
    [
      claude('anthropic/claude-sonnet-4-20250514'),
      claude('us.anthropic.claude-sonnet-4-5-20250929-v1:0'),
      claude('claude-3-5-haiku-20241022'),
      claude('CLAUDE-HAIKU-10-1'),
      claude('claude-opus-4-20250514'),
      claude('claude-opus-4-1'),
    ],
    ['--model', 'claude-opus-4-20250514'],
    [
      'claude-opus-4-20250514',
      'claude-opus-4-20250514',
      'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
      'claude-opus-4-20250514',
      'CLAUDE-HAIKU-10-1',
    ],
  ],
  [
    'what the command names, before any family',
    presets,
    ['--model', 'claude-opus-5-5', '--small-model', 'gpt-6-luna'],
    ['claude-opus-5-5', 'claude-opus-5-5', 'claude-sonnet-5-5', 'claude-opus-5-5', 'gpt-6-luna'],
  ],
  [
    'no family by a word that only contains its name',
    [claude('octopus-1'), claude('sonnetary-2')],
    [],
    ['octopus-1', 'octopus-1', 'octopus-1', 'octopus-1', 'octopus-1'],
  ],
]

for (const [name, models, args, [main, opus, sonnet, fable, haiku]] of families)
  test(`NEW-1 Claude Code gets ${name}`, async () => {
    const printed = await folderOf(models)('claude-code', ...args)
    const { env: set } = JSON.parse(printed.file.text)
    assert.deepEqual(
      [
        printed.model,
        set.ANTHROPIC_MODEL,
        set.CLAUDE_CODE_SUBAGENT_MODEL,
        set.ANTHROPIC_DEFAULT_OPUS_MODEL,
        set.ANTHROPIC_DEFAULT_SONNET_MODEL,
        set.ANTHROPIC_DEFAULT_FABLE_MODEL,
        set.ANTHROPIC_DEFAULT_HAIKU_MODEL,
        printed.small_model,
      ],
      [main, main, main, opus, sonnet, fable, haiku, haiku],
    )
    assert.equal(set.CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY, '1')
    if (haiku !== main && !args.includes('--small-model'))
      assert.match(printed.notes, new RegExp(`small work goes to ${haiku}; --small-model names another`))
  })

const candidate = (model: string, wire: Candidate['wire'], price?: number): Candidate => ({
  ...{ model, wire, price, contextWindow: undefined, outputTokensMax: undefined },
})

test('NEW-1 the default model is one of a preferred family, else one with a wire of the program, else the first', () => {
  const list = [candidate('a', 'messages'), candidate('b', 'responses'), candidate('c', undefined)]
  const choose = (program: string, of = list) => chooseModel(programs[program]!, of)?.model
  assert.deepEqual(
    ['codex', 'claude-code', 'opencode', 'cline', 'openai-node'].map((name) => choose(name)),
    ['b', 'a', 'a', 'a', 'b'],
  )
  assert.equal(choose('codex', [candidate('c', undefined)]), 'c')
  assert.equal(choose('codex', []), undefined)
})

test('NEW-1 the small model is the cheapest with a known price; among equals the large model, then one with its wire', () => {
  const small = (...list: Candidate[]) => chooseSmall(programs['opencode']!, list).model
  assert.equal(small(candidate('large', 'chat', 5), candidate('x', 'chat', 1), candidate('y', 'chat', 2)), 'x')
  assert.equal(small(candidate('large', 'chat', 1), candidate('x', 'chat', 1)), 'large')
  assert.equal(small(candidate('large', 'chat', 5), candidate('x', 'messages', 1), candidate('y', 'chat', 1)), 'y')
  assert.equal(small(candidate('large', 'chat', 5), candidate('free', 'chat', 0), candidate('x', 'chat', 1)), 'free')
  assert.equal(small(candidate('large', 'chat'), candidate('x', 'chat')), 'large')
  assert.equal(small(candidate('large', 'chat'), candidate('x', 'chat', 1)), 'x')
  assert.equal(chooseSmall(programs['codex']!, [candidate('l', 'chat', 5), candidate('x', 'chat', 1)]).model, 'l')
  assert.equal(findFamily('haiku', []), undefined)
})

test('NEW-1 without the operator’s file, prices and wires of a list come from presets', () => {
  const list = listCandidates(['mine', 'claude-sonnet-5-5', 'gpt-6-luna'], undefined)
  assert.deepEqual(
    list.map(({ wire, price }) => [wire, price]),
    [
      [undefined, undefined],
      ['messages', 12],
      ['chat', 0.6],
    ].map(([wire, price]) => [wire === 'chat' ? list[2]!.wire : wire, price]),
  )
  assert.equal(chooseSmall(programs['kilo']!, list).model, 'gpt-6-luna')
})

test('NEW-1 C11 the cheapest model is found by the prices that apply now', async () => {
  const rows = [dear, { from: '2026-01-01T00:00:00Z', input: '0.1', output: '0.2' }]
  const models = [
    gpt('big'),
    gpt('cheap', { input: '1', output: '2' }),
    testModel('now', 'responses', { prices: rows }),
  ]
  const { model, small_model: small } = await folderOf(models)('opencode')
  assert.deepEqual([model, small], ['big', 'now'])
})

/** Programs that can name but one model, or are code that a person changes. */
const withoutPicker = new Set([
  ...['cline', 'copilot', 'kimi-code', 'mini-swe-agent', 'gptme'],
  ...['openai-node', 'openai-python', 'openai-agents', 'anthropic-node', 'anthropic-python', 'ai-sdk', 'langchain'],
])

const access: Access = {
  ...{ origin: 'http://h', key: 'k', model: 'm-1', contextWindow: 90_000, outputTokensMax: 9_000, told: 'Be exact.' },
  small: candidate('m-2', 'chat'),
  models: [
    { ...candidate('m-1', 'chat'), contextWindow: 90_000, outputTokensMax: 9_000 },
    { ...candidate('m-2', 'chat'), contextWindow: 80_000, outputTokensMax: 8_000 },
    candidate('x/m-3', 'chat'),
  ],
  session: 'canary-user',
}

function everyText(program: Program, of = access): string[] {
  return program.wires.map((wire) => JSON.stringify(program.settings(of, wire)))
}

for (const [name, program] of Object.entries(programs))
  test(`NEW-1 ${name} ${withoutPicker.has(name) ? 'gets one model' : 'gets all models, each with its figures'}`, () => {
    for (const text of everyText(program)) {
      assert.ok(text.includes('m-1'))
      // Claude Code asks the gateway itself (CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY), and Cursor has no figures.
      if (name === 'claude-code') continue
      assert.equal(text.includes('x/m-3'), !withoutPicker.has(name))
      assert.equal(/80000|72000/.test(text), !withoutPicker.has(name) && name !== 'cursor')
    }
  })

test('NEW-16 no program sends the same fixed name for all its conversations', async () => {
  const named = Object.entries(programs).filter(([, program]) => everyText(program).join().includes('x-session-id'))
  assert.deepEqual(named.map(([name]) => name).sort(), ['cn', 'copilot', 'pi', 'qwen-code'])
  const setup = folderOf([gpt('only')])
  for (const [name, program] of named) {
    for (const text of everyText(program)) assert.match(text, new RegExp(`x-session-id.*${name}-canary-user`))
    const words: string[] = []
    for (const key of ['sk-tri-a', 'sk-tri-b', 'sk-tri-a']) {
      const { text } = await setup(name, '--key', key)
      words.push(/x-session-id["']?: *["']?([\w-]+)/.exec(text)![1]!)
    }
    assert.notEqual(words[0], words[1])
    assert.equal(words[0], words[2])
    assert.ok(!words.join().includes('sk-tri'))
  }
})

/** Whether Codex may search the web with hosted tools of the model's provider. */
const searches: [name: string, models: readonly object[], told: boolean][] = [
  ['a native responses model', [gpt('a')], true],
  ['a native responses model first, others after it', [gpt('a'), claude('b')], true],
  ['a model that is translated for', [claude('b')], false],
  ['a chat model', [testModel('c', 'chat')], false],
  ['a responses model that refuses hosted tools', [testModel('d', 'responses', { hosted_tools: 'refuse' })], false],
]

for (const [name, models, isOn] of searches)
  test(`NEW-16 Codex ${isOn ? 'keeps' : 'goes without'} web search with ${name}`, async () => {
    const { text } = await folderOf(models)('codex')
    assert.equal(/web_search = "disabled"/.test(text), !isOn)
  })

test('NEW-16 with a catalog of several models Codex searches only if each of them can', () => {
  const search = (...hosted: boolean[]) => {
    const models = hosted.map((can, index) => ({
      ...{ model: `m-${index}`, contextWindow: undefined, outputTokensMax: undefined },
      hostedToolsWire: can ? ('responses' as const) : undefined,
    }))
    const [config] = programs['codex']!.settings({ ...access, models }, 'responses').files!
    return !config!.text.includes('web_search')
  }
  assert.deepEqual([search(true, true), search(true, false), search(false, true)], [true, false, false])
})

test('NEW-1 N-F5 a model has the window of its preset under each of its names, and under that of its upstream', async () => {
  const models = [
    claude('claude-opus-5-5', dear, { also: ['best', 'provider/claude-sonnet-5-5'] }),
    claude('quick', dear, { upstream_model: 'us.vendor/claude-haiku-5-5' }),
    claude('own', dear, { upstream_model: 'claude-haiku-5-5', context_window: 77_000 }),
    claude('unknown'),
  ]
  const { file } = await folderOf(models)('opencode', '--model', 'best')
  const listed = JSON.parse(file.text).provider.triwire.models as Record<string, { limit?: { context: number } }>
  assert.deepEqual(
    Object.entries(listed).map(([id, { limit }]) => [id, limit?.context]),
    [
      ['best', 1_000_000],
      ['claude-opus-5-5', 1_000_000],
      ['provider/claude-sonnet-5-5', 1_000_000],
      ['quick', 1_000_000],
      ['own', 77_000],
      ['unknown', undefined],
    ],
  )
})

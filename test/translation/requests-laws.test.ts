import { deepEqual, equal, ok } from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { fuzzRequests } from '../../scripts/fuzz-requests.ts'
import { JsonSource, writeJson } from '../../src/bytes/json-source.ts'
import type { ProfileSetting } from '../../src/catalog/profiles.ts'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { renameCallIds } from '../../src/inference/ids.ts'
import { assignNames, keyOf } from '../../src/inference/names.ts'
import { normalise } from '../../src/inference/normalise.ts'
import { foldOperators, mergeNeighbours } from '../../src/inference/reminders.ts'
import type { InferenceRequest, TextPart, ToolCallPart, ToolName, Turn } from '../../src/inference/request.ts'
import { runsOf, runsUpTo } from '../support/runs.ts'
import { conversation, requestAt } from './support/conversations.ts'
import { decode, encode, smallest, translate, type Upstream } from './support/exchange.ts'

const runs = { numRuns: runsOf(200) }
const wires: ClientWire[] = ['messages', 'chat', 'responses']
const pairs = wires.flatMap((from) => wires.filter((to) => to !== from).map((to) => [from, to] as const))

/** Profiles under which a conversation is written in another way. */
const profiles = fc.constantFrom<ProfileSetting>(
  {},
  { operatorInPlace: 'first_only', toolIdStyle: 'fn_index', toolImages: 'native' },
  { operatorInPlace: 'first_only', stringOnly: true, toolIdStyle: 'alnum9', developerRole: false },
  { toolIdStyle: 'len40', autoCache: 'always' },
)

/** Turns in any order at all, with ids that repeat and results that answer nothing. */
const anyTurn: fc.Arbitrary<Turn> = fc.oneof(
  fc.record({
    by: fc.constant('user' as const),
    parts: fc.array(
      fc.oneof(
        fc.record({ type: fc.constant('text' as const), text: fc.constantFrom('', 'a', 'b') }),
        fc.record({
          type: fc.constant('tool_result' as const),
          callId: fc.constantFrom('x', 'y', 'z'),
          parts: fc.constant<TextPart[]>([]),
          isError: fc.boolean(),
        }),
      ),
      { maxLength: 4 },
    ),
  }),
  fc.record({
    by: fc.constant('model' as const),
    parts: fc.array(
      fc.record({
        type: fc.constant('tool_call' as const),
        callId: fc.constantFrom('x', 'y', 'z'),
        name: fc.constantFrom('f', 'g', 'a b', 'a_b', 'n'.repeat(70), `${'n'.repeat(70)}m`, ''),
        argumentsText: fc.constant('{}'),
        namespace: fc.constantFrom(undefined, 'm', 'n'),
      }),
      { maxLength: 3 },
    ) as fc.Arbitrary<ToolCallPart[]>,
  }),
  fc.record({
    by: fc.constant('operator' as const),
    level: fc.constantFrom('system' as const, 'developer' as const),
    texts: fc.array(fc.record({ text: fc.constantFrom('', 'S') }), { maxLength: 2 }),
  }),
)
const anyTurns = fc.array(anyTurn, { maxLength: 10 })

function requestOf(turns: Turn[]): InferenceRequest {
  return { ...decode('chat', smallest.chat), turns }
}

test('TP4 normalising twice gives the same as normalising once', () => {
  fc.assert(
    fc.property(anyTurns, (turns) => {
      const once = normalise(requestOf(turns))
      deepEqual(normalise(once), once)
    }),
    runs,
  )
})

test('TP4 a user turn without parts keeps no text from the results before it', () => {
  const call = { type: 'tool_call' as const, callId: 'x', name: 'f', argumentsText: '{}' }
  const result = { type: 'tool_result' as const, callId: 'x', parts: [], isError: false }
  const text = { type: 'text' as const, text: 'a' }
  const turns: Turn[] = [
    { by: 'model', parts: [call] },
    { by: 'user', parts: [result] },
    { by: 'user', parts: [] },
    { by: 'user', parts: [text] },
  ]
  deepEqual(normalise(requestOf(turns)).turns, [turns[0], { by: 'user', parts: [result, text] }])
})

test('TP4 normalising loses no part except empty operator text, and pairs every call and result that match', () => {
  fc.assert(
    fc.property(anyTurns, (turns) => {
      const parts = (list: Turn[]): unknown[] =>
        list.flatMap((turn): unknown[] => (turn.by === 'operator' ? turn.texts.filter((t) => t.text) : turn.parts))
      const ordered = normalise(requestOf(turns)).turns
      deepEqual(new Set(parts(ordered)), new Set(parts(turns)))
      equal(parts(ordered).length, parts(turns).length)
    }),
    runs,
  )
})

for (const [from, to] of pairs) {
  test(`TP4 ${from}→${to} the same conversation leads to the same bytes`, () => {
    fc.assert(
      fc.property(conversation, profiles, (rounds, profile) => {
        const body = requestAt(from, rounds)
        equal(translate(from, to, body, { profile }).text, translate(from, to, body, { profile }).text)
      }),
      runs,
    )
  })

  test(`T8 ${from}→${to} a growing conversation keeps its beginning byte by byte, apart from cache marks`, () => {
    fc.assert(
      fc.property(conversation, profiles, (rounds, profile) => {
        const bodies = rounds.map((_, index) =>
          translate(from, to, requestAt(from, rounds.slice(0, index + 1)), { profile, cacheKey: 'k' }).text.replaceAll(
            ',"cache_control":{"type":"ephemeral"}',
            '',
          ),
        )
        for (const [index, body] of bodies.entries()) {
          // The conversation is the last member: all but the closing brackets is the beginning of the next body.
          ok(body.endsWith(']}'))
          const grown = bodies[index + 1]
          if (grown !== undefined && isAnswered(rounds[index]!))
            equal(grown.slice(0, body.length - 2), body.slice(0, -2))
        }
      }),
      runs,
    )
  })

  test(`R-PAIR ${from}→${to} every call is followed directly by its result, whatever the ids`, () => {
    fc.assert(
      fc.property(conversation, profiles, (rounds, profile) => {
        const { body } = translate(from, to, requestAt(from, rounds), { profile })
        const expected = rounds.slice(0, -1).flatMap((one) => one.calls.map((call) => `of ${call.name}`))
        deepEqual(resultsInOrderOfCalls(to, body), expected)
      }),
      runs,
    )
  })
}

/** A round in which the model said nothing at all is no turn: two user sides are neighbours then. */
function isAnswered(one: { says: string; calls: unknown[] }): boolean {
  return one.calls.length > 0 || one.says.trim() !== ''
}

/** The text of the result with the id of each call, in the order of the calls. */
function resultsInOrderOfCalls(wire: ClientWire, body: Upstream): unknown[] {
  const calls: string[] = []
  const results = new Map<string, unknown>()
  const entries: Upstream[] = wire === 'responses' ? body.input : body.messages
  for (const entry of entries) {
    if (wire === 'chat') {
      for (const call of entry.tool_calls ?? []) calls.push(call.id)
      if (entry.role === 'tool') results.set(entry.tool_call_id, entry.content)
    } else if (wire === 'responses') {
      if (entry.type === 'function_call') calls.push(entry.call_id)
      if (entry.type === 'function_call_output') results.set(entry.call_id, entry.output)
    } else {
      for (const block of entry.content) {
        if (block.type === 'tool_use') calls.push(block.id)
        if (block.type === 'tool_result') results.set(block.tool_use_id, block.content)
      }
    }
  }
  equal(new Set(calls).size, calls.length)
  return calls.map((id) => results.get(id))
}

for (const wire of wires) {
  test(`TP5 ${wire}→hub→${wire} keeps what the hub represents`, () => {
    fc.assert(
      fc.property(conversation, settings, (rounds, setting) => {
        const body = { ...JSON.parse(requestAt(wire, rounds)), ...setting[wire] }
        const reasoning = { style: wire === 'messages' ? 'adaptive' : 'effort', levels, canDisable: true } as const
        const profile = {
          operatorInPlace: 'any',
          toolIdStyle: 'free',
          toolNameMax: 128,
          accepts: everything,
          reasoning,
        } as const
        const first = decode(wire, JSON.stringify(body))
        const second = decode(wire, encode(wire, first, { profile }).body)
        deepEqual(represented(second), represented(first))
      }),
      runs,
    )
  })
}

const levels = ['low', 'medium', 'high'] as const
const everything = new Set(['strict', 'top_k', 'verbosity', 'allowed_tools', 'safety_identifier'])
const schema = { type: 'object', properties: { a: { type: 'string' } } }

/** Everything beside the conversation, in the words of each wire. */
const settings = fc
  .record({
    temperature: fc.constantFrom(undefined, 0, 0.5, 1),
    topP: fc.constantFrom(undefined, 0.9),
    cap: fc.constantFrom(100, 4096),
    stops: fc.constantFrom(undefined, ['END'], ['a', 'b']),
    effort: fc.constantFrom(undefined, 'low', 'medium', 'high'),
    parallel: fc.constantFrom(undefined, false),
    choice: fc.constantFrom(undefined, 'auto', 'none', 'required', 'f'),
    shape: fc.constantFrom('text', 'schema'),
    user: fc.constantFrom(undefined, 'u'),
    stream: fc.boolean(),
  })
  .map(({ temperature, topP, cap, stops, effort, parallel, choice, shape, user, stream }) => {
    const isNamed = choice === 'f'
    const isForced = isNamed || choice === 'required'
    const isThinking = effort !== undefined && temperature === undefined && topP === undefined && !isForced
    const format = { type: 'json_schema', name: 'n', description: 'd', schema, strict: true }
    const { type, ...named } = format
    const common = { temperature, top_p: topP, stream }
    const messagesChoice = {
      type: isNamed ? 'tool' : choice === 'required' ? 'any' : (choice ?? 'auto'),
      name: isNamed ? choice : undefined,
      disable_parallel_tool_use: parallel === false && choice !== 'none' ? true : undefined,
    }
    return {
      messages: {
        ...common,
        max_tokens: cap,
        // Beside sampling or a forced tool a level is a loss (R-THINK), which has cases of its own.
        thinking: isThinking ? { type: 'adaptive' } : undefined,
        stop_sequences: stops,
        tool_choice: choice || parallel === false ? messagesChoice : undefined,
        output_config: {
          format: shape === 'schema' ? { type: 'json_schema', schema } : undefined,
          effort: isThinking ? effort : undefined,
        },
        metadata: user ? { user_id: user } : undefined,
      },
      chat: {
        ...common,
        max_completion_tokens: cap,
        stop: stops,
        tool_choice: isNamed ? { type: 'function', function: { name: choice } } : choice,
        parallel_tool_calls: parallel,
        response_format: shape === 'schema' ? { type, json_schema: named } : undefined,
        reasoning_effort: effort,
        user,
      },
      responses: {
        ...common,
        max_output_tokens: cap,
        tool_choice: isNamed ? { type: 'function', name: choice } : choice,
        parallel_tool_calls: parallel,
        text: shape === 'schema' ? { format } : undefined,
        reasoning: effort ? { effort, summary: 'auto' } : undefined,
        user,
      },
    }
  })

/** The hub's request without what a round trip may change: ids, names, places of equal meaning, losses. */
function represented(request: InferenceRequest): unknown {
  const { turns, preamble } = normalise(request)
  const renamed = renameCallIds(turns, 'fn_index', () => 'f').filter(
    (turn) => turn.by === 'operator' || turn.parts.length > 0,
  )
  return withoutPlaces({
    ...request,
    losses: [],
    echo: '',
    preamble: preamble.flatMap((turn) => turn.texts.map((text) => text.text)),
    turns: mergeNeighbours(foldOperators(renamed, () => true)).map((turn) =>
      turn.by !== 'model'
        ? turn
        : { by: 'model', parts: turn.parts.map((part) => (part.type === 'tool_call' ? { ...part, name: '' } : part)) },
    ),
    tools: request.tools.map((tool) => ({ ...tool, name: '', strict: tool.strict ?? false })),
  })
}

/** The same read, without the places in the client's body that images, files and tools are refused by. */
function withoutPlaces(value: unknown): unknown {
  if (value instanceof JsonSource) return JSON.stringify(value)
  if (typeof value === 'string') return JSON.stringify(value)
  if (Array.isArray(value)) return value.map(withoutPlaces)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).filter(([key]) => key !== 'at')
  return Object.fromEntries(members.map(([key, member]) => [key, withoutPlaces(member)]))
}

test('TP6 upstream names are unique and legal, and map back to their tools', () => {
  const tool = fc.record({
    name: fc.constantFrom('f', 'g', 'a b', 'a_b', 'm__f', 'n'.repeat(70), `${'n'.repeat(70)}m`, ''),
    namespace: fc.constantFrom(undefined, 'm', 'n'),
  })
  const identity = (one: { name: string; namespace?: string | undefined }) => `${one.namespace ?? ''}/${one.name}`
  const plain = fc.record({ name: fc.constantFrom('f', 'g', 'a_b', 'm__f'), namespace: fc.constant(undefined) })
  const [some, plainOnes] = [tool, plain].map((one) => fc.uniqueArray(one, { selector: identity, maxLength: 12 }))
  const tools = fc.oneof(some!, plainOnes!)
  fc.assert(
    fc.property(tools, fc.oneof(anyTurns, fc.constant([])), tools, (wanted, others, called) => {
      const [declared, calls] = [wanted, called].map((list) =>
        list.map(({ name, namespace }) => (namespace ? { name, namespace } : { name })),
      ) as [ToolName[], ToolName[]]
      const turns: Turn[] = [...others, { by: 'model', parts: calls.map((one) => ({ ...callOf('c'), ...one })) }]
      const names = assignNames({ tools: declared, turns }, { toolNameMax: 64, toolNameStart: 'any' })
      for (const call of calls) ok(/^[A-Za-z0-9_-]{1,64}$/.test(names.upstreamOf(call)))
      const upstream = declared.map(names.upstreamOf)
      equal(new Set(upstream).size, declared.length)
      for (const [index, one] of declared.entries()) {
        const name = upstream[index]!
        ok(/^[A-Za-z0-9_-]{1,64}$/.test(name))
        deepEqual(names.restore.get(name) ?? { name }, one)
      }
    }),
    runs,
  )
})

test('TP6 call ids are unique, in the style that was asked for', () => {
  const styles = { re64: /^[A-Za-z0-9_-]{1,64}$/, len40: /^[A-Za-z0-9_-]{1,40}$/, alnum9: /^[A-Za-z0-9]{9}$/ }
  const odd = fc.oneof(
    anyTurns,
    fc.constant<Turn[]>([{ by: 'model', parts: [callOf(''), callOf('a.b'), callOf('a_b')] }]),
  )
  fc.assert(
    fc.property(odd, fc.constantFrom('re64' as const, 'len40' as const, 'alnum9' as const), (turns, style) => {
      const ids = renameCallIds(turns, style, () => 'f').flatMap((turn) =>
        turn.by === 'model' ? turn.parts.flatMap((part) => (part.type === 'tool_call' ? [part.callId] : [])) : [],
      )
      equal(new Set(ids).size, ids.length)
      for (const id of ids) ok(styles[style].test(id))
    }),
    runs,
  )
})

test('R10 a mutated request becomes an upstream body or a 400, never an internal error', () => {
  const count = fuzzRequests(15 * runs.numRuns, 11)
  deepEqual(count.faults, [])
  ok(Math.min(count.encoded, count.refused) > runsUpTo(500))
})

test('T16 a body is written as JSON.stringify writes it, with kept sources unchanged', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 3 }), (value) => {
      equal(writeJson(value).toString(), JSON.stringify(value))
    }),
    runs,
  )
  const a = [new JsonSource(['{ "x" : 1.0 }'])]
  equal(writeJson({ a, b: undefined, c: null }).toString(), '{"a":[{ "x" : 1.0 }],"c":null}')
})

test('T16 kept sources stay at their places, whatever is around them and in them', () => {
  // `"1"` comes before `a` wherever it is set; the last strings begin as a stand-in and a token do.
  const key = fc.constantFrom('b', 'a', '1', '__proto__', '')
  const source = fc.constantFrom('{ "x" : 1.0 }', '[]', '"\u007fs"', '"\\u00e9"', '"é😀"')
  const string = fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('\u007f', '\u007fs', '\u007fk'))
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      // In one piece, or in characters and bytes.
      source.map((text) => new JsonSource([text])),
      source.map(inPieces),
      string,
      fc.constantFrom(undefined, null, 0, true),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.array(fc.tuple(key, tie('value')), { maxLength: 4 }).map((members) => Object.fromEntries(members)),
    ),
  }))
  fc.assert(
    fc.property(value, (value) => equal(writeJson({ a: value }).toString(), written({ a: value }))),
    { numRuns: runsUpTo(2_000) },
  )
})

function inPieces(text: string): JsonSource {
  const bytes = Buffer.from(text)
  return new JsonSource([text.slice(0, 1), { bytes, start: 1, end: bytes.length }])
}

function written(value: unknown): string {
  if (value instanceof JsonSource) return value.source
  if (Array.isArray(value)) return `[${value.map(written).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${written(member)}`).join()}}`
}

function callOf(callId: string): ToolCallPart {
  return { type: 'tool_call', callId, name: 'f', argumentsText: '{}' }
}

test('TP6 two tools have the same key only if name and namespace are equal, whatever characters they contain', () => {
  type Tool = { name: string; namespace: string | undefined }
  const word = fc.string({ unit: fc.constantFrom('\0', ':', 'a', '1'), minLength: 1, maxLength: 4 })
  const tool = fc.record({ name: word, namespace: fc.option(word, { nil: undefined }) })
  const pair = fc.tuple(word, fc.constantFrom('', '\0'), word).map(([namespace, between, name]) => ({
    apart: { name: namespace + between + name, namespace: undefined },
    inside: { name, namespace },
  }))
  const law = (a: Tool, b: Tool) =>
    equal(keyOf(a as ToolName) === keyOf(b as ToolName), a.name === b.name && a.namespace === b.namespace)
  fc.assert(fc.property(tool, tool, law), { numRuns: runsUpTo(2_000) })
  fc.assert(
    fc.property(pair, ({ apart, inside }) => law(apart, inside)),
    { numRuns: runsUpTo(2_000) },
  )
})

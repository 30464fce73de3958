import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { Model } from '../../src/catalog/model.ts'
import { findProfileMistake, profileNames, resolveProfile } from '../../src/catalog/profiles.ts'
import { readFieldName, routingFields } from '../../src/catalog/routing-fields.ts'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { GatewayError } from '../../src/errors.ts'
import { ClientBody } from '../../src/wires/requests/client-body.ts'
import { wires } from '../../src/wires/wires.ts'
import { runsOf } from '../support/runs.ts'
import { modelOf } from './models.ts'

const runs = { numRuns: runsOf(200) }

/** The names of ruling Y13, and of public request schemas (the sources stand in `catalog/routing-fields.ts`). */
const named = [
  ...['models', 'route', 'preset', 'provider', 'providerOptions', 'plugins', 'fallbacks', 'context_window_fallbacks'],
  ...[
    'content_policy_fallbacks',
    'mock_testing_fallbacks',
    'fallback_depth',
    'fallback_credit_token',
    'fallback_models',
  ],
  ...['mock_response', 'mock_timeout', 'api_base', 'base_url', 'api_key', 'user_config', 'model_list', 'num_retries'],
  ...['custom_llm_provider', 'tags', 'betas', 'anthropic_beta', 'ranking_model', 'lora_path', 'bootstrap_host'],
  ...['bootstrap_room', 'routed_dp_rank', 'disagg_prefill_dp_rank', 'data_parallel_rank', 'kv_transfer_params'],
  ...['context_window_fallback_dict', 'max_fallbacks', 'model_info', 'base_model', 'routing_strategy', 'tag_regex'],
  ...['auto_router_config', 'complexity_router_default_model', 'router_settings_override', 'specific_deployment'],
  ...[
    'aws_bedrock_runtime_endpoint',
    'aws_session_token',
    'vertex_credentials',
    'azure_ad_token',
    'sagemaker_base_url',
  ],
  ...['s3_endpoint_url', 'deployment_url', 'region_name', 'watsonx_region_name', 'litellm_credential_name', 'headers'],
  ...['extra_headers', 'provider_specific_header', 'max_retries', 'retry_policy', 'model_group_retry_policy'],
  ...['enable_search', 'search_options', 'enable_code_interpreter', 'enable_enhancement', 'force_search_enhancement'],
  ...['enable_deep_search', 'enable_speed_search', 'web_search', 'compound_custom'],
  ...['max_agentic_loops', 'input_cost_per_token', 'cost_per_query', 'prompt_id', 'langfuse_host', 'client_secret'],
]

/** What LiteLLM reads in metadata, and its containers; written here anew, so that a table that loses one is noticed. */
const containers: Record<string, readonly string[]> = { litellm: ['extra_body', 'litellm_params', 'litellm_metadata'] }

const kinds = clientWireNames.flatMap((wire) =>
  profileNames.filter((name) => !findProfileMistake(wire, name)).map((name) => [wire, name] as const),
)

/** A member's name as a reader sees it that ignores case. */
const folded = (key: string) => key.toUpperCase().toLowerCase()

type Spelling = { name: string; text: string }

/** Each letter in either case, or one that folds to it, as itself or as an escape. */
const spelling: fc.Arbitrary<Spelling> = fc
  .tuple(fc.constantFrom(...named), fc.infiniteStream(fc.tuple(fc.nat(9), fc.nat(3))))
  .map(([name, draws]) => ({ name, text: spell(name, draws) }))

function spell(name: string, draws: Iterable<[number, number]>): string {
  const iterator = draws[Symbol.iterator]()
  const letters = [...name].map((letter) => {
    const [shape, escaped] = iterator.next().value as [number, number]
    const lookalike = { s: '\u017f', k: '\u212a' }[letter.toLowerCase()]
    const drawn = shape < 3 ? letter.toUpperCase() : shape === 3 ? (lookalike ?? letter) : letter
    const code = drawn.charCodeAt(0).toString(16).padStart(4, '0')
    return escaped === 0 ? `\\u${shape % 2 ? code : code.toUpperCase()}` : drawn
  })
  return letters.join('')
}

const value = fc.constantFrom(
  '["dear"]',
  '"dear"',
  'true',
  '50',
  'null',
  '{"order":["x"],"a":{"b":[1]}}',
  '[{"model":"dear"}]',
)

function adapt(wire: ClientWire, text: string, more: Partial<Model>) {
  const context = { scopedKey: undefined, isOurSeal: () => false }
  return wires[wire].native.adaptRequest(new ClientBody(Buffer.from(text)), modelOf(wire, more), context)
}

/** The words where nothing may be touched: messages, tools, schemas, arguments and metadata, in the shape of the wire. */
function untouched(wire: ClientWire, words: string): Record<string, string> {
  const schema = `{"type":"object","properties":{${words}},"x":[{${words}}]}`
  const metadata = `{${words},"user_id":"u"}`
  if (wire === 'messages') {
    const use = `{"type":"tool_use","id":"t","name":"f","input":{${words}}}`
    return {
      metadata,
      tools: `[{"name":"f","input_schema":${schema},${words}}]`,
      messages: `[{"role":"user","content":"a"},{"role":"assistant","content":[${use}],${words}}]`,
    }
  }
  const args = JSON.stringify(`{${words}}`)
  if (wire === 'chat') {
    const call = `{"id":"c","type":"function","function":{"name":"f","arguments":${args}}}`
    return {
      metadata,
      tools: `[{"type":"function","function":{"name":"f","parameters":${schema}},${words}}]`,
      messages: `[{"role":"user","content":[{"type":"text","text":"a",${words}}]},{"role":"assistant","tool_calls":[${call}]}]`,
      response_format: `{"type":"json_schema","json_schema":{"name":"n","schema":${schema}}}`,
    }
  }
  return {
    metadata,
    tools: `[{"type":"function","name":"f","parameters":${schema},${words}}]`,
    input: `[{"role":"user","content":[{"type":"input_text","text":"a",${words}}]},{"type":"function_call","call_id":"c","name":"f","arguments":${args}}]`,
    text: `{"format":{"type":"json_schema","name":"n","schema":${schema}}}`,
  }
}

/** Names that a reader without regard to case finds at the top level and in the containers, however deep those lie in each other. */
function foundBy(reader: unknown, inside: readonly string[]): string[] {
  if (typeof reader !== 'object' || reader === null) return []
  return Object.entries(reader).flatMap(([key, inner]) => [
    folded(key),
    ...(inside.includes(folded(key)) ? foundBy(inner, inside).map((name) => `${folded(key)}.${name}`) : []),
  ])
}

test('Y13 fields that choose another model, provider, host or price reach no upstream in any spelling; all others pass unchanged', () => {
  const forbidden = new Set(named.map(folded))
  const places = fc.array(fc.tuple(spelling, value, fc.nat(4)), { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(places, fc.nat(3), (drawn, at) => {
      for (const [wire, profileName] of kinds) {
        const inside = containers[profileName] ?? []
        const write = ([{ text }, source]: (typeof drawn)[number]) => `"${text}":${source}`
        const top: string[] = []
        for (const one of drawn) {
          const container = inside[one[2] % 3]
          const nested = `{"kept":1,${write(one)},"also":[],${write(one)}}`
          if (container === undefined || one[2] === 0) top.push(write(one))
          else if (one[2] === 4)
            top.push(`"${spell(container, one[0].text.length % 2 ? upper : plain)}":{"extra_body":${nested},"y":2}`)
          else top.push(`"${container}":${nested}`)
        }
        // LiteLLM routes by the tags in metadata: they are looked at apart.
        const words = drawn.filter(([{ name }]) => name !== 'tags').map(write)
        const kept = untouched(wire, ['"x":1', ...words].join(','))
        const rest = [
          '"model":"m"',
          '"max_tokens":5',
          ...Object.entries(kept).map(([key, source]) => `"${key}":${source}`),
        ]
        const members = unique([...rest.slice(0, at), ...top, ...rest.slice(at)])
        const profile = resolveProfile(wire, profileName)
        const { drops } = profile
        const { body, losses } = adapt(wire, `{${members.join(',')}}`, { profile })
        const sent = new ClientBody(body)
        const names = foundBy(JSON.parse(body.toString()), inside).map((name) => name.split('.').at(-1)!)
        assert.deepEqual(
          names.filter((name) => forbidden.has(name)),
          [],
          `${wire} ${profileName}`,
        )
        for (const [key, source] of Object.entries(kept)) {
          if (drops.has(key)) continue
          const { start, end } = sent.member(key)!
          assert.equal(body.toString('utf8', start, end), source, `${wire} ${profileName} ${key}`)
        }
        assert.ok(losses.some(({ what, why }) => what === 'dropped' && why.startsWith('would choose')))
        for (const { field } of losses) assert.match(field, /^[a-zA-Z_*.]+$/)
      }
    }),
    runs,
  )
})

const plain = {
  [Symbol.iterator]: () => ({ next: () => ({ done: false as const, value: [9, 3] as [number, number] }) }),
}
const upper = {
  [Symbol.iterator]: () => ({ next: () => ({ done: false as const, value: [0, 3] as [number, number] }) }),
}

/** One of each decoded name: a repeated one is refused (ruling Y12), which the next test shows. */
function unique(members: readonly string[]): string[] {
  const byName = new Map(members.map((member) => [Object.keys(JSON.parse(`{${member}}`))[0]!, member]))
  return [...byName.values()]
}

test('Y12 Y13 a name that occurs twice is refused; if the case differs, both are dropped', () => {
  const ask = (members: string) => `{"model":"m","max_tokens":5,"messages":[],"input":"x",${members}}`
  for (const wire of clientWireNames) {
    assert.throws(
      () => adapt(wire, ask(`"models":["a"],"mod\\u0065ls":["b"]`), {}),
      (error) => error instanceof GatewayError && error.code === 'invalid_body' && error.param === 'models',
    )
    const { body, losses } = adapt(wire, ask('"models":["a"],"Models":["b"],"MODELS":["c"],"mod\\u0045ls":1'), {})
    assert.deepEqual(
      Object.keys(JSON.parse(body.toString())).filter((key) => /models/i.test(key)),
      [],
    )
    assert.deepEqual(losses.filter(({ field }) => field === 'models').length, 1)
  }
})

test('Y13 fields that the gateway itself judges are dropped in any other case, and in a container', () => {
  const judged = [
    'model',
    'max_tokens',
    'max_completion_tokens',
    'n',
    'stream',
    'tools',
    'messages',
    'service_tier',
    'web_search_options',
  ]
  for (const wire of clientWireNames) {
    for (const name of judged) {
      const cased = name[0]!.toUpperCase() + name.slice(1)
      const profile = resolveProfile(wire, 'litellm')
      const text = `{"model":"m","max_tokens":5,"messages":[],"input":"x","${cased}":7,"extra_body":{"${name}":7,"${cased}":7,"z":1}}`
      const { body } = adapt(wire, text, { profile })
      const sent = JSON.parse(body.toString())
      assert.equal(sent[cased], undefined, `${wire} ${cased}`)
      assert.deepEqual(sent['extra_body'], { z: 1 }, `${wire} ${name}`)
    }
  }
})

test('Y13 only with LiteLLM, tags in metadata are dropped, and so is metadata that is an object in a string', () => {
  const body = (metadata: string) => `{"model":"m","max_tokens":5,"messages":[],"input":"x","metadata":${metadata}}`
  const cases = [
    ['{"tags":["paid"],"a":1}', '{"a":1}'],
    ['{"a":{"tags":[1]},"T\\u0061gs":[1],"tags":2}', '{"a":{"tags":[1]}}'],
    ['{"models":["x"],"tag":1}', '{"models":["x"],"tag":1}'],
    ['"{\\"tags\\":[\\"paid\\"]}"', undefined],
    ['"tags"', '"tags"'],
  ] as const
  for (const [wire, name] of kinds) {
    for (const [from, to] of cases) {
      const sent = adapt(wire, body(from), { profile: resolveProfile(wire, name) }).body
      const place = new ClientBody(sent).member('metadata')
      const text = place && sent.toString('utf8', place.start, place.end)
      const expected = name === 'litellm' ? to : from
      const isDropped = resolveProfile(wire, name).drops.has('metadata')
      assert.equal(text, isDropped ? undefined : expected, `${wire} ${name}`)
    }
  }
})

test('Y13 containers within containers are dropped, and so are repeated ones in the same container', () => {
  const profile = resolveProfile('chat', 'litellm')
  const inner =
    '"litellm_params":{"models":1},"b":2,"Extra_body":{"models":2},"metadata":{"tags":3},"litellm_params":"{}"'
  const { body, losses } = adapt('chat', `{"model":"m","messages":[],"extra_body":{${inner},"c":{"models":4}}}`, {
    profile,
  })
  assert.equal(body.toString(), '{"model":"up","messages":[],"extra_body":{"b":2,"c":{"models":4}}}')
  const named = ['extra_body.litellm_params', 'extra_body.extra_body', 'extra_body.metadata']
  assert.deepEqual(
    losses.map(({ field }) => field),
    named,
  )
})

test('Y13 a model’s entry allows a field, also in a container, and its profile adds names and containers', () => {
  const text =
    '{"model":"m","messages":[],"fallbacks":["a"],"models":["b"],"Route":"c","box":{"fallbacks":1,"models":2,"region":3},"region":"x"}'
  const profile = { ...resolveProfile('chat'), routingFields: ['region'], routingContainers: ['box'] }
  const sent = (allowed: string[]) => {
    const { body } = adapt('chat', text, { profile, allowedFields: new Set(allowed) })
    const { model: _, messages: __, ...rest } = JSON.parse(body.toString())
    return rest
  }
  assert.deepEqual(sent([]), { box: {} })
  assert.deepEqual(sent(['fallbacks', 'route']), { fallbacks: ['a'], Route: 'c', box: { fallbacks: 1 } })
  assert.deepEqual(sent(['region']), { box: { region: 3 }, region: 'x' })
})

test('Y13 no documented field of a wire is in the table, except those of the ruling', () => {
  for (const wire of clientWireNames) {
    const caught = [...wires[wire].client.fields.keys()].filter((name) => readFieldName(name).row !== undefined)
    assert.deepEqual(caught, wire === 'messages' ? ['fallbacks', 'fallback_credit_token'] : [], wire)
  }
  for (const row of routingFields) assert.equal(readFieldName(row.replaceAll('*', 'x')).row !== undefined, true, row)
})

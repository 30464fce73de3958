/* Bodies that are almost valid: a valid request with random changes from a seed. */

export type Chance = () => number

/** Creates a generator of numbers from 0 to 1 from a seed (mulberry32). */
export function createChance(seed: number): Chance {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export type AskedBody = { path: string; body: Buffer }

const models = ['messages', 'chat', 'responses'].map((wire) => `native-${wire}`)
const image = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' }
const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }

const messagesBody = {
  max_tokens: 64,
  system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'canary-fuzz' },
        { type: 'image', source: image },
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'hm', signature: '' },
        { type: 'tool_use', id: 't1', name: 'look', input: { city: 'Rome' } },
      ],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'sunny', is_error: false }] },
  ],
  tools: [{ name: 'look', description: 'Looks.', input_schema: schema }],
  tool_choice: { type: 'auto' },
  thinking: { type: 'enabled', budget_tokens: 1024 },
  output_config: { format: { type: 'json_schema', schema } },
  stop_sequences: ['END'],
  temperature: 0.5,
  metadata: { user_id: 'u' },
  stream: false,
}

const chatBody = {
  messages: [
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'canary-fuzz' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
      ],
    },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{"city":"Rome"}' } }],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'sunny' },
  ],
  tools: [{ type: 'function', function: { name: 'look', parameters: schema, strict: true } }],
  tool_choice: { type: 'function', function: { name: 'look' } },
  response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
  max_tokens: 64,
  max_completion_tokens: 64,
  stop: ['END'],
  reasoning_effort: 'low',
  stream_options: { include_usage: false },
  prompt_cache_key: 'k',
  stream: false,
}

const responsesBody = {
  input: [
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'canary-fuzz' },
        { type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo=' },
      ],
    },
    { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'abc' },
    { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{"city":"Rome"}' },
    { type: 'function_call_output', call_id: 'c1', output: 'sunny' },
  ],
  instructions: 'Be brief.',
  tools: [
    { type: 'function', name: 'look', parameters: schema },
    { type: 'namespace', name: 'n', tools: [] },
  ],
  tool_choice: 'auto',
  text: { format: { type: 'json_schema', name: 'x', schema }, verbosity: 'low' },
  reasoning: { effort: 'low', summary: 'auto' },
  include: ['reasoning.encrypted_content'],
  max_output_tokens: 64,
  background: false,
  store: true,
  stream: false,
}

const bodies = [
  { path: '/v1/messages', body: messagesBody },
  { path: '/v1/chat/completions', body: chatBody },
  { path: '/v1/responses', body: responsesBody },
  { path: '/v1/messages/count_tokens', body: messagesBody },
]

const strange: unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e308,
  '',
  'x',
  '\ud800',
  '😀'.repeat(300),
  [],
  {},
  [[]],
  [null],
  [{}],
  { type: 'x' },
].concat([
  { type: 'text' },
  { role: 'user' },
  'none',
  { type: 'item_reference', id: 'x' },
  JSON.parse('{"__proto__":{"a":1}}'),
  -0,
  2 ** 53,
] as never[])
const scraps = [
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"',
  '\\',
  '\\u',
  'null',
  '0',
  '1e999',
  '\x00',
  '\xff',
  '\ufeff',
  '"a":',
  '  ',
  '//',
  'é',
  '-',
]

/** Returns the next body to send, and its path. */
export function mutate(chance: Chance): AskedBody {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(chance() * from.length)]!
  const { path, body } = pick(bodies)
  const whole = structuredClone({ model: pick(models), ...body, stream: chance() < 0.3 }) as Record<string, unknown>
  const changes = Math.floor(chance() * 4)
  for (let i = 0; i < changes; i++) change(whole, pick, chance)
  let bytes = Buffer.from(JSON.stringify(whole))
  for (let i = chance() < 0.3 ? Math.ceil(chance() * 3) : 0; i > 0; i--) {
    const at = Math.floor(chance() * (bytes.length + 1))
    const cut = chance() < 0.5 ? Math.floor(chance() * 4) : 0
    const scrap = Buffer.from(pick(scraps), 'latin1')
    bytes = Buffer.concat([bytes.subarray(0, at), scrap, bytes.subarray(at + cut)])
  }
  return { path, body: bytes }
}

/** Replaces, removes or doubles one member or element at any depth. */
function change(root: Record<string, unknown>, pick: <T>(from: readonly T[]) => T, chance: Chance): void {
  let place: Record<string, unknown> | unknown[] = root
  for (;;) {
    const keys = Object.keys(place)
    if (keys.length === 0) return
    const key = pick(keys)
    const value = (place as Record<string, unknown>)[key]
    if (typeof value === 'object' && value !== null && chance() < 0.7) {
      place = value as Record<string, unknown>
      continue
    }
    const how = chance()
    if (how < 0.6) (place as Record<string, unknown>)[key] = structuredClone(pick(strange))
    else if (how < 0.75 && !Array.isArray(place)) delete place[key]
    else if (Array.isArray(place)) place.push(structuredClone(value))
    else place[pick(['type', 'content', 'id', 'name', 'role', key])] = structuredClone(value)
    return
  }
}

/**
 * Mutates valid requests and translates them: `node bin/node.mjs scripts/fuzz-requests.ts [inputs] [seed]`. The result
 * must be a JSON body for the upstream, or an intended 400. Anything else is a bug and is printed.
 */

import type { ProfileSetting } from '../src/catalog/profiles.ts'
import { type ClientWire, clientWireNames } from '../src/catalog/wire-names.ts'
import { GatewayError } from '../src/errors.ts'
import { createRandom } from '../src/store/seeded-random.ts'
import { fullBodies } from '../test/translation/support/bodies.ts'
import { decode, encode } from '../test/translation/support/exchange.ts'

export type FuzzCount = { inputs: number; encoded: number; refused: number; faults: string[] }

const profiles: ProfileSetting[] = [
  {},
  { operatorInPlace: 'first_only', stringOnly: true, toolImages: 'native', toolIdStyle: 'alnum9', shape: 'none' },
  {
    reasoning: { style: 'budget', levels: ['low', 'high'], canDisable: false },
    replayThought: { when: 'all', required: true },
    toolIdStyle: 'fn_index',
    toolChoice: new Set(['auto'] as const),
    images: false,
    shape: 'json',
  },
  {
    reasoning: { style: 'adaptive', levels: [], canDisable: true },
    toolIdStyle: 'len40',
    files: false,
    accepts: new Set(['allowed_tools', 'strict', 'top_k', 'verbosity', 'safety_identifier', 'prompt_cache_key']),
    drops: new Set(['temperature', 'stop', 'stop_sequences', 'parallel_tool_calls']),
    autoCache: 'always',
  },
]

export function fuzzRequests(inputs: number, seed: number): FuzzCount {
  const random = createRandom(seed)
  const count: FuzzCount = { inputs: 0, encoded: 0, refused: 0, faults: [] }
  while (count.inputs < inputs) {
    const from = pick(clientWireNames, random)
    const body = mutate(from, random)
    count.inputs++
    const fault = tryOne(from, body, random, count)
    if (fault && count.faults.length < 20) count.faults.push(`${from}: ${fault}\n${body}`)
  }
  return count
}

function tryOne(from: ClientWire, body: string, random: () => number, count: FuzzCount): string | undefined {
  const profile = random() < 0.5 ? {} : pick(profiles, random)
  const to = pick(
    clientWireNames.filter((wire) => wire !== from),
    random,
  )
  const unseal = () => ({ kind: 'signature', data: 'sig' }) as const
  try {
    const request = decode(from, body, { cacheKey: 'k', unseal })
    const encoded = encode(to, request, { profile })
    JSON.parse(encoded.body.toString())
    count.encoded++
  } catch (error) {
    if (!(error instanceof GatewayError)) return `${to}: ${error instanceof Error ? error.stack : String(error)}`
    if (error.status !== 400) return `${to}: status ${error.status}`
    count.refused++
  }
  return undefined
}

/** Makes one to four random changes, mostly one, in the full body of a wire. @returns JSON */
function mutate(wire: ClientWire, random: () => number): string {
  const body = structuredClone(fullBodies[wire])
  // An invalid top-level field hides the others, so half of the bodies have only the required fields and two more.
  if (random() < 0.5) {
    const optional = Object.keys(body).filter((key) => !['model', 'max_tokens', 'messages', 'input'].includes(key))
    const kept = new Set([pick(optional, random), pick(optional, random)])
    for (const key of optional) if (!kept.has(key)) delete body[key]
  }
  const times = 1 + Math.floor(random() * random() * 4)
  for (let i = 0; i < times; i++) mutateOne(body, random)
  let text = JSON.stringify(body)
  if (random() < 0.02) text = text.slice(0, Math.floor(random() * text.length))
  if (random() < 0.05) text = text.replace(/:(\d+)/, ':1e999')
  return text
}

type Slot = { holder: Record<string, unknown> | unknown[]; key: string | number }

function mutateOne(body: Record<string, unknown>, random: () => number) {
  const slots: Slot[] = []
  const waiting: (Record<string, unknown> | unknown[])[] = [body]
  while (waiting.length > 0) {
    const holder = waiting.pop()!
    for (const key of Array.isArray(holder) ? holder.keys() : Object.keys(holder)) {
      slots.push({ holder, key })
      const value = (holder as Record<string | number, unknown>)[key]
      if (typeof value === 'object' && value !== null) waiting.push(value as unknown[])
    }
  }
  const slot = pick(slots, random)
  const holder = slot.holder as Record<string | number, unknown>
  const value = holder[slot.key]
  switch (Math.floor(random() * 9)) {
    case 0:
      if (Array.isArray(slot.holder)) slot.holder.splice(Number(slot.key), 1)
      else delete holder[slot.key]
      return
    case 1:
      if (Array.isArray(slot.holder)) slot.holder.push(structuredClone(value))
      else holder[`${String(slot.key)}_`] = structuredClone(value)
      return
    case 2:
      holder[slot.key] = nest(value, 1 + Math.floor(random() * 40))
      return
    case 3: {
      const other = pick(slots, random)
      holder[slot.key] = structuredClone((other.holder as Record<string | number, unknown>)[other.key])
      return
    }
    default:
      holder[slot.key] = structuredClone(pick(oddValues, random))
  }
}

function nest(value: unknown, depth: number): unknown {
  let nested = value
  for (let i = 0; i < depth; i++) nested = i % 2 === 0 ? [nested] : { type: nested }
  return nested
}

const oddValues: unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e300,
  2 ** 53,
  '',
  ' ',
  'x',
  'auto',
  'user',
  'assistant',
  'system',
  'tool',
  'function',
  'none',
  '\u0000kept:0',
  '\ud800',
  '__proto__',
  'constructor',
  'toString',
  'data:,',
  'data:image/png;base64,%%%',
  'https://images.example/x.png',
  'n'.repeat(300),
  [],
  {},
  [null],
  [[]],
  [{}],
  [''],
  { toString: 1, valueOf: 2 },
  { type: 'text', text: '' },
  { type: 'text', text: ' ' },
  { id: 'x' },
  { type: { toString: null } },
  JSON.parse('{"__proto__":{"type":"text","text":"x"}}'),
  { type: 'object', properties: JSON.parse('{"__proto__":{}}'), anyOf: [{ properties: { a: {} } }, null, 3] },
]

function pick<T>(list: readonly T[], random: () => number): T {
  return list[Math.floor(random() * list.length)]!
}

if (process.argv[1] === import.meta.filename) {
  const count = fuzzRequests(Number(process.argv[2] ?? 20_000), Number(process.argv[3] ?? 1))
  for (const fault of count.faults) console.error(`${fault}\n`)
  console.log(
    `${count.inputs} inputs: ${count.encoded} encoded, ${count.refused} refused, ${count.faults.length} faults`,
  )
  process.exitCode = count.faults.length > 0 ? 1 : 0
}

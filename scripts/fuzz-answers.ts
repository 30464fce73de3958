/*
 * Damages upstream streams, and translates them with every decoder and every encoder. Damage is: flipped bytes,
 * truncation, frames that are dropped, doubled or swapped, and values of another type. Nothing may throw or hang. The
 * stream to a client must obey the grammar of its wire, and add up to the whole answer.
 *
 *     node bin/node.mjs scripts/fuzz-answers.ts 200000 [seed]
 */
import assert from 'node:assert/strict'
import { clientWireNames } from '../src/catalog/wire-names.ts'
import { accumulate } from '../test/translation/clients.ts'
import { pump, pumpJson, wires } from '../test/translation/pump.ts'
import { jsonSeeds, streamSeeds } from '../test/translation/seeds.ts'

const otherFrames = [
  ': comment',
  'data:',
  'data: null',
  'data: [DONE]',
  'data: {}',
  'event: error\ndata: {"message":1}',
  'data: []',
  'retry: 5',
]
const otherValues = [
  'null',
  '0',
  '-1',
  '1.5',
  '1e99',
  '""',
  '"x"',
  '[]',
  '{}',
  'true',
  '[null]',
  '{"a":1}',
  '"stop"',
  '"__proto__"',
  '"error"',
  '"\\ud83d"',
]

const runs = Number(process.argv[2] ?? 10_000)
let state = Number(process.argv[3] ?? 1) >>> 0
const counts = { answers: 0, faults: 0 }
let slowestMs = 0

for (let run = 0; run < runs; run++) {
  const before = state
  const upstream = clientWireNames[below(3)]!
  const client = clientWireNames[below(3)]!
  const isJson = below(8) === 0
  const seeds = isJson ? jsonSeeds[upstream] : streamSeeds[upstream]
  let script = seeds[below(seeds.length)]!
  for (let i = below(4); i >= 0; i--) script = damage(script)
  const options = {
    showsReasoning: below(2) === 0,
    ...(below(4) === 0 && { stops: ['lo', 'Hel', 'a b'], localStops: ['lo', 'a b'] }),
    ...(below(4) === 0 && {
      profile: { thinkTags: { open: '<think>', close: '</think>', implicitOpen: below(2) === 0 } },
    }),
    ...(below(4) === 0 && { seal: () => 'sealed' }),
  }
  const startedMs = performance.now()
  try {
    const end = below(4) === 0 ? 'reset' : 'clean'
    const told = isJson
      ? pumpJson(client, upstream, script, options)
      : pump(client, upstream, script, options, { cut: below(2) === 0 ? 'whole' : [below(200), below(200)], end })
    const violations = wires[client].check(told.text)
    if (violations.length > 0) throw new Error(violations.join('; '))
    if (told.outcome === 'none') throw new Error('the answer has no end')
    if ('fault' in told.outcome) counts.faults++
    else {
      assert.deepEqual(accumulate(client, told.text), JSON.parse(told.json!), 'stream and whole answer differ')
      counts.answers++
    }
  } catch (error) {
    console.log(`seed ${before}: ${upstream} to ${client}: ${error instanceof Error ? error.stack : error}\n${script}`)
    process.exitCode = 1
    break
  }
  slowestMs = Math.max(slowestMs, performance.now() - startedMs)
}
console.log(`${counts.answers} answers, ${counts.faults} faults, slowest ${slowestMs.toFixed(0)} ms`)

function damage(script: string): string {
  const frames = script.split('\n\n')
  const at = below(frames.length)
  switch (below(9)) {
    case 0: {
      const bytes = Buffer.from(script)
      for (let i = 0; i <= below(3); i++) bytes[below(bytes.length)]! ^= 1 << below(8)
      return bytes.toString('latin1')
    }
    case 1:
      return frames.toSpliced(at, 1).join('\n\n')
    case 2:
      return frames.toSpliced(at, 0, frames[at]!).join('\n\n')
    case 3: {
      const other = below(frames.length)
      return frames.with(at, frames[other]!).with(other, frames[at]!).join('\n\n')
    }
    case 4:
      return script.slice(0, below(script.length))
    case 5:
      return frames.toSpliced(at, 0, otherFrames[below(otherFrames.length)]!).join('\n\n')
    default:
      return retype(script)
  }
}

/** Replaces a value with one of another type. */
function retype(script: string): string {
  const places = [...script.matchAll(/":\s*("(?:[^"\\]|\\.)*"|-?[0-9.]+|null|true|false|\{\}|\[\])/g)]
  const place = places[below(places.length)]
  if (!place) return script
  const start = place.index + place[0].length - place[1]!.length
  return script.slice(0, start) + otherValues[below(otherValues.length)] + script.slice(start + place[1]!.length)
}

/** Returns a random integer below a limit, from a seeded xorshift generator. */
function below(limit: number): number {
  state ^= state << 13
  state ^= state >>> 17
  state ^= state << 5
  state >>>= 0
  return limit === 0 ? 0 : state % limit
}

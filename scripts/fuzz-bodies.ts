/**
 * Damages the bytes of clients' bodies: flipped bits, removed and doubled slices, other tokens. Each body goes through
 * the byte scanner and the field checks, and becomes an upstream's body, native or translated:
 *
 *     node bin/node.mjs scripts/fuzz-bodies.ts [inputs] [seed]
 *
 * The result must be a JSON body, or an intended 400 (ruling R9). Anything else is a bug.
 */
import type { Model } from '../src/catalog/model.ts'
import { type ClientWire, clientWireNames } from '../src/catalog/wire-names.ts'
import { GatewayError } from '../src/errors.ts'
import { checkFields, readConversationKey, readModelId } from '../src/wires/requests/checks.ts'
import { ClientBody } from '../src/wires/requests/client-body.ts'
import { wires } from '../src/wires/wires.ts'
import { modelOf } from '../test/translation/page.ts'
import { fullBodies } from '../test/translation/support/bodies.ts'

const models = Object.fromEntries(clientWireNames.map((wire) => [wire, modelOf(wire, undefined)])) as Record<
  ClientWire,
  Model
>
const seeds = clientWireNames.map((wire) => ({ wire, bytes: Buffer.from(JSON.stringify(fullBodies[wire])) }))

/** Pieces of JSON to insert, valid and invalid. */
const tokens = [
  ...'{}[]",:\\ \0\x7f',
  'null',
  'true',
  '-',
  '0',
  '1e999',
  '-1',
  '""',
  '[]',
  '{}',
  '\\u0000',
  '\\ud800',
  '"\\ud83d"',
  '"__proto__":{},',
  '"type":"text",',
  '"model":"x",',
  '\ufeff',
  '\xff',
  '[['.repeat(50),
]

/**
 * Takes a body through the gateway to a native model and to translated ones.
 * @throws any error that is not an intended refusal
 */
export function walkBody(wire: ClientWire, bytes: Buffer): 'sent' | 'refused' {
  let outcome: 'sent' | 'refused' = 'refused'
  for (const to of clientWireNames) {
    try {
      const body = new ClientBody(bytes, wires[wire].client.keptKeys)
      readModelId(body)
      const cacheKey = readConversationKey(wires[wire].client, body, () => undefined)
      checkFields(wires[wire].client, body)
      const sent =
        to === wire
          ? wires[wire].native.adaptRequest(body, models[to], { scopedKey: cacheKey, isOurSeal: () => false }).body
          : wires[to].model.encodeRequest(
              wires[wire].client.decodeRequest(body, { cacheKey, unseal: () => undefined }),
              models[to],
            ).body
      JSON.parse(sent.toString())
      outcome = 'sent'
    } catch (error) {
      if (!(error instanceof GatewayError) || error.status !== 400) throw error
    }
  }
  return outcome
}

if (process.argv[1] === import.meta.filename) {
  const inputs = Number(process.argv[2] ?? 20_000)
  let state = Number(process.argv[3] ?? 1) >>> 0 || 1
  const counts = { sent: 0, refused: 0 }
  let slowestMs = 0
  for (let run = 0; run < inputs; run++) {
    const { wire, bytes } = seeds[below(seeds.length)]!
    let damaged: Buffer = bytes
    for (let i = below(4); i >= 0; i--) damaged = damage(damaged)
    const startedMs = performance.now()
    try {
      counts[walkBody(wire, damaged)]++
    } catch (error) {
      console.error(`${wire}: ${error instanceof Error ? error.stack : String(error)}\n${damaged.toString('base64')}`)
      process.exitCode = 1
      break
    }
    slowestMs = Math.max(slowestMs, performance.now() - startedMs)
  }
  console.log(`${counts.sent} sent on, ${counts.refused} refused, slowest ${slowestMs.toFixed(0)} ms`)

  function damage(before: Buffer): Buffer {
    const at = below(before.length)
    const end = Math.min(before.length, at + 1 + below(40))
    switch (below(6)) {
      case 0: {
        const flipped = Buffer.from(before)
        for (let i = below(3); i >= 0; i--) flipped[below(flipped.length)]! ^= 1 << below(8)
        return flipped
      }
      case 1:
        return Buffer.concat([before.subarray(0, at), before.subarray(end)])
      case 2:
        return Buffer.concat([before.subarray(0, end), before.subarray(at)])
      case 3:
        return below(8) === 0 ? before.subarray(0, at) : retype(before)
      case 4:
        return retype(before)
      default: {
        const token = Buffer.from(tokens[below(tokens.length)]!, 'latin1')
        return Buffer.concat([before.subarray(0, at), token, before.subarray(at)])
      }
    }
  }

  /** Replaces a string or a number with another value, so that many bodies stay valid JSON. */
  function retype(before: Buffer): Buffer {
    const text = before.toString('latin1')
    const places = [...text.matchAll(/":("(?:[^"\\]|\\.)*"|-?[0-9.]+|null|true|false|\{\}|\[\])/g)]
    const place = places[below(places.length)]
    if (!place) return before
    const start = place.index + 2
    const value = ['null', '0', '-1', '1e999', '""', '"x"', '[]', '{}', 'true', '[null]', '{"type":"text"}'][below(11)]!
    return Buffer.from(text.slice(0, start) + value + text.slice(start + place[1]!.length), 'latin1')
  }

  /** Returns a random integer below a limit, from a seeded xorshift generator. */
  function below(limit: number): number {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return limit === 0 ? 0 : state % limit
  }
}

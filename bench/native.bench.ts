import type { WireName } from '../src/catalog/model.ts'
import { resolveProfile } from '../src/catalog/profiles.ts'
import { wires } from '../src/wires/wires.ts'
import { streamEvents } from './answers.ts'

/*
 * What an event of a same-wire stream costs in the relay alone, one and eight events a piece, the estimate of what was
 * produced included. `node bin/node.mjs bench/native.bench.ts`
 */

const streamsPerRound = 40

for (const wire of ['messages', 'chat', 'responses'] as const) {
  const { begin, deltas, end } = streamEvents(wire)
  for (const perPiece of [1, 8]) {
    const pieces = Array.from({ length: deltas.length / perPiece }, (_, i) =>
      deltas.slice(i * perPiece, (i + 1) * perPiece).join(''),
    )
    measure(`${wire}, ${perPiece} a piece`, wire, [begin, ...pieces, end], deltas.length)
  }
}

/** The best and the middle of several rounds: the machine's other work only ever adds. */
function measure(name: string, wire: WireName, texts: readonly string[], events: number) {
  const pieces = texts.map((text) => Buffer.from(text))
  const model = {
    id: 'm',
    entryId: 'm',
    aliases: [],
    wire,
    routes: [],
    upstreamModel: 'upstream-model',
    contextWindow: undefined,
    outputTokensMax: 8192,
    prices: { inputNanos: 3n, cacheReadNanos: 3n, cacheWriteNanos: 3n, cacheWrite1hNanos: 3n, outputNanos: 15n },
    priceVersion: 'v1',
    profile: resolveProfile(wire),
    allowedFields: new Set<string>(),
    hostedTools: 'pass' as const,
    remoteMedia: 'pass' as const,
    storedFiles: 'pass' as const,
  }
  const rounds: number[] = []
  let length = 0
  for (let round = 0; round < 60; round++) {
    const start = process.hrtime.bigint()
    for (let i = 0; i < streamsPerRound; i++) {
      const relay = wires[wire].native.openStream({ requestId: 'req_1', model, createdSeconds: 1 })
      for (const piece of pieces) length += relay.push(piece).length
      length += relay.estimateOutput()
    }
    rounds.push(Number(process.hrtime.bigint() - start) / streamsPerRound / events)
  }
  rounds.sort((a, b) => a - b)
  const [best, middle] = [rounds[0]!, rounds[30]!].map((ns) => (ns / 1_000).toFixed(3))
  console.log(`${name.padEnd(24)} ${best} µs an event, ${middle} in the middle${length === 0 ? ' (nothing)' : ''}`)
}

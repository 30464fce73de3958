import { type ClientWire, clientWireNames } from '../src/catalog/wire-names.ts'
import type { Exchange } from '../src/gateway/exchange.ts'
import { streamEvents, type VendorName, vendorChunks, wholeBody } from './answers.ts'
import { openExchange } from './exchange.ts'
import { formatCost, measureCost } from './micro.ts'
import { workloads } from './workloads.ts'

/*
 * Measures the nine pairs by themselves: a request, a whole answer, and an event of a stream. An event includes reading
 * its bytes and estimating its tokens. `node bin/node.mjs bench/wires.bench.ts [part of a name]`
 */

const part = process.argv[2] ?? ''
const zero = { inputTokens: 20, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWrite1hTokens: 0 }
const usage = { ...zero, outputTokens: 400, reasoningTokens: 0, estimated: false }

for (const wire of clientWireNames)
  for (const modelWire of clientWireNames) {
    const pair = wire === modelWire ? wire : `${wire} → ${modelWire}`
    for (const { name, body } of bodiesOf(wire)) {
      const bytes = Buffer.from(JSON.stringify({ model: 'm', ...body }))
      show(
        `request, ${name}, ${pair}`,
        () => openExchange(bytes, wire, modelWire).inputTokensEstimate,
        bytes.length,
        'byte',
      )
    }
    const exchange = openExchange(
      Buffer.from(JSON.stringify({ model: 'm', ...bodiesOf(wire)[0]!.body })),
      wire,
      modelWire,
    )
    const whole = Buffer.from(wholeBody(modelWire, 'long'))
    show(`answer, 400 tokens, ${pair}`, () => readWhole(exchange, whole), whole.length, 'byte')
    const vendors = pair === 'chat' ? (Object.keys(vendorChunks) as VendorName[]) : []
    for (const [perPiece, vendor] of [1, 8].flatMap((count) =>
      [undefined, ...vendors].map((name) => [count, name] as const),
    )) {
      const { begin, deltas, end } = streamEvents(modelWire, undefined, vendor)
      const pieces = [begin]
      for (let i = 0; i < deltas.length; i += perPiece) pieces.push(deltas.slice(i, i + perPiece).join(''))
      const buffers = [...pieces, end].map((piece) => Buffer.from(piece))
      show(
        `stream, ${perPiece} a piece, ${pair}${vendor ? `, chunks of ${vendor}` : ''}`,
        () => stream(exchange, buffers),
        deltas.length,
        'event',
      )
    }
  }

function show(name: string, run: () => number, count: number, unit: string): void {
  if (name.includes(part)) console.log(formatCost(name, measureCost(run), { count, unit }))
}

function bodiesOf(wire: ClientWire) {
  const own = workloads.filter((row) => row.wire === wire && row.modelWire === wire && row.connections === 32)
  return ['1 KB', '60 KB'].map((name) => ({ name, body: own.find((row) => row.name.startsWith(name))!.bodies[0]! }))
}

function readWhole(exchange: Exchange, bytes: Buffer): number {
  const answer = exchange.readWhole(bytes)
  if (answer.state !== 'finished') throw new Error(`the answer is ${answer.state}`)
  return answer.encode(usage).length
}

function stream(exchange: Exchange, pieces: readonly Buffer[]): number {
  const relay = exchange.openStream()
  let length = 0
  for (const piece of pieces) length += relay.push(piece).length
  return length + relay.finish(usage).length + relay.estimateOutput()
}

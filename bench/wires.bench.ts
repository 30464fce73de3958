import type { Model, WireName } from '../src/catalog/model.ts'
import { wireNames } from '../src/catalog/model.ts'
import { resolveProfile } from '../src/catalog/profiles.ts'
import type { Call } from '../src/gateway/call.ts'
import type { Asked, Exchange } from '../src/gateway/exchange.ts'
import type { Gateway } from '../src/gateway/gateway.ts'
import { exchangeNatively } from '../src/gateway/native.ts'
import { translate } from '../src/gateway/translate.ts'
import { ClientBody } from '../src/wires/requests/client-body.ts'
import { streamEvents, wholeBody } from './answers.ts'
import { formatCost, measureCost } from './micro.ts'
import { workloads } from './workloads.ts'

/*
 * What the nine pairs cost by themselves: a request and a whole answer on their way through, and an event of a stream, with
 * the reading of its bytes and the estimate of what was produced. `node bin/node.mjs bench/wires.bench.ts [part of a name]`
 */

const part = process.argv[2] ?? ''
const gateway = {
  nowMs: () => 1_795_000_000_000,
  sealer: { seal: () => '', unseal: () => undefined, isOurs: () => false },
} as unknown as Pick<Gateway, 'sealer' | 'nowMs'>
const zero = { inputTokens: 20, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWrite1hTokens: 0 }
const usage = { ...zero, outputTokens: 400, reasoningTokens: 0, estimated: false }

for (const wire of wireNames)
  for (const modelWire of wireNames) {
    const pair = wire === modelWire ? wire : `${wire} → ${modelWire}`
    for (const { name, body } of bodiesOf(wire)) {
      const bytes = Buffer.from(JSON.stringify({ model: 'm', ...body }))
      show(`request, ${name}, ${pair}`, () => open(bytes, wire, modelWire).inputTokensEstimate, bytes.length, 'byte')
    }
    const exchange = open(Buffer.from(JSON.stringify({ model: 'm', ...bodiesOf(wire)[0]!.body })), wire, modelWire)
    const whole = Buffer.from(wholeBody(modelWire, 'long'))
    show(`answer, 400 tokens, ${pair}`, () => readWhole(exchange, whole), whole.length, 'byte')
    for (const perPiece of [1, 8]) {
      const { begin, deltas, end } = streamEvents(modelWire)
      const pieces = [begin]
      for (let i = 0; i < deltas.length; i += perPiece) pieces.push(deltas.slice(i, i + perPiece).join(''))
      const buffers = [...pieces, end].map((piece) => Buffer.from(piece))
      show(`stream, ${perPiece} a piece, ${pair}`, () => stream(exchange, buffers), deltas.length, 'event')
    }
  }

function show(name: string, run: () => number, count: number, unit: string): void {
  if (name.includes(part)) console.log(formatCost(name, measureCost(run), { count, unit }))
}

function bodiesOf(wire: WireName) {
  const own = workloads.filter((row) => row.wire === wire && row.modelWire === wire && row.connections === 32)
  return ['1 KB', '60 KB'].map((name) => ({ name, body: own.find((row) => row.name.startsWith(name))!.body }))
}

function open(bytes: Buffer, wire: WireName, modelWire: WireName): Exchange {
  const call = { requestId: 'req_1', wire, header: () => undefined } as unknown as Call
  const model = modelOf(modelWire)
  const asked: Asked = { gateway, call, accountId: 'acc_1', model, body: new ClientBody(bytes), scopedKey: undefined }
  return wire === modelWire ? exchangeNatively(asked) : translate(asked)
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

function modelOf(wire: WireName): Model {
  return {
    ...{ id: 'm', entryId: 'm', aliases: [], wire, routes: [], upstreamModel: 'upstream-model' },
    ...{ contextWindow: undefined, outputTokensMax: 8192, priceVersion: 'v1', allowedFields: new Set<string>() },
    prices: { inputNanos: 3n, cacheReadNanos: 3n, cacheWriteNanos: 3n, cacheWrite1hNanos: 3n, outputNanos: 15n },
    profile: resolveProfile(wire),
    ...{ hostedTools: 'pass', remoteMedia: 'pass', storedFiles: 'pass' },
  }
}

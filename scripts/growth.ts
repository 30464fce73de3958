/*
 * Searches work that grows faster than its input, which would delay all clients (B25, E3). If one part of a message is
 * four times as large, it must not take far more than four times as long. Every list, object, text and run of frames of
 * each wire is enlarged alone, on all nine pairs. Messages are JSON or streams, in large or small pieces.
 *
 *     node bin/node.mjs scripts/growth.ts [part of a name]
 *
 * A finding is measured again, at four and sixteen times the size. If it is confirmed, the exit code is 1.
 */
import { openExchange } from '../bench/exchange.ts'
import { type ClientWire, clientWireNames } from '../src/catalog/wire-names.ts'
import { GatewayError } from '../src/errors.ts'
import type { Exchange } from '../src/gateway/exchange.ts'
import { decodeRefusal } from '../src/wires/answers/faults.ts'
import { jsonSeeds, streamSeeds } from '../test/translation/seeds.ts'
import { fullBodies } from '../test/translation/support/bodies.ts'
import { smallest } from '../test/translation/support/exchange.ts'
import { type Growth, growthsOf, growthsOfStream } from './growth/grow.ts'

/** The size of the part that is enlarged, in bytes. */
const bytes = 30_000
/**
 * The largest ratio of times for four times the input. Quadratic work has 16; linear work up to 6 if memory is short.
 */
const ratioMax = 8
/** Shorter times are ignored, because they can be those of the garbage collector. */
const noticedMs = 5
/** The sizes of the pieces of a model's answer, in bytes: for a stream, and for an answer that is folded. */
const pieceBytes = { stream: 500, fold: 16_384 }

type Way = { name: string; growths: Iterable<Growth>; take: (text: string) => void }
type Found = { name: string; kilobytes: number[]; ms: number[] }

const part = process.argv[2] ?? ''
const usage = {
  ...{ inputTokens: 20, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWrite1hTokens: 0 },
  ...{ outputTokens: 400, reasoningTokens: 0, estimated: true },
}
/** An error with the members of all wires. */
const refusal = { type: 'error', error: { type: 'bad', code: 'c', message: 'No.', param: 'p' }, message: 'No.' }
const found: Found[] = []
let shapes = 0

for (const client of clientWireNames)
  for (const model of clientWireNames) {
    for (const way of waysOf(client, model)) tryAll(way)
    console.log(`${client} and ${model}: ${shapes} shapes so far, ${found.length} of them grow too fast`)
  }
for (const { name, kilobytes, ms } of found)
  console.log(`${name}: ${kilobytes.map((size, i) => `${size} KB ${ms[i]!.toFixed(1)} ms`).join(', ')}`)
if (found.length > 0 || shapes === 0) process.exitCode = 1

function* waysOf(client: ClientWire, model: ClientWire): Iterable<Way> {
  const pair = client === model ? client : `${client} → ${model}`
  const ask = (stream: boolean) =>
    openExchange(Buffer.from(JSON.stringify({ ...smallest[client], stream })), client, model)
  yield {
    name: `request, ${pair}`,
    growths: growthsOf(fullBodies[client]),
    take: (text) => takeRequest(openExchange(Buffer.from(text), client, model)),
  }
  const [whole, streamed] = [ask(false), ask(true)]
  yield { name: `refusal, ${pair}`, growths: growthsOf(refusal), take: (text) => decodeRefusal(400, text) }
  for (const [at, seed] of jsonSeeds[model].entries()) {
    const growths = growthsOf(JSON.parse(seed))
    yield { name: `answer ${at}, ${pair}`, growths, take: (text) => takeWhole(whole, text) }
  }
  for (const [at, seed] of streamSeeds[model].entries()) {
    const growths = [...growthsOfStream(model, seed)]
    yield { name: `stream ${at}, ${pair}`, growths, take: (text) => takeStream(streamed, text) }
    yield { name: `fold ${at}, ${pair}`, growths, take: (text) => fold(whole, text) }
  }
}

function tryAll({ name, growths, take }: Way): void {
  if (!name.includes(part)) return
  for (const { where, grow } of growths) {
    shapes++
    const [small, large] = [grow(bytes), grow(4 * bytes)]
    if (!isTooSlow(take, small, large, 1) || !isTooSlow(take, small, large, 4)) continue
    const most = grow(16 * bytes)
    if (!isTooSlow(take, large, most, 3)) continue
    const texts = [small, large, most]
    const kilobytes = texts.map((text) => Math.round(text.length / 1_000))
    found.push({ name: `${name}: ${where}`, kilobytes, ms: texts.map((text) => measureMs(take, text, 2)) })
  }
}

function isTooSlow(take: Way['take'], small: string, large: string, times: number): boolean {
  const largeMs = measureMs(take, large, times)
  return largeMs > noticedMs && largeMs > ratioMax * measureMs(take, small, times + 1)
}

/** Returns the shortest of several times, in ms. */
function measureMs(take: Way['take'], text: string, times: number): number {
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < times; i++) {
    const startedMs = performance.now()
    try {
      take(text)
    } catch (error) {
      // An error response is a result too, and its time counts.
      if (!(error instanceof GatewayError)) throw error
    }
    best = Math.min(best, performance.now() - startedMs)
  }
  return best
}

function takeRequest(exchange: Exchange): void {
  if (exchange.inputTokensEstimate === 0) return
  exchange.lastSealed()
  exchange.unseal()
}

function takeWhole(exchange: Exchange, text: string): void {
  const answer = exchange.readWhole(Buffer.from(text))
  if (answer.state === 'failed') return
  answer.estimateOutput()
  answer.encode(usage)
}

function takeStream(exchange: Exchange, text: string): void {
  const relay = exchange.openStream()
  for (const piece of cut(text, pieceBytes.stream)) if (!relay.isSpent) relay.push(piece)
  relay.end()
  relay.estimateOutput()
  if (relay.state === 'finished') relay.finish(usage)
}

function fold(exchange: Exchange, text: string): void {
  const folding = exchange.openFold!()
  for (const piece of cut(text, pieceBytes.fold)) folding.push(piece)
  folding.end()
  const answer = folding.whole()
  if (answer.state !== 'failed') answer.encode(usage)
}

function* cut(text: string, size: number): Iterable<Buffer> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

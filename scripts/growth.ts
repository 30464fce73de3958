/*
 * Looks for what takes longer than it is long: a request or an answer of which one part is four times as large and takes far
 * more than four times as long holds everybody up (B25, E3). Every list, object, text and run of frames of each wire is made
 * larger by itself, on the nine pairs, whole and as streams, in large pieces and in small ones.
 *
 *     node bin/node.mjs scripts/growth.ts [part of a name]
 *
 * What is found is measured again, at twice four times the size, before it is believed. It makes the exit code 1.
 */
import { openExchange } from '../bench/exchange.ts'
import { type WireName, wireNames } from '../src/catalog/model.ts'
import { GatewayError } from '../src/errors.ts'
import type { Exchange } from '../src/gateway/exchange.ts'
import { jsonSeeds, streamSeeds } from '../test/translation/seeds.ts'
import { fullBodies } from '../test/translation/support/bodies.ts'
import { type Grown, growBody, growStream } from './growth/grow.ts'

/** Of the part that grows; where it seems to grow too fast, sixteen times as much as well. */
const bytes = 30_000
/** A square takes sixteen times as long for four times as much, and what is linear sometimes six, when memory runs short. */
const ratioMax = 8
/** Less is not told apart from what the collector takes meanwhile. */
const noticedMs = 5
/** A model's answer comes in, in bytes: to be read as a stream, and to be put together. */
const pieceBytes = { stream: 500, fold: 16_384 }

type Way = { name: string; grow: (bytes: number) => Iterable<Grown>; take: (text: string) => void }
type Found = { name: string; kilobytes: number[]; ms: number[] }

const part = process.argv[2] ?? ''
const usage = {
  ...{ inputTokens: 20, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWrite1hTokens: 0 },
  ...{ outputTokens: 400, reasoningTokens: 0, estimated: true },
}
/** On every wire read for the same members. */
const refusal = { type: 'error', error: { type: 'bad', code: 'c', message: 'No.', param: 'p' }, message: 'No.' }
const found: Found[] = []
let shapes = 0

for (const client of wireNames)
  for (const model of wireNames) {
    for (const way of waysOf(client, model)) tryAll(way)
    console.log(`${client} and ${model}: ${shapes} shapes so far, ${found.length} of them grow too fast`)
  }
for (const { name, kilobytes, ms } of found)
  console.log(`${name}: ${kilobytes.map((size, i) => `${size} KB ${ms[i]!.toFixed(1)} ms`).join(', ')}`)
if (found.length > 0 || shapes === 0) process.exitCode = 1

function* waysOf(client: WireName, model: WireName): Iterable<Way> {
  const pair = client === model ? client : `${client} → ${model}`
  const ask = (stream: boolean) => openExchange(Buffer.from(JSON.stringify(asking(client, stream))), client, model)
  yield {
    name: `request, ${pair}`,
    grow: (size) => growBody(fullBodies[client], size),
    take: (text) => takeRequest(openExchange(Buffer.from(text), client, model)),
  }
  const asked = ask(false)
  yield {
    name: `refusal, ${pair}`,
    grow: (size) => growBody(refusal, size),
    take: (text) => asked.readRefusal(400, text),
  }
  for (const [at, seed] of jsonSeeds[model].entries()) {
    const exchange = ask(false)
    const grow = (size: number) => growBody(JSON.parse(seed), size)
    yield { name: `answer ${at}, ${pair}`, grow, take: (text) => takeWhole(exchange, text) }
  }
  for (const [at, seed] of streamSeeds[model].entries()) {
    const grow = (size: number) => growStream(model, seed, size)
    const [streamed, folded] = [ask(true), ask(false)]
    yield { name: `stream ${at}, ${pair}`, grow, take: (text) => takeStream(streamed, text) }
    if (folded.openFold) yield { name: `fold ${at}, ${pair}`, grow, take: (text) => fold(folded, text) }
  }
}

function asking(wire: WireName, stream: boolean): object {
  const turns = [{ role: 'user', content: 'Hi' }]
  return { model: 'm', stream, ...(wire === 'responses' ? { input: turns } : { messages: turns, max_tokens: 1_000 }) }
}

function tryAll({ name, grow, take }: Way): void {
  if (!name.includes(part)) return
  const larger = grow(4 * bytes)[Symbol.iterator]()
  const largest = grow(16 * bytes)[Symbol.iterator]()
  // A shape has its place in the order, whatever its size.
  for (const small of grow(bytes)) {
    shapes++
    const [large, most] = [larger.next().value as Grown, largest.next().value as Grown]
    if (!isTooSlow(take, small.text, large.text, 1)) continue
    if (!isTooSlow(take, small.text, large.text, 4) || !isTooSlow(take, large.text, most.text, 3)) continue
    const texts = [small, large, most].map(({ text }) => text)
    const kilobytes = texts.map((text) => Math.round(text.length / 1_000))
    found.push({ name: `${name}: ${small.where}`, kilobytes, ms: texts.map((text) => measureMs(take, text, 2)) })
  }
}

function isTooSlow(take: Way['take'], small: string, large: string, times: number): boolean {
  const largeMs = measureMs(take, large, times)
  return largeMs > noticedMs && largeMs > ratioMax * measureMs(take, small, times + 1)
}

/** The best of some. */
function measureMs(take: Way['take'], text: string, times: number): number {
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < times; i++) {
    const startedMs = performance.now()
    try {
      take(text)
    } catch (error) {
      // A refusal is an answer too, and takes what it takes.
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

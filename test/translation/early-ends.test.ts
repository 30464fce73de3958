import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import test, { after, before } from 'node:test'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { estimateTextTokens } from '../../src/inference/estimate.ts'
import { testModel } from '../support/gateway.ts'
import { untilRead } from '../support/peer.ts'
import { turn, until } from '../support/waiting.ts'
import type { Json } from './cases.ts'
import { accumulate } from './clients.ts'
import {
  checkStream,
  directions,
  json,
  paths,
  type ScriptedGateway,
  sse,
  startScriptedGateway,
  wires,
  wishes,
} from './support/scripted.ts'
import {
  added,
  blockDelta,
  blockStart,
  blockStop,
  completion,
  counts,
  created,
  done,
  events,
  itemDone,
  message,
  messageDelta,
  messageStart,
  messageStop,
  reason,
  summary,
  terminal,
  text,
  usage,
  wholeMessage,
} from './upstreams.ts'

/*
 * What an answer costs that ends for its client before it ends at the upstream (C12), in the figures in which B2 and B9
 * were found: 20,000 tokens of reasoning that nobody sees and some 100 of text, at 3 credits per million tokens of input,
 * 0.3 read from a cache and 15 of output. The table in decision 11 is made of what this file prints under `TRIWIRE_TELL`.
 */

let gateway: ScriptedGateway
before(async () => {
  const reasoning = { style: 'effort', levels: ['low', 'medium', 'high'], can_disable: true }
  const more = { upstream_model: 'hosted-model', max_output_tokens: 64_000 }
  const models = [
    testModel('plain-messages', 'messages', { ...more, profile: { reasoning: { ...reasoning, style: 'adaptive' } } }),
    testModel('plain-chat', 'chat', { ...more, profile: { reasoning, max_stops: 4 } }),
    testModel('plain-responses', 'responses', { ...more, profile: { reasoning } }),
  ]
  gateway = await startScriptedGateway({ models, config: { timeouts: { idle: '10m' } } })
})
after(() => gateway.close())

/** Some 100 tokens. */
const shown = 'The model has thought about this for a long time, and says it in few words. '.repeat(6)
const shownTokens = estimateTextTokens(shown)
const mark = '\n\n\n'
const reasoned = 20_000
const said = 100

type Input = { fresh: number; cached: number }

/** The figures of the whole answer, as each wire has them. */
const figures: Record<ClientWire, (input: Input) => Json> = {
  messages: ({ fresh, cached }) => ({
    ...{ input_tokens: fresh, cache_read_input_tokens: cached, cache_creation_input_tokens: 0 },
    output_tokens: reasoned + said,
  }),
  chat: ({ fresh, cached }) =>
    counts(fresh + cached, reasoned + said, {
      prompt_tokens_details: { cached_tokens: cached },
      completion_tokens_details: { reasoning_tokens: reasoned },
    }),
  responses: ({ fresh, cached }) => ({
    input_tokens: fresh + cached,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: reasoned + said,
    output_tokens_details: { reasoning_tokens: reasoned },
    total_tokens: fresh + cached + reasoned + said,
  }),
}

/** Announced reasoning of which nothing is told, and a message. */
const spoken = (words: string) => [
  added(0, { ...summary(0), summary: [] }),
  itemDone(0, summary(0)),
  ...wholeMessage(1, words).filter(({ type }) => type !== 'response.content_part.added'),
]

/** What comes while it reasons, when it has, and with its words. */
const reasons: Record<ClientWire, (input: Input) => string> = {
  messages: (input) =>
    messageStart({ ...figures.messages(input), output_tokens: 1 }) +
    blockStart(0, { type: 'thinking', thinking: '', signature: '' }),
  chat: () => text(''),
  responses: () => events(created, ...spoken('').slice(0, 1)),
}
const speaks: Record<ClientWire, (words: string) => string> = {
  messages: () =>
    blockDelta(0, { type: 'signature_delta', signature: 'c2lnbmVk' }) +
    blockStop(0) +
    blockStart(1, { type: 'text', text: '' }),
  chat: () => '',
  responses: (words) => events(...spoken(words).slice(1, 3)),
}
const says: Record<ClientWire, (words: string) => string> = {
  messages: (words) => blockDelta(1, { type: 'text_delta', text: words }),
  chat: text,
  responses: (words) => events(...spoken(words).slice(3, 4)),
}
const opening = (wire: ClientWire, input: Input, words: string) =>
  reasons[wire](input) + speaks[wire](words) + says[wire](words)

/** And what comes behind them. */
const ending: Record<ClientWire, (input: Input, words: string) => string> = {
  messages: (input) => blockStop(1) + messageDelta('end_turn', figures.messages(input)) + messageStop,
  chat: (input) => reason('stop') + usage(figures.chat(input)) + done,
  responses: (input, words) =>
    events(
      ...spoken(words).slice(4),
      terminal('completed', [summary(0), message(1, words)], { usage: figures.responses(input) }),
    ),
}

const wholes: Record<ClientWire, (input: Input, words: string) => string> = {
  messages: (input, words) =>
    JSON.stringify({
      ...{ id: 'msg_hosted', type: 'message', role: 'assistant', model: 'hosted-model', stop_reason: 'end_turn' },
      content: [{ type: 'text', text: words }],
      usage: figures.messages(input),
    }),
  chat: (input, words) => completion({ content: words }, 'stop', { usage: figures.chat(input) }),
  responses: (input, words) =>
    JSON.stringify(
      terminal('completed', [summary(0), message(1, words)], { usage: figures.responses(input) })['response'],
    ),
}

function bodyOf(client: ClientWire, wire: ClientWire, prompt: string, more: Json): Json {
  const model = `plain-${wire}`
  const turns = [{ role: 'user', content: prompt }]
  const wish = { ...wishes[client], ...(client === 'messages' && { max_tokens: 64_000 }) }
  return client === 'responses'
    ? { model, input: turns, ...wish, ...more }
    : { model, messages: turns, ...wish, ...more }
}

async function billOf(response: Response) {
  const id = response.headers.get('x-request-id')!
  await gateway.logOf(id)
  return gateway.store.findEntry(id)!
}

function tellRow(...cells: unknown[]): void {
  if (process.env['TRIWIRE_TELL']) console.log(`| ${cells.join(' | ')} |`)
}

const credits = (nanos: bigint) => (Number(nanos) / 1e9).toFixed(4)
const nanosOf = ({ fresh, cached }: Input) => BigInt(fresh * 3_000 + cached * 300 + (reasoned + said) * 15_000)

/** Reading on, or hung up. */
const isDecided = () => gateway.server.gateway.readers.count > 0

const stopFields: Partial<Record<ClientWire, string>> = { messages: 'stop_sequences', chat: 'stop' }
/** More than a chat model takes; the last one, of white space alone, is none that a messages model takes. */
const stops = ['1', '2', '3', '4', mark]

for (const client of wires) {
  for (const wire of wires) {
    const pair = `${client} client, ${wire} model`

    test(`B9 C12 a client that leaves pays for the whole answer if the usage figures arrive in time (${pair})`, async () => {
      const input = { fresh: 1_000, cached: 49_000 }
      gateway.play(sse(opening(wire, input, shown), 'hold'))
      const leaving = new AbortController()
      const response = await fetch(gateway.url + paths[client], {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.key}` },
        body: JSON.stringify(bodyOf(client, wire, 'word '.repeat(36_000), { stream: true })),
        signal: leaving.signal,
      })
      const reader = response.body!.getReader()
      for (let told = ''; !told.includes('few words. The'); ) told += Buffer.from((await reader.read()).value!)
      leaving.abort()
      const [asked] = gateway.asked
      await Promise.race([until(isDecided), asked!.left])
      asked!.response.end(ending[wire](input, shown))
      const { amountNanos, bill } = await billOf(response)
      const { inputTokens, cacheReadTokens, outputTokens } = bill!.usage
      tellRow('B9', pair, credits(amountNanos), `${inputTokens} fresh, ${cacheReadTokens} cached, ${outputTokens} out`)
      assert.deepEqual([bill!.outcome, bill!.usageSource, amountNanos], ['client_abort', 'final', nanosOf(input)])
    })
  }
}

for (const client of wires) {
  for (const wire of wires) {
    const pair = `${client} client, ${wire} model`

    test(`B9 C12 a client that leaves an endless answer pays for reasoning by the time that it took (${pair})`, async () => {
      const input = { fresh: 1_000, cached: 49_000 }
      let upstream!: ServerResponse
      gateway.play((response) => {
        upstream = response
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(reasons[wire](input))
      })
      const leaving = new AbortController()
      const asking = fetch(gateway.url + paths[client], {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.key}` },
        body: JSON.stringify(bodyOf(client, wire, 'word '.repeat(36_000), { stream: true })),
        signal: leaving.signal,
      })
      await until(() => upstream)
      await untilRead(upstream.socket!)
      // 100 tokens a second, of its reasoning and of its words.
      gateway.advance(200_000)
      upstream.write(speaks[wire](shown))
      const pieces = shown.match(/.{1,10}/gs)!
      for (const piece of pieces) {
        upstream.write(says[wire](piece))
        // What is written in one turn leaves at its end.
        await turn()
        await untilRead(upstream.socket!)
        gateway.advance((shownTokens * 10) / pieces.length)
      }
      const response = await asking
      leaving.abort()
      await until(isDecided)
      gateway.advance(10_000)
      const { amountNanos, bill } = await billOf(response)
      const { inputTokens, cacheReadTokens, outputTokens } = bill!.usage
      tellRow(
        'B9, figures never come',
        pair,
        credits(amountNanos),
        `${inputTokens} fresh, ${cacheReadTokens} cached, ${outputTokens} out`,
      )
      assert.deepEqual([bill!.outcome, bill!.usageSource], ['client_abort', 'estimated'])
      assert.ok(Math.abs(outputTokens / (reasoned + shownTokens) - 1) < 0.05, `${outputTokens}`)
      // Two wires tell the cached share at the end only: what is not told is billed as fresh.
      assert.equal(cacheReadTokens, wire === 'messages' ? 49_000 : 0)
    })
  }
}

for (const { client, wire } of directions.filter((pair) => stopFields[pair.client])) {
  for (const stream of [true, false]) {
    test(`B2 C12 a stop sequence that we enforce does not make the reasoning before it free (${client} client, ${wire} model, ${stream ? 'stream' : 'JSON'})`, async () => {
      const input = { fresh: 300, cached: 0 }
      const words = `${shown}${mark}and so on`
      if (stream) gateway.play(sse(opening(wire, input, words), 'hold'))
      else gateway.play(json(wholes[wire](input, words)))
      const asking = gateway.post(
        paths[client],
        bodyOf(client, wire, 'word '.repeat(300), { stream, [stopFields[client]!]: stops }),
      )
      if (stream) {
        await until(() => gateway.asked[0])
        const [asked] = gateway.asked
        await Promise.race([until(isDecided), asked!.left])
        asked!.response.end(ending[wire](input, words))
        await untilRead(asked!.response.socket!).catch(() => {})
      }
      const response = await asking
      const told = await response.text()
      if (stream) assert.deepEqual(checkStream[client](told), [])
      const answer = stream ? accumulate(client, told) : JSON.parse(told)
      assert.doesNotMatch(told, /and so on/)
      const { amountNanos, bill } = await billOf(response)
      const { outputTokens, reasoningTokens } = bill!.usage
      tellRow('B2', `${pair(client, wire)}, ${stream ? 'stream' : 'JSON'}`, credits(amountNanos), `${outputTokens} out`)
      assert.deepEqual([bill!.outcome, bill!.usageSource, amountNanos], ['ok', 'final', nanosOf(input)])
      // What the client is told is what was billed.
      if (client === 'chat') {
        assert.equal(answer.usage.completion_tokens, outputTokens)
        assert.equal(answer.usage.completion_tokens_details.reasoning_tokens, reasoningTokens)
      } else assert.equal(answer.usage.output_tokens, outputTokens)
    })
  }
}

function pair(client: ClientWire, wire: ClientWire): string {
  return `${client} client, ${wire} model`
}

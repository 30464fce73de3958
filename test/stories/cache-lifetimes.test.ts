import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { answers, frames, type Native, startNative } from '../support/native.ts'
import { stream, whole } from '../support/raw-upstream.ts'

/*
 * Money.md 1 a, ruling C1: tokens that are written into a cache for twelve hours, or for one, have a price of their own. The
 * kind is: the three wires of models, as JSON and as streams, for three clients, with both prices, one or none.
 */

let native: Native
before(async () => {
  native = await startNative()
})
after(() => native.close())

/** 1,000 tokens of input: 100 fresh, 900 written, of which 700 for the longer time; nothing else costs. */
const usages = {
  messages: {
    input_tokens: 100,
    cache_read_input_tokens: 0,
    cache_creation_input_tokens: 900,
    cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 700 },
    output_tokens: 3,
  },
  chat: {
    prompt_tokens: 1_000,
    completion_tokens: 3,
    total_tokens: 1_003,
    prompt_tokens_details: {
      cached_tokens: 0,
      cache_write_tokens: 900,
      cache_write_tokens_details: { ttl_30m_tokens: 200, ttl_12h_tokens: 700 },
    },
  },
  responses: {
    input_tokens: 1_000,
    output_tokens: 3,
    total_tokens: 1_003,
    output_tokens_details: { reasoning_tokens: 0 },
    input_tokens_details: {
      cached_tokens: 0,
      cache_write_tokens: 900,
      cache_write_tokens_details: { ttl_30m_tokens: 200, ttl_12h_tokens: 700 },
    },
  },
}

/** Credits per million tokens beside an input of 100 and writes of 125, and what the longer writes cost by them. */
const prices: [more: Record<string, string>, longCredits: bigint][] = [
  [{ cache_write_12h: '250' }, 250n],
  [{ cache_write_1h: '200' }, 200n],
  [{ cache_write_1h: '200', cache_write_12h: '250' }, 250n],
  [{ cache_write_1h: '300', cache_write_12h: '250' }, 300n],
  [{}, 125n],
]

for (const [more, longCredits] of prices) {
  test(`C1 writes that last are billed at their price: ${JSON.stringify(more)}`, async () => {
    const models = clientWireNames.map((wire) => ({
      ...{ id: `native-${wire}`, wire, upstream: 'sim', upstream_model: `up-${wire}`, max_output_tokens: 8192 },
      prices: { input: '100', cache_read: '0', cache_write: '125', output: '0', ...more },
      profile: { auto_cache: 'off' },
    }))
    native.gateway.reload({ catalog: { pinned: '2026-11-01', models } })
    for (const model of clientWireNames) {
      for (const client of clientWireNames) {
        for (const isStream of [false, true]) {
          const had = balance()
          const counted = (text: string) => {
            const at = text.indexOf('{')
            return at < 0
              ? text
              : `${text.slice(0, at)}${JSON.stringify(withUsage(JSON.parse(text.slice(at)), model))}\n\n`
          }
          native.upstream.play(
            isStream ? stream(frames[model].map(counted)) : whole({ ...answers[model], usage: usages[model] }),
          )
          const { id, status } = await native.ask(client, {
            model: `native-${model}`,
            stream: isStream,
            ...(client !== 'messages' && { prompt_cache_options: { ttl: '12h' } }),
          })
          assert.equal(status, 200)
          const { usage } = (await native.gateway.logOf(id)) as { usage: Record<string, number> }
          const name = `${client} client, ${model} model, ${isStream ? 'stream' : 'JSON'}`
          assert.deepEqual([usage['input'], usage['cache_write'], usage['cache_write_1h']], [100, 900, 700], name)
          // Credits per million tokens are thousands of nano-credits per token.
          assert.equal(had - balance(), (100n * 100n + 200n * 125n + 700n * longCredits) * 1_000n, name)
          const isSame = client === model && client !== 'messages'
          const sent = native.upstream.requests.at(-1)!.json()['prompt_cache_options']
          assert.deepEqual(sent, isSame ? { ttl: '12h' } : undefined, name)
        }
      }
    }
  })
}

type Holder = Record<string, unknown>

/** A frame's object with the figures in place of those it has. */
function withUsage(event: Holder, model: keyof typeof usages): Holder {
  const counted: Holder = 'usage' in event ? { ...event, usage: usages[model] } : { ...event }
  for (const name of ['message', 'response']) {
    const inner = counted[name] as Holder | undefined
    if (inner && 'usage' in inner) counted[name] = { ...inner, usage: usages[model] }
  }
  return counted
}

function balance(): bigint {
  return native.gateway.store.findAccount('tester').balanceNanos
}

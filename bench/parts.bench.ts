import { createHash } from 'node:crypto'
import { digestEntry } from '../src/accounts/chain.ts'
import { createKey, readKey } from '../src/accounts/keys.ts'
import { FrameCutter } from '../src/bytes/frame-cutter.ts'
import { KeptText } from '../src/bytes/memory.ts'
import { createSseReader } from '../src/bytes/sse.ts'
import { priceNanos } from '../src/catalog/model.ts'
import { newRequestId } from '../src/ids.ts'
import { scrub } from '../src/upstream/scrub.ts'
import { ClientBody } from '../src/wires/requests/client-body.ts'
import { readLikeness } from '../src/wires/requests/likeness.ts'
import { wires } from '../src/wires/wires.ts'
import { streamEvents } from './answers.ts'
import { prices } from './bill.ts'
import { formatCost, measureCost } from './micro.ts'

/*
 * Measures small parts of a request by themselves. Scans and estimates have files of their own. `node bin/node.mjs
 * bench/parts.bench.ts`
 */

const { begin, deltas, end } = streamEvents('chat')
const pieces = [begin, ...deltas, end].map((text) => Buffer.from(text))
const events = { count: deltas.length, unit: 'event' }
show('server-sent events to frames', () => count(pieces, createSseReader()), events)
show('the same, cut and not read', () => count(pieces, cutter()), events)

const key = createKey().key
show('check and digest of an API key', () => readKey(key).kind.length)
show('a request id', () => newRequestId().length)

const usage = {
  inputTokens: 60_000,
  cacheReadTokens: 55_000,
  cacheWriteTokens: 100,
  cacheWrite1hTokens: 0,
  outputTokens: 400,
  reasoningTokens: 100,
  estimated: false,
}
show('the price of an answer', () => Number(priceNanos(prices, usage)))

const entry = {
  ...{
    account_id: 'acc_0123456789ABCDEFGHIJ',
    seq: 12_345n,
    kind: 'debit',
    amount: 180_000n,
    balance_after: 9_999_999n,
  },
  ...{ reference: null, request_id: newRequestId(), key_id: 'key_0123456789ABCDEFGHIJ', client_wire: 'chat' },
  ...{
    model: 'claude-sonnet',
    model_wire: 'messages',
    upstream: 'anthropic',
    upstream_account: 'a',
    input_tokens: 60_000,
  },
  ...{ cache_read_tokens: 55_000, cache_write_tokens: 100, cache_write_1h_tokens: 0, output_tokens: 400 },
  ...{ reasoning_tokens: 100, priced_calls: 0, usage_source: 'reported', price_version: 'v1', outcome: 'completed' },
  ...{ created_ms: 1_795_000_000_000, posted_ms: 1_795_000_000_900 },
}
const before = digestEntry(entry, null)
show('the digest of an entry', () => digestEntry(entry, before).length)

const context = {
  ...{ modelId: 'catalog/model', upstreamModels: ['upstream-model-2026'], hidden: [], ownPaths: ['/v1/messages'] },
  ...{ isSent: () => true, generic: 'The model refused.' },
}
const refusals = {
  'a field': "messages.3.content.0.text: Input should be a valid string, got list. Please check 'upstream-model-2026'.",
  'an over-long prompt': 'prompt is too long: 212345 tokens > 200000 maximum',
  'a text that reveals the host':
    'Deployment gpt-4o-eu-west (org-Ab12Cd34Ef56) on 10.2.3.4:8080 failed: contact support@vendor.example',
}
for (const [what, text] of Object.entries(refusals))
  show(`scrub of a refusal: ${what}`, () => scrub(text, context).length)

const phrase = 'The quick brown fox jumps over the lazy dog, "quoted" now and then. '
const agentBody = Buffer.from(
  JSON.stringify({
    model: 'm',
    tools: Array.from({ length: 20 }, (_, at) => ({
      type: 'function',
      function: { name: `tool_${at}`, description: phrase.repeat(18), parameters: { type: 'object', properties: {} } },
    })),
    messages: [
      { role: 'system', content: phrase.repeat(280) },
      { role: 'user', content: phrase.repeat(100) },
      { role: 'assistant', content: phrase.repeat(60) },
      { role: 'user', content: phrase.repeat(60) },
    ],
  }),
)
const likeness = { count: agentBody.length, unit: 'byte' }
show(`keys for a request of ${Math.round(agentBody.length / 1_000)} KB without a conversation key`, readNames, likeness)
show('its members alone, as for a request with a key', () => new ClientBody(agentBody).member('tools')!.end, likeness)

function readNames(): number {
  const digest = createHash('sha256').update('secret of the gateway and its account')
  return readLikeness(wires.chat.client, new ClientBody(agentBody), digest, 15_000).opener.length
}

const words = 'The quick brown fox jumps over the lazy dog. '.repeat(1_600)
show('a text that is kept, word by word', () => keep(words, false), { count: words.length, unit: 'byte' })
show('the same, packed for a reader who stopped', () => keep(words, true), { count: words.length, unit: 'byte' })

function show(name: string, run: () => number, parts?: { count: number; unit: string }): void {
  console.log(formatCost(name, measureCost(run), parts))
}

function count(of: readonly Buffer[], reader: { push(bytes: Uint8Array): Iterable<unknown> }): number {
  let frames = 0
  for (const piece of of) for (const _ of reader.push(piece)) frames++
  return frames
}

function cutter() {
  const cut = new FrameCutter()
  return { push: (bytes: Uint8Array) => cut.push((bytes as Buffer).toString('latin1')) }
}

function keep(text: string, isPacked: boolean): number {
  const kept = new KeptText()
  for (let at = 0; at < text.length; at += 6) kept.add(text.slice(at, at + 6))
  if (isPacked) kept.compact()
  return kept.toString().length
}

import assert from 'node:assert/strict'
import test from 'node:test'
import type { Model } from '../../src/catalog/model.ts'
import type { Call } from '../../src/gateway/call.ts'
import { translate } from '../../src/gateway/exchange.ts'
import type { Gateway } from '../../src/gateway/gateway.ts'
import { estimateTextTokens } from '../../src/inference/estimate.ts'
import type { Usage } from '../../src/inference/usage.ts'
import { ClientBody } from '../../src/wires/requests/client-body.ts'
import { collect } from '../support/garbage.ts'
import { turn } from '../support/waiting.ts'
import { modelOf } from './page.ts'
import { openEvents, openStream, openWhole } from './pump.ts'
import { chatError, counts, delta, done, messageStart, reason, text, textBlock, usage } from './upstreams.ts'

/** What a translated answer tells the delivery that it hangs in: how far it is, what came, what was produced. */

const stops = { stops: ['END'], localStops: ['END'] }
const noUsage: Usage = {
  ...{ inputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWrite1hTokens: 0 },
  ...{ outputTokens: 0, reasoningTokens: 0, estimated: false },
}
const behind = text(' and much more that nobody asked for') + reason('stop') + usage(counts(90, 80)) + done

test('T15 C12 output after a stop of ours is not counted, and its usage report is used, in the same piece or a later one', () => {
  for (const pieces of [[text('one two END'), behind], [text('one two END') + behind]]) {
    const relay = openStream('messages', 'chat', stops)
    const whole = openWhole('messages', 'chat', stops)
    let told = ''
    for (const piece of pieces) {
      told += relay.push(Buffer.from(piece))
      whole.push(Buffer.from(piece))
    }
    const report = { inputTokens: 90, outputTokens: 80, models: ['hosted-model'] }
    assert.deepEqual([relay.state, relay.report], ['finished', report])
    assert.equal(relay.estimateOutput(), estimateTextTokens('one two END'))
    assert.doesNotMatch(told + relay.finish(noUsage), /two END|and much more/)
    const answer = whole.whole()
    assert.ok(answer.state === 'finished')
    assert.deepEqual([answer.report, answer.estimateOutput()], [report, estimateTextTokens('one two END')])
    assert.doesNotMatch(`${answer.encode(noUsage)}`, /two END|and much more/)
  }
})

test('T15 C12 an answer ended by a stop of ours is complete, whatever the stream does afterwards', () => {
  const failing = chatError('busy', { code: 429 })
  for (const rest of [[], [failing], [reason('stop') + failing], ['data: {\n\n']]) {
    for (const isOnePiece of [true, false]) {
      const relay = openStream('messages', 'chat', stops)
      const whole = openWhole('messages', 'chat', stops)
      const pieces = [text('one two END'), ...rest]
      let told = ''
      for (const piece of isOnePiece ? [pieces.join('')] : pieces) {
        told += relay.push(Buffer.from(piece))
        whole.push(Buffer.from(piece))
      }
      assert.deepEqual([relay.state, whole.state, relay.isSpent], ['stopped', 'stopped', rest.length > 0])
      told += relay.end()
      assert.ok(relay.isSpent)
      assert.deepEqual([relay.state, relay.fault], ['stopped', undefined])
      assert.match(told + relay.finish(noUsage), /message_stop/)
      const answer = whole.whole()
      assert.ok(answer.state === 'stopped')
      assert.match(`${answer.encode(noUsage)}`, /one two /)
    }
  }
})

test('F-U15 comments and empty events of a translated stream do not count as progress', () => {
  for (const relay of [openStream('messages', 'chat', {}), openWhole('messages', 'chat', {})]) {
    relay.push(Buffer.from(': ping\n\n:\n\ndata:\n\nevent: ping\n\n'))
    assert.equal(relay.events, 0)
    relay.push(Buffer.from(`: ping\n\n${text('a')}: ping\n\n${text('b')}`))
    assert.equal(relay.events, 2)
  }
  const keepAlives = ['ping', 'keepalive'].map((type) => `data: {"type": "${type}", "sequence_number": 4}\n\n`)
  for (const frame of keepAlives.flatMap((one) => [one, `event: ${one.split('"')[3]}\n${one}`]))
    for (const wire of ['messages', 'responses'] as const)
      for (const relay of [openStream('chat', wire, {}), openWhole('chat', wire, {})]) {
        relay.push(Buffer.from(frame.repeat(3)))
        assert.equal(relay.events, 0, frame)
      }
})

test('translation 4.1 an empty block does not open a translated stream: the status may still change', () => {
  const empty = textBlock(0).split('\n\n')[0]!
  const relay = openStream('chat', 'messages', {})
  relay.push(Buffer.from(`${messageStart()}${empty}\n\n`))
  assert.deepEqual([relay.state, relay.hasShown], ['unseen', false])
  for (const kind of ['text', 'reasoning', 'refusal'] as const) {
    const { relay, push } = openEvents('messages', { showsReasoning: true })
    push({ type: 'start' })
    push({ type: 'usage', report: { inputTokens: 3 } })
    push({ type: 'block_start', index: 0, block: { kind } })
    assert.deepEqual([relay.state, relay.hasShown], ['unseen', false], kind)
    push({ type: 'block_delta', index: 0, text: 'a' })
    assert.deepEqual([relay.state, relay.hasShown], ['shown', true], kind)
  }
  const call = openEvents('messages')
  call.push({ type: 'block_start', index: 0, block: { kind: 'tool_call', callId: '', name: 'f' } })
  assert.equal(call.relay.state, 'shown')
})

test('translation 4.1 a role chunk shows nothing, and neither does hidden text', () => {
  const relay = openStream('messages', 'chat', {})
  relay.push(Buffer.from(delta({ role: 'assistant', content: '' }) + delta({ reasoning_content: 'Hm.' })))
  assert.equal(relay.state, 'unseen')
  assert.equal(relay.estimateOutput(), estimateTextTokens('Hm.'))
})

for (const client of ['messages', 'chat', 'responses'] as const) {
  test(`H-F4 a translated stream of a ${client} client does not keep its request`, async () => {
    // Memory beside the heap is given back a moment after what held it.
    const gc = async () => {
      for (let i = 0; i < 3; i++) {
        collect()
        await turn()
      }
    }
    const upstream = client === 'chat' ? 'messages' : 'chat'
    const megabytes = 2
    const open = (n: number) => {
      const body = requestOf(client, `${n} `.repeat(megabytes * 524_288).slice(0, megabytes * 1_048_576))
      const relay = exchangeOf(client, body, modelOf(upstream, undefined)).openStream()
      relay.push(Buffer.from(upstream === 'chat' ? text('Hello') : messageStart() + textBlock(0, 'Hello')))
      return relay
    }
    open(0)
    await gc()
    const before = process.memoryUsage()
    const relays = Array.from({ length: 8 }, (_, i) => open(i))
    await gc()
    const after = process.memoryUsage()
    const grown = after.heapUsed + after.external - before.heapUsed - before.external
    // One request may still be known to the engine, as what a pattern was matched with last; of the others nothing is.
    assert.ok(grown < (relays.length / 2) * megabytes * 1_048_576, `${relays.length} streams keep ${grown} bytes`)
    assert.ok(relays.every(({ state }) => state === 'shown'))
  })
}

test('issue 10 R18 text kept for a stopped responses client takes fewer bytes than characters, and is sent whole', () => {
  const words = (from: number) => Array.from({ length: 4_000 }, (_, i) => Math.imul(from + i, 2_654_435_761) >>> 20)
  const pieces = Array.from({ length: 20 }, (_, i) => words(i * 4_000).join(' '))
  const characters = pieces.join('').length
  const open = (stops: boolean) => {
    const relay = exchangeOf('responses', requestOf('responses', 'Go on.'), modelOf('chat', undefined)).openStream()
    for (const piece of pieces) {
      relay.push(Buffer.from(text(piece)))
      if (stops) relay.compact()
    }
    return relay
  }
  const endOf = (relay: ReturnType<typeof open>) =>
    relay.push(Buffer.from(reason('stop') + usage(counts(9, 9)) + done)) + relay.finish(noUsage)
  collect()
  const before = process.memoryUsage().heapUsed
  const relays = Array.from({ length: 8 }, () => open(true))
  collect()
  const kept = (process.memoryUsage().heapUsed - before) / relays.length
  assert.ok(kept < (2 / 3) * characters, `${kept} bytes of ${characters} characters`)
  assert.equal(endOf(relays[0]!), endOf(open(false)))
})

test('R18 the answer of a JSON client keeps its text, and not the pieces of its stream', () => {
  const script = Array.from({ length: 100 }, (_, i) => text(`${i} words of a delta that V8 cuts out`)).join('')
  collect()
  const before = process.memoryUsage().heapUsed
  const whole = openWhole('messages', 'chat')
  for (let i = 0; i < 100; i++) whole.push(Buffer.from(script))
  collect()
  const kept = process.memoryUsage().heapUsed - before
  assert.ok(kept < (2 / 3) * 100 * script.length, `${kept} bytes of ${100 * script.length}`)
  whole.push(Buffer.from(reason('stop') + usage(counts(9, 9)) + done))
  const told = whole.whole()
  assert.ok(told.state === 'finished')
  assert.equal(Buffer.from(told.encode(noUsage)).toString().split('words of a delta').length, 100 * 100 + 1)
})

function requestOf(client: 'messages' | 'chat' | 'responses', prompt: string): Buffer {
  const turns = [{ role: 'user', content: prompt }]
  const asked = client === 'responses' ? { input: turns } : { messages: turns }
  return Buffer.from(JSON.stringify({ model: 'catalog/model', max_tokens: 9, stream: true, ...asked }))
}

function exchangeOf(wire: 'messages' | 'chat' | 'responses', bytes: Buffer, model: Model) {
  const sealer = { seal: () => '', unseal: () => undefined, isOurs: () => false }
  const gateway = { nowMs: () => 0, sealer } as unknown as Gateway
  const call = { requestId: 'req_1', wire, header: () => undefined } as unknown as Call
  const body = new ClientBody(bytes)
  return translate({ gateway, call, accountId: 'acc_1', model, body, at: 0, scopedKey: undefined })
}

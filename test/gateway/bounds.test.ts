import assert from 'node:assert/strict'
import test from 'node:test'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import type { Call } from '../../src/gateway/call.ts'
import { translate } from '../../src/gateway/exchange.ts'
import { Bodies, createCounting, Flow, tooLarge } from '../../src/gateway/fairness/places.ts'
import type { Gateway } from '../../src/gateway/gateway.ts'
import { ClientBody } from '../../src/wires/requests/client-body.ts'
import { modelOf } from '../native/models.ts'
import { asks, chunk, frames } from '../support/native.ts'
import { startRig } from './rig.ts'

test('R18 B6 all bodies share one limit of bytes, and an account a quarter of it; released bytes are free again', () => {
  const bodies = new Bodies(1_000)
  const one = bodies.enter('acct_1')
  assert.ok(one.take(200))
  assert.ok(one.take(50))
  assert.equal(one.take(1), false, 'a quarter')
  assert.equal(bodies.enter('acct_1').take(1), false, 'of the account, not of the request')
  const others = ['acct_2', 'acct_3', 'acct_4'].map((id) => bodies.enter(id))
  assert.deepEqual(
    others.map((share) => share.take(250)),
    [true, true, true],
  )
  assert.equal(bodies.held, 1_000)
  assert.equal(bodies.enter('acct_5').take(1), false, 'in all')
  one.release()
  one.release()
  assert.equal(bodies.held, 750)
  assert.ok(bodies.enter('acct_1').take(250))
})

test('R18 a share is returned at the end of its scope, unless it was handed on', () => {
  const bodies = new Bodies(1_000)
  const keep = (isHandedOn: boolean) => {
    using share = bodies.enter('acct_1')
    share.take(100)
    return isHandedOn ? share.handOn() : undefined
  }
  keep(false)
  assert.equal(bodies.held, 0)
  const share = keep(true)!
  assert.equal(bodies.held, 100)
  share.release()
  assert.equal(bodies.held, 0)
})

test('spec 8 a client that sends too large a body gets the limit that is in force', () => {
  assert.match(tooLarge(5_242_880).message, /larger than 5242880 bytes \(5 MB\): /)
  assert.match(tooLarge(12_000_000).message, /larger than 12000000 bytes \(11.4 MB\): /)
  assert.match(tooLarge(2_048).message, /larger than 2048 bytes: /)
})

test('R18 an account counts tokens for two requests at a time, independently of other accounts', () => {
  const counting = createCounting(
    () => 0,
    () => false,
  )
  const first = counting.enter('acct_1')!
  const second = counting.enter('acct_1')
  assert.ok(second)
  assert.equal(counting.enter('acct_1'), undefined)
  assert.ok(counting.enter('acct_2'))
  first[Symbol.dispose]()
  assert.ok(counting.enter('acct_1'))
  assert.equal(counting.enter('acct_1'), undefined)
})

test('R18 B6 counting yields to paying requests: 2 MiB of bodies a second, one largest body at once, and no limit when idle', () => {
  let nowMs = 0
  let isServing = true
  const counting = createCounting(
    () => nowMs,
    () => isServing,
  )
  const mib = 1_048_576
  assert.ok(counting.mayCount(5 * mib))
  assert.equal(counting.mayCount(1), false)
  nowMs += 500
  assert.equal(counting.mayCount(2 * mib), false)
  assert.ok(counting.mayCount(mib))
  nowMs += 60_000
  assert.ok(counting.mayCount(5 * mib))
  assert.equal(counting.mayCount(5 * mib), false)
  nowMs += 60_000
  assert.ok(counting.mayCount(20 * mib), 'a larger one, where bodies may be that large')
  assert.equal(counting.mayCount(1), false)
  isServing = false
  for (let i = 0; i < 9; i++) assert.ok(counting.mayCount(5 * mib))
})

const sse = new Map([['content-type', 'text/event-stream']])
const text = 'canary '.repeat(150_000)
const delta = (choice: object) => chunk({ choices: [{ index: 0, delta: choice, finish_reason: null }] })
const call = (index: number) =>
  delta({ tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name: 'f', arguments: '{}' } }] })

test('R18 B10 an endless stream is cut for every client that it is translated for, and what was shown is billed', async () => {
  const endless: [what: string, event: (turn: number) => string, most: number][] = [
    ['text', () => delta({ content: text }), 34],
    ['calls', (turn) => Array.from({ length: 500 }, (_, i) => call(turn * 500 + i)).join(''), 22],
  ]
  for (const client of ['responses', 'messages'] as const) {
    for (const [what, event, most] of endless) {
      const rig = startRig({ wire: 'chat', client, stream: true })
      rig.sent[0]!.listener.onHead(200, 'text/event-stream', sse)
      rig.sent[0]!.listener.onData(Buffer.from(frames.chat[0]!))
      let turns = 0
      while (!rig.end && turns < 2 * most) {
        rig.sent[0]!.listener.onData(Buffer.from(event(turns++)))
        await rig.turn()
      }
      assert.ok(turns <= most, `${what} for ${client}: cut after ${turns} pieces`)
      assert.deepEqual([rig.record.outcome, rig.debits.length, rig.bugs], ['upstream_cut', 1, []])
      assert.equal(rig.record.cause, 'upstream_oversize')
      assert.ok(rig.sent[0]!.isAborted)
      assert.doesNotMatch(rig.client.text.slice(-4_000), /message_stop|response\.completed/)
    }
  }
})

test('R18 B10 a stream that shows nothing is kept back up to 256 KiB; then the head is sent', () => {
  const rig = startRig({ stream: true })
  rig.sent[0]!.listener.onHead(200, 'text/event-stream', sse)
  const nothing = chunk({ choices: [], nothing: 'x'.repeat(1_000) })
  let turns = 0
  for (; !rig.client.isBegun && turns < 1_000; turns++) rig.sent[0]!.listener.onData(Buffer.from(nothing))
  const waited = rig.client.text.length
  assert.ok(waited > 262_144 && waited < 262_144 + 2 * nothing.length, String(waited))
})

test('R18 B25 only the last 1,000 envelopes in a request are opened', () => {
  const opened: string[] = []
  const sealer = { isOurs: () => true, seal: () => '', unseal: (envelope: string) => void opened.push(envelope) }
  const gateway = { nowMs: () => 0, sealer } as unknown as Gateway
  const call = { wire: 'responses', requestId: 'req_1', header: () => undefined } as unknown as Call
  const reasoning = Array.from({ length: 1_005 }, (_, i) => {
    return { type: 'reasoning', id: `rs_${i}`, summary: [], encrypted_content: `tw1.${i}` }
  })
  const input = [{ role: 'user', content: 'Hi' }, ...reasoning, { role: 'user', content: 'Hi' }]
  const body = new ClientBody(Buffer.from(JSON.stringify({ ...asks.responses, input })))
  translate({ gateway, call, accountId: 'acct_1', model: modelOf('chat'), body, at: 0, scopedKey: undefined })
  assert.deepEqual([opened.length, opened[0], opened.at(-1)], [1_000, 'tw1.5', 'tw1.1004'])
})

test('R18 B10 a stream that delivers more than its share waits for the next turn; one that its client pauses goes on waiting', () => {
  const rig = startRig({ stream: true })
  const [one] = rig.sent
  rig.advance(250)
  one!.listener.onHead(200, 'text/event-stream', sse)
  const bring = () => one!.listener.onData(Buffer.from(delta({ content: 'x'.repeat(1_000_000) })))
  bring()
  bring()
  assert.equal(one!.isPaused, false)
  for (let i = 0; i < 3; i++) bring()
  assert.equal(one!.isPaused, true, 'more than 2 MiB, the share of the only one')
  rig.advance(250)
  assert.equal(one!.isPaused, true, '5 MB are more than two turns')
  rig.advance(250)
  assert.equal(one!.isPaused, false)
  rig.client.isReading = false
  for (let i = 0; i < 3; i++) bring()
  for (let i = 0; i < 3; i++) rig.advance(250)
  assert.equal(one!.isPaused, true, 'the client does not read')
  for (let i = 0; i < 3; i++) bring()
  rig.client.catchUp()
  assert.equal(one!.isPaused, true, 'it has had its share')
  for (let i = 0; i < 3; i++) rig.advance(250)
  assert.equal(one!.isPaused, false)
})

test('R18 B10 the share of a stream is the total divided by their number, and at least 16 KiB', () => {
  const flow = new Flow()
  for (const [streams, share] of [
    [0, 2_097_152],
    [2, 1_048_576],
    [5_000, 16_384],
  ] as const) {
    flow.tick(streams)
    assert.equal(flow.share, share)
  }
})

test('B10 a stream that exceeds its share again when resumed also gets the next turn', () => {
  const flow = new Flow()
  let asked = 0
  const greedy = {
    letOn() {
      if (++asked < 3) flow.hold(greedy)
      return true
    },
  }
  flow.hold(greedy)
  for (let i = 0; i < 5; i++) flow.tick(1)
  assert.equal(asked, 3)
})

test('B10 a client that pauses after every piece gets the same as others, for every pair of wires', async () => {
  for (const wire of clientWireNames) {
    for (const client of clientWireNames) {
      // Its first words ten times over.
      const told = frames[wire].flatMap((frame) => (frame.includes('Hé "') ? Array<string>(10).fill(frame) : [frame]))
      const bytes = Buffer.from(told.join(''))
      const [one, stopping] = [startRig({ wire, client, stream: true }), startRig({ wire, client, stream: true })]
      for (const rig of [one, stopping]) {
        const { listener } = rig.sent[0]!
        listener.onHead(200, 'text/event-stream', sse)
        let stops = 0
        // As long as a frame and a half, so that a piece shows something and ends within what is to come.
        for (let at = 0; at < bytes.length; at += 230) {
          rig.client.isReading = rig === one
          listener.onData(bytes.subarray(at, at + 230))
          if (rig.sent[0]!.isPaused) stops++
          if (rig === stopping) rig.client.catchUp()
        }
        listener.onEnd()
        await rig.turn()
        assert.equal(rig.end?.error, undefined)
        if (rig === stopping) assert.ok(stops > 2, `${client} of ${wire}: ${stops} stops`)
      }
      assert.equal(stopping.client.text, one.client.text, `${client} of ${wire}`)
      assert.deepEqual(stopping.debits, one.debits)
    }
  }
})

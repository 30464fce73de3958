import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { resolveProfile } from '../../src/catalog/profiles.ts'
import { Narrator } from '../../src/inference/narrator.ts'
import { truncatedFault } from '../../src/wires/answers/faults.ts'
import { wires } from '../../src/wires/wires.ts'

test('I1 after the end no event is emitted, whatever a decoder still reads', () => {
  const acts: Record<string, (narrator: Narrator) => unknown> = {
    start: (narrator) => narrator.start(),
    'open a text': (narrator) => narrator.open({ kind: 'text' }),
    'open a call and go on': (narrator) => {
      const block = narrator.open({ kind: 'tool_call', callId: 'call_1', name: 'f' })
      narrator.delta(block, '{"a":')
      narrator.seal(block, { kind: 'signature', data: 'x' })
      narrator.stop(block)
    },
    'go on with what was open': (narrator) => narrator.delta(0, 'more'),
    'stop what was open': (narrator) => narrator.stop(0),
    usage: (narrator) => narrator.usage({ outputTokens: 7 }),
    alive: (narrator) => narrator.alive(true),
    finish: (narrator) => narrator.finish('end'),
    fail: (narrator) => narrator.fail(truncatedFault()),
  }
  const ends = fc.constantFrom('finish', 'fail')
  fc.assert(
    fc.property(ends, fc.array(fc.constantFrom(...Object.keys(acts)), { maxLength: 6 }), (end, later) => {
      const narrator = new Narrator()
      narrator.delta(narrator.open({ kind: 'text' }), 'word')
      acts[end]!(narrator)
      const types = narrator.take().map(({ type }) => type)
      assert.deepEqual(types, ['start', 'block_start', 'block_delta', 'block_stop', end])
      for (const act of later) acts[act]!(narrator)
      assert.deepEqual(narrator.take(), [])
    }),
  )
})

test('F-U32 an answer with more parts than any model makes ends there, and later input of the decoder is ignored', () => {
  const narrator = new Narrator()
  for (let at = 0; at < 100_000; at++) narrator.open({ kind: 'tool_call', callId: `call_${at}`, name: 'f' })
  const events = narrator.take()
  assert.equal(events.filter(({ type }) => type === 'block_start').length, 4_096)
  const last = events.at(-1)!
  assert.equal(last.type === 'fail' && last.fault.unread, 'oversize')
  assert.ok(narrator.isOver)
})

test('F-U32 thinking and text may alternate without a limit', () => {
  const narrator = new Narrator()
  const turns = (count: number, isTaken: boolean) => {
    for (let at = 0; at < count; at++) {
      const index = narrator.open({ kind: at % 2 === 0 ? 'text' : 'reasoning' })
      narrator.delta(index, 'x')
      narrator.stop(index)
      if (isTaken) narrator.take()
    }
  }
  turns(20_000, true)
  turns(8_000, false)
  assert.equal(narrator.isOver, false)
  // One piece of a stream, or one answer, has its bound.
  turns(1_000, false)
  assert.ok(narrator.isOver)
})

test('reliability §3 items of a responses answer are counted even if no event is emitted for them', () => {
  const decoder = wires.responses.model.createDecoder(resolveProfile('responses'))
  const item = { type: 'unknown' }
  const events = Array.from({ length: 9_000 }, (_, i) => {
    const event = { type: 'response.output_item.added', output_index: i, item }
    return [...decoder.push({ event: event.type, data: JSON.stringify(event) })]
  }).flat()
  const last = events.at(-1)
  assert.deepEqual([last?.type, last?.type === 'fail' && last.fault.unread], ['fail', 'oversize'])
})

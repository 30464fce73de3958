import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { Step } from '../../src/bytes/step.ts'
import type { AnswerEvent } from '../../src/inference/answer.ts'
import { composeFilters } from '../../src/inference/filters/index.ts'
import { compileStops, cutAtStops, StopMatcher } from '../../src/inference/filters/stops.ts'
import { splitThinkTags } from '../../src/inference/filters/think-tags.ts'
import { Meter } from '../../src/inference/meter.ts'
import { runsOf } from '../support/runs.ts'

const finish: AnswerEvent = { type: 'finish', reason: 'end', report: {} }

function textEvents(pieces: readonly string[]): AnswerEvent[] {
  return [
    { type: 'start' },
    { type: 'block_start', index: 0, block: { kind: 'text' } },
    ...pieces.map((text): AnswerEvent => ({ type: 'block_delta', index: 0, text })),
    { type: 'block_stop', index: 0, cut: false },
    finish,
  ]
}

/** What the events tell, in short: blocks as `kind:text`, and how it ended. */
function shorten(step: Step<AnswerEvent, AnswerEvent>, events: AnswerEvent[]): string[] {
  const out: string[] = []
  for (const event of events.flatMap((one) => [...step.push(one)])) {
    if (event.type === 'block_start') out[event.index] = `${event.block.kind}:`
    else if (event.type === 'block_delta') out[event.index] += event.text
    else if (event.type === 'finish') out.push(event.stopSequence ?? event.reason)
  }
  return out
}
const stopped = (stops: string[], ...pieces: string[]) => shorten(cutAtStops(stops, stops), textEvents(pieces))
const split = (implicitOpen: boolean, ...pieces: string[]) =>
  shorten(splitThinkTags({ open: '<think>', close: '</think>', implicitOpen }), textEvents(pieces))

test('R-STOP the earliest match takes precedence; of two at one place, the longer', () => {
  assert.deepEqual(stopped(['b', 'bc'], 'abcd'), ['text:a', 'bc'])
  assert.deepEqual(stopped(['cd', 'b'], 'abcd'), ['text:a', 'b'])
  assert.deepEqual(stopped(['b', 'bcx'], 'ab', 'cd'), ['text:a', 'b'])
  assert.deepEqual(stopped(['c', 'abx'], 'ab', 'c'), ['text:ab', 'c'])
})

test('R-STOP 3.2 a match at the first character of a text leaves no block', () => {
  assert.deepEqual(stopped(['STOP'], 'STOP it'), ['STOP'])
  assert.deepEqual(stopped(['STOP'], 'ST', 'OP'), ['STOP'])
  assert.deepEqual(stopped(['STOP'], 'ST'), ['text:ST', 'end'])
})

test('R-STOP text that only looked like a match is shown in the end', () => {
  assert.deepEqual(stopped(['STOP'], 'a ST', 'OR', 'M STO'), ['text:a STORM STO', 'end'])
  assert.deepEqual(stopped(['aab'], 'aaa', 'aab', 'x'), ['text:aaa', 'aab'])
})

test('R-STOP text within calls or reasoning never matches', () => {
  const events: AnswerEvent[] = [
    { type: 'start' },
    { type: 'block_start', index: 0, block: { kind: 'reasoning' } },
    { type: 'block_delta', index: 0, text: 'STOP' },
    { type: 'block_stop', index: 0, cut: false },
    { type: 'block_start', index: 1, block: { kind: 'tool_call', callId: '', name: 'f' } },
    { type: 'block_delta', index: 1, text: '"STOP"' },
    { type: 'block_stop', index: 1, cut: false },
    finish,
  ]
  assert.deepEqual(shorten(cutAtStops(['STOP'], ['STOP']), events), ['reasoning:STOP', 'tool_call:"STOP"', 'end'])
})

test('T15 a match finishes the answer at once, with the usage so far, and cuts open calls', () => {
  const step = cutAtStops(['X'], ['X'])
  const report = { inputTokens: 9 }
  for (const event of textEvents([]).slice(0, 2)) [...step.push(event)]
  step.push({ type: 'block_start', index: 1, block: { kind: 'tool_call', callId: '', name: 'f' } })
  step.push({ type: 'usage', report })
  assert.deepEqual(
    [...step.push({ type: 'block_delta', index: 0, text: 'aXb' })],
    [
      { type: 'block_delta', index: 0, text: 'a' },
      { type: 'block_stop', index: 0, cut: false },
      { type: 'block_stop', index: 1, cut: true },
      { type: 'finish', reason: 'stop_sequence', stopSequence: 'X', report },
    ],
  )
  assert.deepEqual([...step.push(finish)], [])
})

test('R-STOP the places where the text is cut change nothing', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 12 })
  fc.assert(
    fc.property(
      fc.array(letters, { minLength: 1, maxLength: 8 }),
      fc.array(letters, { minLength: 1, maxLength: 3 }),
      (pieces, stops) => {
        const text = pieces.join('')
        const asked = stops.filter((stop) => stop !== '')
        // The plain meaning: the first place where a sequence stands, the longest of those that stand there.
        const places = [...text].map(
          (_, at) => asked.filter((stop) => text.startsWith(stop, at)).sort((a, b) => b.length - a.length)[0],
        )
        const at = places.findIndex((stop) => stop !== undefined)
        const shown = at > 0 ? [`text:${text.slice(0, at)}`] : []
        const expected = at < 0 ? [`text:${text}`, 'end'] : [...shown, places[at]!]
        assert.deepEqual(stopped(asked, ...pieces.filter((piece) => piece !== '')), expected)
      },
    ),
    { numRuns: runsOf(200) },
  )
})

test('B20, T26: the search for stop sequences takes time in proportion to the text, whatever their number and repetitions', () => {
  const hostile = [
    ...[1, 2, 5, 64].map((n) => ({
      stops: Array.from({ length: n }, (_, i) => `${'a'.repeat(999 - i)}b`),
      piece: 'a',
    })),
    { stops: [`${'ab'.repeat(499)}ac`], piece: 'ab' },
    { stops: ['aab', 'aaab', `${'a'.repeat(900)}c`], piece: 'aaaaaaa' },
  ]
  for (const { stops, piece } of hostile) {
    for (const pieces of [500, 5_000]) {
      const matcher = new StopMatcher(compileStops(stops))
      let shown = ''
      for (let i = 0; i < pieces; i++) shown += matcher.push(piece).shown
      const text = piece.repeat(pieces)
      assert.ok(matcher.compared <= 2 * text.length, `${matcher.compared} of ${text.length}`)
      assert.equal(shown + matcher.end().shown, text)
      // What is held back is no more than a stop.
      assert.ok(text.length - shown.length < 1_000)
    }
  }
})

test('translation 4.4 think tags: recognised if split anywhere, only at the beginning, and blanks around them are dropped', () => {
  assert.deepEqual(split(false, ' \n<think>a</think>\n\n b'), ['reasoning:a', 'text:b', 'end'])
  assert.deepEqual(split(false, ...' \n <th b'), ['text: \n <th b', 'end'])
  assert.deepEqual(split(false, ...' \n '), ['text: \n ', 'end'])
  assert.deepEqual(split(false, ...' <think>a</b></think> b'), ['reasoning:a</b>', 'text:b', 'end'])
  assert.deepEqual(split(false, '<thin', 'g>a'), ['text:<thing>a', 'end'])
  assert.deepEqual(split(false, '<think></think>b<think>c</think>'), ['text:b<think>c</think>', 'end'])
  assert.deepEqual(split(true, 'a</thi', 'nk>b'), ['reasoning:a', 'text:b', 'end'])
  assert.deepEqual(split(true, '<think>a</think>b'), ['reasoning:a', 'text:b', 'end'])
  assert.deepEqual(split(true, 'a'), ['reasoning:a', 'end'])
  assert.deepEqual(split(false, '  '), ['text:  ', 'end'])
})

test('translation 4.4 the reasoning gate numbers the remaining blocks anew', () => {
  const filters = composeFilters({
    profile: {},
    showsReasoning: false,
    stops: [],
    localStops: [],
    names: new Map(),
    requestId: 'req_1',
    callIdPrefix: 'call_',
  })
  const events: AnswerEvent[] = [
    { type: 'block_start', index: 0, block: { kind: 'reasoning' } },
    { type: 'block_delta', index: 0, text: 'r' },
    { type: 'block_stop', index: 0, cut: false },
    { type: 'block_start', index: 1, block: { kind: 'text' } },
    { type: 'block_delta', index: 1, text: 'a' },
    { type: 'block_stop', index: 1, cut: false },
  ]
  assert.deepEqual(shorten(filters, events), ['text:a'])
})

test('R-ID the same call of the same request gets the same id, and another call another id', () => {
  const idOf = (requestId: string, index: number) => {
    const filters = composeFilters({
      profile: {},
      showsReasoning: true,
      stops: [],
      localStops: [],
      names: new Map(),
      requestId,
      callIdPrefix: 'call_',
    })
    let id = ''
    for (let i = 0; i <= index; i++) {
      for (const event of filters.push({
        type: 'block_start',
        index: i,
        block: { kind: 'tool_call', callId: 'x', name: 'f' },
      })) {
        if (event.type === 'block_start' && event.block.kind === 'tool_call') id = event.block.callId
      }
    }
    return id
  }
  assert.match(idOf('req_1', 0), /^call_[0-9A-Za-z]{24}$/)
  assert.equal(idOf('req_1', 1), idOf('req_1', 1))
  assert.equal(new Set([idOf('req_1', 0), idOf('req_1', 1), idOf('req_2', 0)]).size, 3)
})

test('C3 the meter counts all that was produced, including hidden text and arguments', () => {
  const meter = new Meter()
  for (const event of textEvents(['Hello', ' there'])) meter.push(event)
  assert.equal(meter.characters(), 11)
  assert.equal(meter.isComplete(), true)
  assert.ok(meter.estimateTokens() >= 2 && meter.estimateTokens() <= 4)
})

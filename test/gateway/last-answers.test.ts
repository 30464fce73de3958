import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { type RequestOutcome, outcomes as requestOutcomes } from '../../src/accounts/ledger.ts'
import { type CallRecord, LastAnswers } from '../../src/gateway/record.ts'

const bad: readonly string[] = ['upstream_error', 'upstream_cut', 'upstream_stall']

function record(outcome: RequestOutcome, accounts: readonly string[] = ['a'], walk: CallRecord['walk'] = 'infer') {
  const tries = accounts.map((account) => ({ upstream: 'up', account }))
  return { walk, model: 'm', outcome, tries } as unknown as CallRecord
}

test('CON-8 a model is failing if at least half of its last 20 answers failed, and at least 5 were given', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...requestOutcomes), { maxLength: 60 }), (outcomes) => {
      const last = new LastAnswers()
      const said: boolean[] = []
      for (const outcome of outcomes) {
        last.note(record(outcome))
        if (outcome === 'ok' || bad.includes(outcome)) said.push(outcome !== 'ok')
        const judged = said.slice(-20)
        const isFailing = judged.length >= 5 && judged.filter(Boolean).length * 2 >= judged.length
        assert.equal(last.isFailing('m'), isFailing, outcomes.join())
        assert.equal(last.isServiceFailing('m', 'up', 'a'), isFailing)
      }
    }),
  )
})

test('CON-8 a failover is an answer of the model and a failure of the first account; a count of tokens is neither', () => {
  const last = new LastAnswers()
  for (let at = 0; at < 20; at++) last.note(record('ok', ['a', 'b']))
  assert.deepEqual(
    [last.isFailing('m'), last.isServiceFailing('m', 'up', 'a'), last.isServiceFailing('m', 'up', 'b')],
    [false, true, false],
  )
  for (let at = 0; at < 20; at++) last.note(record('upstream_error', [], 'count_tokens'))
  assert.equal(last.isFailing('m'), false)
  // A model of which nobody could be asked has failed its client too.
  for (let at = 0; at < 10; at++) last.note(record('upstream_error', []))
  assert.equal(last.isFailing('m'), true)
  assert.equal(last.isFailing('other'), false)
})

test('CON-8 Y26 a repetition at the same account does not count as its failure', () => {
  const last = new LastAnswers()
  for (let at = 0; at < 20; at++) last.note(record('ok', ['a', 'a']))
  assert.equal(last.isServiceFailing('m', 'up', 'a'), false)
})

test('CON-8 Y23 each model of a chain is judged by its own attempts, and has failed if the chain went on', () => {
  const hop = { from: 'first', to: 'second', cause: 'unavailable' }
  const judge = (more: object, upstreams: readonly [string, string], cause = hop.cause) => {
    const last = new LastAnswers()
    const tries = ['first', 'second'].map((model, at) => ({ model, upstream: upstreams[at], account: 'a' }))
    const record = {
      walk: 'infer',
      model: 'second',
      tries,
      hops: [{ ...hop, cause }],
      ...more,
    } as unknown as CallRecord
    for (let at = 0; at < 20; at++) last.note(record)
    const services = ['first', 'second'].map((model) =>
      ['up', 'other'].map((upstream) => last.isServiceFailing(model, upstream, 'a')),
    )
    return [last.isFailing('first'), last.isFailing('second'), services.flat()]
  }
  const ofFirst = [true, false, [true, false, false, false]]
  assert.deepEqual(judge({ outcome: 'ok' }, ['up', 'other']), ofFirst)
  assert.deepEqual(judge({ outcome: 'ok' }, ['up', 'up']), ofFirst, 'both are at one account')
  // If all fail, the record names the first model.
  const all = { outcome: 'upstream_error', model: 'first' }
  assert.deepEqual(judge(all, ['up', 'up']), [true, true, [true, false, true, false]])
  assert.deepEqual(judge({ ...all, tries: [] }, ['up', 'up']), [true, true, [false, false, false, false]])
  const well = [false, false, [false, false, false, false]]
  assert.deepEqual(judge({ outcome: 'ok' }, ['up', 'other'], 'over_long'), well, 'a long prompt is no failure')
})

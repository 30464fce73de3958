import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Proof, proveCase, wrongRuns } from '../../conformance/src/bad-traces.ts'
import type { Case } from '../../conformance/src/case.ts'
import { loadCases } from '../../conformance/src/load-cases.ts'
import { findDifferences } from '../../conformance/src/verdict.ts'
import { readPrinted } from './support/printed.ts'
import { runStandIn } from './support/stand-in.ts'
import { writeWrongRuns } from './support/written.ts'

test('for every expectation that a stand-in passes, a wrong run at that place is detected', async () => {
  // What waits for the clock is left to the nightly run, which proves all cases on the traces of a gateway.
  const cases = loadCases().filter((one) => !/"pauseMs":|"ms":|"hang":/.test(JSON.stringify(one)))
  const proofs: { id: string; proof: Proof }[] = []
  const onTrace: NonNullable<Parameters<typeof runStandIn>[2]>['onTrace'] = (one, pair, trace, names) => {
    if (findDifferences(one, pair, trace, names).length > 0) return
    proofs.push({ id: `${one.id} ${pair.client}`, proof: proveCase(one, pair, trace, names) })
  }
  // Cases of a gateway's own rules fail here; a declared deviation has no second try.
  const deviations = [{ cases: cases.map(({ id }) => id), page: 'x', says: 'x' }]
  await runStandIn(cases, {}, { onTrace, deviations })
  const blind = proofs.flatMap(({ id, proof }) => proof.blind.map((name) => `${id}: ${name}`))
  assert.deepEqual(blind, [])
  assert.ok(proofs.length > 80, `${proofs.length} runs passed`)
  assert.ok(proofs.every(({ proof }) => proof.noticed > 0))
})

test('the wrong runs of a run are what test/conformance/printed has, to the byte', () => {
  assert.equal(writeWrongRuns(), readPrinted('wrong-runs.txt'))
})

test('JSON in a text is changed inside if it has at most 20,000 characters', () => {
  const one = { client: { '*': { steps: [{ request: {} }] } } } as unknown as Case
  const count = (length: number) => {
    const raw = `["${'a'.repeat(length - 4)}"]`
    return [...wrongRuns(one, { client: 'chat', model: 'chat' }, { steps: [{ raw } as never], asked: [] })].length
  }
  assert.deepEqual([count(20_000), count(20_001)], [17, 9])
})

test('an expectation is blind if only another one of its step, or a step whose number begins the same, notices', () => {
  const expect = { text: 'a', 'text.x': { $oneOf: [{ $present: true }, { $absent: true }] } }
  const steps = Array.from({ length: 10 }, (_, at) => ({ request: {}, expect: at === 0 ? { done: true } : expect }))
  const one = { client: { chat: { steps } } } as unknown as Case
  const trace = { steps: steps.map(() => ({ text: 'a', done: true })), asked: [] } as never
  const { blind } = proveCase(one, { client: 'chat', model: 'chat' }, trace, { client: 'm', upstream: 'm' })
  assert.deepEqual(
    blind,
    Array.from({ length: 9 }, (_, at) => `client, step ${at + 2}: text.x`),
  )
})

test('a proof counts wrong runs, those that were noticed, and expectations, and names what is blind on each side', () => {
  const anything = { $oneOf: [{ $present: true }, { $absent: true }] }
  const one = {
    client: { chat: { steps: [{ request: {}, expect: { body: { a: 1 } } }] } },
    model: { chat: { exchanges: [{ reply: {}, expect: { raw: anything } }] } },
    bill: { amount: anything },
  } as unknown as Case
  const prove = (more: object) => {
    const trace = { steps: [{ body: { a: 1 } }], asked: [{}], ...more }
    return proveCase(one, { client: 'chat', model: 'chat' }, trace as never, { client: 'm', upstream: 'm' })
  }
  const blind = ['model, request 1: raw']
  assert.deepEqual(prove({}), { made: 31, noticed: 17, expectations: 2, blind })
  assert.deepEqual(prove({ bill: 1 }), { made: 34, noticed: 17, expectations: 3, blind: [...blind, 'bill: amount'] })
})

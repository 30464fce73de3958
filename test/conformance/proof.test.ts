import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Proof, proveCase } from '../../conformance/src/bad-traces.ts'
import { loadCases } from '../../conformance/src/load-cases.ts'
import { findDifferences } from '../../conformance/src/verdict.ts'
import { runStandIn } from './support/stand-in.ts'

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

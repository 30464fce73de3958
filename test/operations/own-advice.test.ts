import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { outcomes } from '../../src/accounts/ledger.ts'
import { errorTable } from '../../src/errors.ts'
import { limitReasons } from '../../src/limit-reasons.ts'
import { adviceOf } from '../../src/operations/own-advice.ts'
import { explanation } from '../../src/operations/shapes.ts'

/** The reasons that the explanation of a request documents. */
const reasons = [...explanation.shape.settlement.shape.reason.description!.matchAll(/`(\w+)`/g)].map(
  ([, word]) => word!,
)

test('STR-9 every reason of a refusal by a limit is in the document of the API and on the page of metrics', () => {
  assert.deepEqual(reasons.toSorted(), Object.keys(limitReasons).toSorted())
  const page = readFileSync('docs/metrics.md', 'utf8')
  // These two are reasons in explanations only: the metric has the code, or what the upstream said.
  const counted = reasons.filter((reason) => !['upstream', 'failed_auth'].includes(reason))
  assert.deepEqual(
    counted.filter((reason) => !page.includes(`\`${reason}\``)),
    [],
  )
})

test('Y22 every code, reason and outcome of a refusal has a sentence and a cure for its owner, without an internal name', () => {
  const fallback = adviceOf({ outcome: 'refused', code: 'unsupported_parameter', reason: null })
  const told = [
    ...Object.keys(errorTable).map((code) => ({ outcome: 'refused', code, reason: null })),
    ...outcomes.map((outcome) => ({ outcome, code: null, reason: null })),
    ...reasons.map((reason) => ({ outcome: 'refused', code: 'rate_limit_exceeded', reason })),
  ]
  for (const one of told) {
    const { why, cure } = adviceOf(one)
    if (one.outcome === 'ok') assert.deepEqual([why, cure], [null, null])
    else for (const text of [why, cure]) assert.match(text!, /^[A-Z][^<>{}]+\.$/, JSON.stringify(one))
    assert.doesNotMatch(`${why} ${cure}`, /upstream|wire|tier|band|price/i)
  }
  // Only what names the request itself is left to the message that the client got.
  const plain = told.filter((one) => adviceOf(one).why === fallback.why).map(({ code, reason }) => reason ?? code)
  assert.deepEqual(
    plain.sort(),
    [
      ...['invalid_api_key', 'invalid_body', 'invalid_cache_key', 'invalid_request'],
      ...['too_many_failed_auth', 'unknown_url', 'unsupported_parameter', null],
    ].sort(),
  )
})

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { failureTexts } from '../../src/errors.ts'
import type { Fault } from '../../src/inference/answer.ts'
import { limitReasons } from '../../src/limit-reasons.ts'
import { refusalOf } from '../../src/upstream/refusal.ts'
import type { Failure } from '../../src/upstream/verdict.ts'
import { judge } from '../../src/upstream/verdict.ts'
import { kindOfStatus } from '../../src/wires/answers/faults.ts'

/* Words by which agents that look at no status decide to try again; the lists are theirs. */
const agents = {
  kilo: /overloaded|server error|rate limit|too many requests|connection lost|retry your request/i,
  cn: /overloaded|connection reset|premature close|socket hang up|aborted/i,
}

const capacity = ['overloaded', 'rate limit', 'try again']
const server = ['server error', 'try again']

/** The words that each text must have (ruling U10). A rate limit of ours is no load of anybody's. */
const words: Record<keyof typeof failureTexts, readonly string[]> = {
  modelFull: capacity,
  serviceFull: capacity,
  counterFull: capacity,
  noUpstream: [...capacity, 'server error'],
  modelFailed: server,
  modelLost: [...server, 'connection'],
  serviceFailed: server,
  serviceStops: server,
  noLedger: server,
  silentStore: server,
  silentAccounts: server,
  usageFull: ['rate limit', 'try again'],
  throttled: ['rate limit', 'try again'],
}

test('A5, U10: every text of a failure has the words on which clients retry', () => {
  const missing = Object.entries(words).flatMap(([name, list]) =>
    list
      .filter((part) => !failureTexts[name as keyof typeof failureTexts].includes(part))
      .map((part) => `${name}: ${part}`),
  )
  assert.deepEqual(missing, [])
  const full = Object.values<{ message?: string } | undefined>(limitReasons).flatMap((row) => row?.message ?? [])
  assert.ok(full.length >= 3, full.join())
  for (const text of full) assert.match(text, /rate limit.*try again/)
  for (const text of [...Object.values(failureTexts), ...full]) assert.match(text, agents.kilo)
  for (const text of [
    failureTexts.modelFull,
    failureTexts.serviceFull,
    failureTexts.noUpstream,
    failureTexts.modelLost,
  ])
    assert.match(text, agents.cn)
})

test('A5, U10: no temporary failure is reported in other words', () => {
  const root = join(import.meta.dirname, '../../src')
  const passing =
    /new GatewayError\(\s*'(?:rate_limit_exceeded|too_many_failed_auth|internal_error|upstream_error|no_upstream_account)',\s*([^)]{0,99})/g
  const told = globSync('**/*.ts', { cwd: root }).flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(passing)].map(([, text = '']) => text.trim()),
  )
  assert.ok(told.length >= 9, told.join())
  assert.deepEqual(
    told.filter((text) => !/^(?:isLost \? )?(?:failureTexts|limitReasons)[.[]/.test(text)),
    [],
  )
})

const unsaid: Fault = { kind: 'broken', text: '' }
const refused = (status: number): Failure => ({
  fault: { kind: kindOfStatus(status), status, text: 'x' },
  cause: `upstream_${status}`,
})

/** Causes of a failed attempt, and the answers to them; status and code are those of spec 7.3. */
const failures: (readonly [Failure, string, keyof typeof failureTexts])[] = [
  ...[429, 529].map((status) => [refused(status), '429 rate_limit_exceeded', 'modelFull'] as const),
  ...[401, 402, 403].map((status) => [refused(status), '503 no_upstream_account', 'noUpstream'] as const),
  ...[405, 408, 409, 425, 500, 502, 503, 504].map(
    (status) => [refused(status), '502 upstream_error', 'modelFailed'] as const,
  ),
  ...['upstream_protocol', 'upstream_oversize', 'upstream_redirect', 'upstream_ttfb_timeout'].map(
    (cause) => [{ fault: unsaid, cause }, '502 upstream_error', 'modelFailed'] as const,
  ),
  ...['upstream_connect', 'upstream_dns', 'upstream_tls', 'upstream_reset', 'upstream_stall'].map(
    (cause) => [{ fault: unsaid, cause }, '502 upstream_error', 'modelLost'] as const,
  ),
  [{ fault: unsaid, cause: 'shutdown' }, '500 internal_error', 'serviceStops'],
  [{ fault: { kind: 'truncated', text: '' }, cause: 'upstream_reset' }, '502 upstream_error', 'modelLost'],
  [{ fault: { kind: 'truncated', text: '' }, cause: 'upstream_error_event' }, '502 upstream_error', 'modelLost'],
  [{ fault: { kind: 'account', text: '' }, cause: 'no_upstream_account' }, '503 no_upstream_account', 'noUpstream'],
]

for (const [failure, status, name] of failures) {
  const { fault, cause } = failure
  test(`A5, U10: ${cause}, ${fault.kind}, is reported as ${status} in the words of ${name}`, () => {
    const { tell } = judge(failure, {
      upstreamModel: 'up',
      profile: { refusals: [], accountFaults: [], requestFaults: [] },
    })
    const error = refusalOf(tell, failure, () => assert.fail('no text of the model’s is told'))
    assert.equal(`${error.status} ${error.code}`, status)
    assert.equal(error.message, failureTexts[name])
  })
}

import assert from 'node:assert/strict'
import test from 'node:test'
import type { Fault } from '../../src/inference/answer.ts'
import { type Failure, judge, type Verdict } from '../../src/upstream/verdict.ts'
import { kindOfStatus } from '../../src/wires/answers/faults.ts'

const model = {
  upstreamModel: 'up-model',
  profile: {
    refusals: [],
    accountFaults: ['Credit Balance', 'spending limit'],
    requestFaults: ['Input is not supported'],
  },
}

function refused(status: number, text = 'something'): Failure {
  return { fault: { kind: kindOfStatus(status), status, text }, cause: `upstream_${status}` }
}

function said(failure: Failure): string {
  const { tell, elsewhere, cool }: Verdict = judge(failure, model)
  return `${tell} ${elsewhere} ${cool}`
}

test('U8 a 5xx whose words blame the request is the caller’s fault; other statuses are not', () => {
  const text = 'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj'
  for (const status of [500, 501, 503]) assert.equal(said(refused(status, text)), 'rejected nobody no', `${status}`)
  for (const status of [408, 429, 401]) assert.notEqual(said(refused(status, text)), 'rejected nobody no', `${status}`)
  assert.equal(said(refused(500, 'out of memory')), 'broken another repeated')
  const overLong: Failure = refused(500)
  overLong.fault.code = 'exceed_context_size_error'
  assert.equal(said(overLong), 'rejected nobody no')
})

/** Rulings U1 and U2, row by row: what the client is told, who may be asked instead, whether the account cools. */
const rows: [statuses: number[], verdict: string][] = [
  [[400, 413, 422], 'rejected nobody no'],
  [[401, 402, 403], 'account another now'],
  [[429], 'capacity another now'],
  [[529], 'capacity another repeated'],
  [[408, 409, 425, 500, 501, 502, 503, 504, 522, 599], 'broken another repeated'],
  [[405, 406, 410, 418, 451], 'broken nobody no'],
]

for (const [statuses, verdict] of rows) {
  test(`U1 U2 an upstream that answers ${statuses.join(', ')}: ${verdict}`, () => {
    for (const status of statuses) assert.equal(said(refused(status)), verdict, `${status}`)
  })
}

test('U1 a failure below HTTP is retried at another account; a broken answer is not', () => {
  const broken: Fault = { kind: 'broken', text: '' }
  for (const cause of ['upstream_connect', 'upstream_dns', 'upstream_tls', 'upstream_reset'])
    assert.equal(said({ fault: broken, cause }), 'broken another repeated', cause)
  for (const cause of [
    'upstream_protocol',
    'upstream_oversize',
    'upstream_redirect',
    'upstream_ttfb_timeout',
    'shutdown',
  ])
    assert.equal(said({ fault: broken, cause }), 'broken nobody no', cause)
})

test('U1 after a race on a reused connection any account may be tried, also the same one, which does not cool', () => {
  const fault: Fault = { kind: 'broken', text: '' }
  assert.equal(said({ fault, cause: 'upstream_reset', isReuseRace: true }), 'broken any no')
})

test('U1 an error with status 200 is judged by its subject', () => {
  const verdicts: Record<Fault['kind'], string> = {
    rejected: 'rejected nobody no',
    capacity: 'capacity another now',
    account: 'account another now',
    broken: 'broken nobody no',
    truncated: 'broken nobody repeated',
  }
  for (const [kind, verdict] of Object.entries(verdicts))
    assert.equal(said({ fault: { kind: kind as Fault['kind'], text: '' }, cause: 'upstream_error_event' }), verdict)
})

test('U2 a refusal about our own balance is a fault of our account, whatever its status', () => {
  for (const status of [400, 404, 422])
    for (const text of ['Your credit balance is too low', 'The Spending Limit is reached'])
      assert.equal(said(refused(status, text)), 'account another now')
  assert.equal(said(refused(429, 'The Spending Limit is reached')), 'account another now')
  assert.equal(said(refused(500, 'Your credit balance is too low')), 'broken another repeated')
})

test('U2 the operator sees the cause of an account’s fault, if the status does not give it', () => {
  const alarm = (fault: Fault, cause: string) => judge({ fault, cause }, model).alarm
  for (const [status, about] of [
    [401, 'key'],
    [402, 'spent'],
    [403, 'denied'],
  ] as const) {
    const fault: Fault = { kind: 'account', status, text: 'no' }
    assert.equal(alarm(fault, `upstream_${status}`), undefined)
    assert.equal(alarm(fault, 'upstream_error_event'), `upstream_account_${about}`)
    assert.equal(alarm(fault, 'upstream_error_body'), `upstream_account_${about}`)
  }
  assert.equal(alarm(refused(400, 'credit balance').fault, 'upstream_400'), 'upstream_account_denied')
  assert.equal(alarm(refused(400, 'something').fault, 'upstream_400'), undefined)
})

test('U2 F-U20 a 404 about our path or model name is our fault; one about the request’s content is the caller’s', () => {
  for (const text of [
    '',
    'Not Found',
    'File Not Found',
    'no UP-MODEL here',
    'The model does not exist',
    'unknown url',
    'Invalid path',
  ])
    assert.equal(said(refused(404, text)), 'broken nobody no', text)
  for (const text of ['file_1 was not found', 'file not found: file_1', 'no such container', 'the model is tired'])
    assert.equal(said(refused(404, text)), 'rejected nobody no', text)
  assert.equal(said(refused(400, 'The model does not exist')), 'rejected nobody no')
})

test('U9 a proxy’s 400 that quotes our own name for the model is an alarm; with another name it is the caller’s fault', () => {
  const quoting = (name: string) =>
    judge(refused(400, `Invalid model name passed in model=${name}. Call /v1/models`), model)
  assert.equal(quoting('Up-Model').alarm, 'upstream_model_not_found')
  assert.deepEqual([quoting('other').alarm, quoting('other').tell], [undefined, 'rejected'])
})

test('E7, U9: model_not_found concerns our name for the model, with any or no status: no other account, and an alarm', () => {
  for (const status of [undefined, 400, 404, 503]) {
    const fault: Fault = { kind: 'rejected', text: 'no such thing', code: 'model_not_found', ...(status && { status }) }
    assert.deepEqual(judge({ fault, cause: 'upstream_404' }, model), {
      tell: 'broken',
      elsewhere: 'nobody',
      cool: 'no',
      alarm: 'upstream_model_not_found',
    })
  }
})

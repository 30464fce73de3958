import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { type ApiKey, StoreSilent } from '../../src/accounts/account.ts'
import type { Admission, AdmissionRefusal, Entered } from '../../src/accounts/admission.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { openRaw } from '../support/raw.ts'
import { until } from '../support/waiting.ts'

/*
 * The walk before an admission on another machine (ruling R1): it answers later, and decides in `admit`.
 */

/** A gateway whose admission records its questions, and gives scripted answers a turn later. */
async function start(
  t: TestContext,
  answer: { enter?: AdmissionRefusal; admit?: AdmissionRefusal; judge?: AdmissionRefusal | Error } = {},
) {
  const gateway = await startTestGateway()
  t.after(() => gateway.close())
  const told: string[] = []
  const admission: Admission = {
    async enter(key: ApiKey) {
      told.push(`enter ${key.account.name}`)
      if (answer.enter) return answer.enter
      return {
        ok: true,
        async admit(holdNanos) {
          told.push(holdNanos > 0n ? 'admit' : 'admit nothing')
          return answer.admit ?? { ok: true, release: () => told.push('release') }
        },
        async judge() {
          told.push('judge')
          if (answer.judge instanceof Error) throw answer.judge
          return answer.judge
        },
        [Symbol.dispose]: () => told.push('over'),
      }
    },
    look: () => undefined,
    lookBudget: () => 0n,
  }
  gateway.server.gateway.admission = admission
  return { gateway, told }
}

const good = { model: 'native-chat', messages: [{ role: 'user', content: 'canary-admit' }] }

async function tell(gateway: TestGateway, body: unknown): Promise<string> {
  const response = await gateway.post('/v1/chat/completions', body)
  const { error } = (await response.json()) as { error?: { code: string } }
  return [response.status, error?.code, response.headers.get('x-should-retry'), response.headers.get('retry-after')]
    .filter((part) => part !== undefined && part !== null)
    .join(' ')
}

test('R1 an asynchronous admission is asked with the key, then with the hold, and its hold is released once', async (t) => {
  const { gateway, told } = await start(t)
  assert.equal(await tell(gateway, good), '200')
  assert.deepEqual(told, ['enter tester', 'admit', 'over', 'release'])
})

test('R1 a request with a wrong body goes through admission before its refusal: it still uses its place', async (t) => {
  const { gateway, told } = await start(t)
  for (const [body, code] of [
    ['[]', '400 invalid_body false'],
    [{ ...good, model: 'none' }, '404 model_not_found false'],
    [{ ...good, messages: 7 }, '400 invalid_body false'],
  ] as const) {
    told.length = 0
    assert.equal(await tell(gateway, body), code)
    assert.deepEqual(told, ['enter tester', 'judge', 'over'])
  }
})

test('R1 C5 if credit and window are decided after the body, 402, 429 and a silent store come before its 400 and 404', async (t) => {
  const answer: { judge?: AdmissionRefusal | Error } = {}
  const { gateway } = await start(t, answer)
  for (const body of ['[]', { ...good, model: 'none' }, { ...good, messages: 7 }]) {
    answer.judge = { ok: false, why: 'spent', balanceNanos: 0n }
    assert.equal(await tell(gateway, body), '402 insufficient_credits false')
    answer.judge = { ok: false, why: 'window', retryAfterSeconds: 17 }
    assert.equal(await tell(gateway, body), '429 rate_limit_exceeded true 17')
    answer.judge = new StoreSilent('canary-silent')
    assert.equal(await tell(gateway, body), '500 internal_error true')
  }
})

test('C5 a store that does not report whether an account has credit causes a 500, in enter as in admit', async (t) => {
  const silent = () => Promise.reject(new StoreSilent('canary-silent'))
  const { gateway } = await start(t)
  const entered: Entered = { ok: true, admit: silent, judge: async () => undefined, [Symbol.dispose]: () => {} }
  for (const enter of [silent, async () => entered]) {
    gateway.server.gateway.admission = { enter, look: () => undefined, lookBudget: () => 0n }
    const response = await gateway.post('/v1/chat/completions', good)
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    assert.deepEqual([response.status, error.code], [500, 'internal_error'])
    assert.match(error.message, /credit of accounts/)
  }
})

test('R1 a client that leaves in the middle of its body ends its request between enter and admit', async (t) => {
  const { gateway, told } = await start(t)
  const connection = await openRaw(gateway.url)
  connection.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-api-key: ${gateway.key}\r\ncontent-length: 99\r\n\r\n{"model":`,
  )
  await until(() => told.length === 1)
  connection.socket.destroy()
  await until(() => told.length === 2)
  assert.deepEqual(told, ['enter tester', 'over'])
})

test('R1 R6 C5 each refusal of an admission has its code, in enter as in admit', async (t) => {
  const answer: { enter?: AdmissionRefusal; admit?: AdmissionRefusal } = {}
  const { gateway } = await start(t, answer)
  const refusals: [AdmissionRefusal, string][] = [
    [{ ok: false, why: 'unwritable' }, '500 internal_error true'],
    [{ ok: false, why: 'spent', balanceNanos: 0n }, '402 insufficient_credits false'],
    [{ ok: false, why: 'held', balanceNanos: 1n }, '402 insufficient_credits true'],
    [{ ok: false, why: 'busy' }, '429 rate_limit_exceeded true 5'],
    [{ ok: false, why: 'window', retryAfterSeconds: 17 }, '429 rate_limit_exceeded true 17'],
  ]
  for (const [refused, code] of refusals) {
    answer.enter = refused
    assert.equal(await tell(gateway, good), code)
    delete answer.enter
    answer.admit = refused
    assert.equal(await tell(gateway, good), code)
    delete answer.admit
  }
  assert.equal(gateway.simulator.requests.length, 0)
})

import assert from 'node:assert/strict'
import test from 'node:test'
import { createBooks } from '../../src/accounts/books.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/waiting.ts'

/* What clients, operators and their probes see of a clock that may date no entry (ruling Y15). */

const hourMs = 3_600_000
const question = { model: 'native-chat', messages: [{ role: 'user', content: 'Hello!' }] }
const secret = 'a plain secret of hooks'

async function start() {
  const receiver = await startReceiver()
  const turned = new Float64Array(new SharedArrayBuffer(16))
  const config = { webhooks: [{ url: receiver.url, secret, events: ['clock_wrong'] }] }
  const gateway = await startTestGateway({ turned, config, pollMs: 5 })
  /** Of the first administrator that anybody asks for. */
  const token = await operatorOf(gateway)
  const ask = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) }
    const answer = await fetch(gateway.adminUrl + path, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  const probe = async () => {
    const answer = await fetch(`${gateway.adminUrl}/readyz`)
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  return { gateway, receiver, turned, ask, probe }
}

async function operatorOf({ askAdmin, store, nowMs }: TestGateway): Promise<string> {
  await askAdmin('/api/v1/me')
  const { createOperator } = await import('../../src/accounts/operators.ts')
  return store.change(createOperator('clock', 'admin', nowMs() + 864_000_000, nowMs())).token
}

test('Y15 C5 a clock in doubt: inference gets 500, models are listed, and probe, status and webhook report it, until it is confirmed', async () => {
  const { gateway, receiver, turned, ask, probe } = await start()
  const infer = async () => {
    const answer = await gateway.post('/v1/chat/completions', question)
    return { status: answer.status, text: await answer.text() }
  }
  assert.equal((await infer()).status, 200)
  assert.deepEqual(await probe(), { status: 200, body: { status: 'ready' } })
  assert.equal((await ask('GET', '/api/v1/status')).body['clock'], null)
  turned[0]! += 48 * hourMs
  await until(() => gateway.ledger.ledger.whyBlocked() !== undefined, 'the clock is in doubt')
  const text = 'the clock is in doubt, for it moved by more than an hour: set it right, or run triwire clock confirm'
  assert.deepEqual(await probe(), { status: 503, body: { status: 'not_ready', why: text } })
  const { body } = await ask('GET', '/api/v1/status')
  assert.deepEqual([body['clock'], body['ready']], [text, false])
  const refused = await infer()
  assert.equal(refused.status, 500)
  assert.match(refused.text, /internal_error/)
  const models = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${gateway.key}` } })
  assert.equal(models.status, 200)
  await models.text()
  // An operator's credit would be dated too.
  const credit = { credits: '1', reference: 'payment 1' }
  const { status, body: problem } = await ask('POST', '/api/v1/accounts/tester/credits', credit)
  assert.deepEqual([status, problem['type']], [409, (problem['type'] as string).replace(/[^/:]+$/, 'conflict')])
  assert.match(`${problem['detail']}`, /clock that dates entries shows .* in doubt/)
  await gateway.server.webhooks.look()
  assert.deepEqual(
    receiver.received.map(({ body }) => [body.type, body.data['problem'], body.data['text']]),
    [['clock_wrong', 'moved', text]],
  )
  // The thread of the books shows the time of the gateway, which nobody has turned: the store's clock is confirmed.
  gateway.jump(48 * hourMs)
  assert.equal((await ask('POST', '/api/v1/clock/confirm', {})).status, 200)
  await until(() => gateway.ledger.ledger.whyBlocked() === undefined, 'it is confirmed')
  assert.equal((await infer()).status, 200)
  assert.deepEqual(await probe(), { status: 200, body: { status: 'ready' } })
  assert.equal((await ask('POST', '/api/v1/accounts/tester/credits', credit)).status, 201)
})

test('Y15 an entry ahead of the clock: the probe stays 200; probe, status, log and webhook report it', async () => {
  const { gateway, receiver, turned, ask, probe } = await start()
  turned[0]! += 2 * hourMs
  await until(() => gateway.ledger.ledger.whyBlocked() !== undefined, 'the clock is in doubt')
  gateway.jump(2 * hourMs)
  assert.equal((await ask('POST', '/api/v1/clock/confirm', {})).status, 200)
  await until(() => gateway.ledger.ledger.whyBlocked() === undefined, 'it is confirmed')
  assert.equal((await gateway.post('/v1/chat/completions', question)).status, 200)
  turned[0]! -= 2 * hourMs
  gateway.jump(-2 * hourMs)
  await until(() => gateway.ledger.ledger.whyBlocked() !== undefined, 'the clock is in doubt')
  assert.equal((await ask('POST', '/api/v1/clock/confirm', {})).status, 200)
  await until(() => gateway.ledger.ledger.whyBlocked() === undefined, 'it is confirmed')
  const note = 'the newest entry is more than an hour ahead of the clock: see clock_wrong in the log'
  assert.deepEqual(await probe(), { status: 200, body: { status: 'ready', note } })
  const { body } = await ask('GET', '/api/v1/status')
  assert.deepEqual([body['clock'], body['ready']], [note, true])
  await gateway.logWith({ event: 'clock_wrong', problem: 'ahead' })
  await gateway.server.webhooks.look()
  assert.equal(receiver.received.at(-1)?.body.data['problem'], 'ahead')
})

test('Y15 BRK-5 in the moment in which the clock moves, neither a credit nor the grant of another month is posted', async () => {
  const { gateway, ask } = await start()
  const books = createBooks(gateway.store.asked, gateway.nowMs)
  await books.updateAccount('tester', { grant: { nanos: 5n, lapses: true } })
  assert.equal((await gateway.post('/v1/chat/completions', question)).status, 200)
  const listCredits = () =>
    [...gateway.store.eachEntry()].map(({ reference }) => reference).filter((reference) => reference !== undefined)
  const before = listCredits()
  for (const days of [2, 40, -40]) {
    gateway.jump(days * 24 * hourMs)
    const credit = await ask('POST', '/api/v1/accounts/tester/credits', { credits: '1', reference: `${days} days` })
    // In 40 days the operator's token has expired.
    assert.equal(credit.status, days === 40 ? 401 : 409)
    await (await gateway.post('/v1/chat/completions', question)).text()
    gateway.jump(-days * 24 * hourMs)
    assert.deepEqual(listCredits(), before, `${days} days`)
  }
  const { status } = await ask('POST', '/api/v1/accounts/tester/credits', { credits: '1', reference: 'back' })
  assert.equal(status, 201)
})

import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { formatCredits } from '../../src/accounts/credit.ts'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { startTestGateway, type TestOptions } from '../support/gateway.ts'
import { asks, paths } from '../support/native.ts'

const names = ['limit', 'remaining', 'reset'].map((name) => `x-ratelimit-${name}-requests`)

async function start(t: TestContext, options: TestOptions = {}) {
  const gateway = await startTestGateway(options)
  t.after(() => gateway.close())
  return gateway
}

/** Limit, remaining, reset and balance, as the headers tell them. */
function standingOf({ headers }: Response): (string | null)[] {
  return [...names, 'x-triwire-balance'].map((name) => headers.get(name))
}

test('R13 each answer to an inference request has the window and the balance, on every wire, whole, streamed and refused', async (t) => {
  const gateway = await start(t, { config: { limits: { requests_per_minute: 20 } } })
  const balance = () => formatCredits(gateway.store.findAccount('tester')!.balanceNanos)
  let left = 20
  for (const wire of clientWireNames) {
    for (const more of [{}, { stream: true }, { model: 'nobody' }, { stream: 'yes' }]) {
      const before = balance()
      const response = await gateway.post(paths[wire], { ...asks[wire], ...more })
      await response.text()
      const [limit, remaining, reset, told] = standingOf(response)
      const what = `${wire} ${JSON.stringify(more)}`
      assert.deepEqual([limit, remaining, reset], ['20', `${--left}`, '60'], what)
      // A whole answer is sent after its debit; the head of a stream need not be.
      assert.ok(told === balance() || ('stream' in more && told === before), what)
    }
  }
  gateway.advance(17_500)
  const later = await gateway.post(paths.chat, asks.chat)
  await later.text()
  assert.deepEqual(standingOf(later).slice(0, 3), ['20', '7', '43'])
  while (--left >= 0) await (await gateway.post(paths.chat, { model: 'nobody' })).text()
  const full = await gateway.post(paths.chat, asks.chat)
  assert.deepEqual(
    [full.status, full.headers.get('retry-after'), ...standingOf(full).slice(0, 3)],
    [429, '43', '20', '0', '43'],
  )
})

test('R13 spec 1.8 a key that is not accepted and other paths get no standing, and no answer has costs or prices', async (t) => {
  const gateway = await start(t)
  const wrong = { authorization: `Bearer sk-tri-${'0'.repeat(46)}` }
  const silent = [
    await gateway.post(paths.chat, asks.chat, wrong),
    await gateway.post('/v1/messages/count_tokens', asks.messages),
    await fetch(`${gateway.url}/v1/models`),
  ]
  for (const response of silent) assert.deepEqual(standingOf(response), [null, null, null, null])
  const told = await gateway.post(paths.chat, asks.chat)
  const all = [...told.headers].filter(([name]) => name !== 'access-control-expose-headers')
  assert.doesNotMatch(JSON.stringify(all), /cost|price/i)
  const exposed = told.headers.get('access-control-expose-headers')!.split(', ')
  for (const name of [...names, 'x-triwire-balance', 'x-request-id', 'retry-after'])
    assert.ok(exposed.includes(name), name)
})

test('R13 headers.balance: false removes the balance, from a reload on', async (t) => {
  const gateway = await start(t)
  const tell = async () =>
    standingOf(await gateway.post(paths.chat, { model: 'nobody' })).map((value) => value !== null)
  assert.deepEqual(await tell(), [true, true, true, true])
  gateway.reload({ headers: { balance: false } })
  assert.deepEqual(await tell(), [true, true, true, false])
})

test('R13 spec 1.8 a 402 names the account and what it has left, and not what is held', async (t) => {
  const gateway = await start(t, { credit: '0' })
  const response = await gateway.post(paths.chat, asks.chat)
  const { error } = (await response.json()) as { error: { message: string } }
  assert.deepEqual(
    [response.status, error.message],
    [402, 'Account "tester" has 0 credits left: add credit and try again.'],
  )
  assert.deepEqual(standingOf(response).slice(1), ['300', '0', '0'])
})

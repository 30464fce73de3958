import assert from 'node:assert/strict'
import test, { before } from 'node:test'
import type { KeyWishes } from '../../src/accounts/book-rules.ts'
import { accountBounds } from '../../src/accounts/key-bounds.ts'
import { digestKey } from '../../src/accounts/keys.ts'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'
import { until } from '../support/waiting.ts'

/*
 * Keys that people hand out (ruling R15), through the whole gateway: what their clients are told, and what becomes of it.
 */

let gateway: TestGateway

before(async () => {
  gateway = await startTestGateway({
    credit: '1000',
    models: [
      testModel('large', 'chat', { also: ['large-latest'] }),
      testModel('small-1', 'chat'),
      testModel('small-2', 'messages'),
    ],
    config: { reporting: { time_zone: 'Asia/Kathmandu' } },
  })
})

type Told = { status: number; code?: string; message?: string; headers: Headers; id: string }

async function ask(key: string, model = 'large', path = '/v1/chat/completions'): Promise<Told> {
  const body = { model, messages: [{ role: 'user', content: 'Hello!' }], max_tokens: 20 }
  const response = await gateway.post(path, body, { authorization: `Bearer ${key}` })
  const { error } = (await response.json()) as { error?: { code?: string; type?: string; message: string } }
  const id = response.headers.get('x-request-id')!
  return {
    ...{ status: response.status, headers: response.headers, id },
    ...(error && { code: error.code ?? error.type, message: error.message }),
  } as Told
}

async function makeKey(wishes: KeyWishes) {
  const made = gateway.store.createKey('tester', wishes)
  await gateway.untilKnown(made.key)
  return made
}

const row = (id: string) => gateway.store.findKeys(id)[0]!

/** What of its scope the gateway knows by now. */
const liveOf = (key: string) => gateway.ledger.directory.findKnownKey(digestKey(key))?.bounds

test('R15 a key whose budget is spent gets 402, which names the key and when it renews; its account has credit', async () => {
  const { key, id, prefix } = await makeKey({ label: 'ci', budget: { nanos: 1n, per: 'day' } })
  assert.equal((await ask(key)).status, 200)
  const spent = row(id).spend!
  assert.ok(spent.spentNanos > 1n)
  // A day of Nepal.
  assert.equal(new Date(spent.untilMs).toISOString().slice(11), '18:15:00.000Z')
  const refused = await ask(key)
  assert.deepEqual([refused.status, refused.code], [402, 'insufficient_credits'])
  assert.equal(refused.headers.get('x-should-retry'), 'false')
  const renews = new Date(spent.untilMs).toISOString().replace('.000', '')
  assert.equal(
    refused.message,
    `The API key "ci" (${prefix}…) has spent its budget of 0.000000001 credits a day: it renews at ${renews}. Ask the person who gave it to you for more.`,
  )
  assert.equal((await gateway.logOf(refused.id))['code'], 'insufficient_credits')
  assert.equal((await ask(gateway.key)).status, 200)
  // The day of the gateway is over: the budget is whole.
  const restMs = spent.untilMs - gateway.nowMs()
  gateway.jump(restMs)
  assert.equal((await ask(key)).status, 200)
  gateway.jump(-restMs)
})

test('R15 a budget without a period does not renew; a changed or removed one counts at once, with the amount spent so far', async () => {
  const { key, id } = await makeKey({ budget: { nanos: 1n, per: undefined } })
  await ask(key)
  const refused = await ask(key)
  assert.match(refused.message!, /of 0\.000000001 credits: it does not renew/)
  gateway.store.updateKey(id, { budget: { nanos: 10n ** 9n, per: undefined } })
  await until(() => liveOf(key)?.budget?.nanos === 10n ** 9n, 'the gateway knows another budget')
  assert.equal((await ask(key)).status, 200)
  gateway.store.updateKey(id, { budget: { nanos: 2n, per: 'month' } })
  await until(() => liveOf(key)?.budget?.per === 'month', 'the gateway knows another period')
  assert.equal((await ask(key)).status, 402)
  gateway.store.updateKey(id, { budget: null })
  await until(() => liveOf(key) === undefined, 'the gateway knows that there is none')
  assert.equal((await ask(key)).status, 200)
})

test('R15 a rotated key shares one budget and one window with its new key', async () => {
  const { key, id } = await makeKey({ budget: { nanos: 1n, per: 'day' }, requestsPerMinute: 3 })
  const next = gateway.store.rotateKey(id, 3_600_000)
  await gateway.untilKnown(next.key)
  assert.equal((await ask(next.key)).status, 200)
  for (const one of [key, next.key]) assert.equal((await ask(one)).status, 402)
  assert.equal(row(id).spend?.spentNanos, row(next.id).spend?.spentNanos)
})

test('R15 R13 a key has its own requests per minute: shown in the headers, refused with 429; the account’s are not used up', async () => {
  const { key } = await makeKey({ requestsPerMinute: 2 })
  const before = Number((await ask(gateway.key)).headers.get('x-ratelimit-remaining-requests'))
  const first = await ask(key)
  assert.deepEqual(
    ['limit', 'remaining'].map((name) => first.headers.get(`x-ratelimit-${name}-requests`)),
    ['2', '1'],
  )
  await ask(key)
  for (let n = 0; n < 5; n++) {
    const refused = await ask(key)
    assert.deepEqual([refused.status, refused.code], [429, 'rate_limit_exceeded'])
    assert.match(refused.message!, /This API key has made too many requests/)
    assert.ok(Number(refused.headers.get('retry-after')) > 0)
  }
  const after = Number((await ask(gateway.key)).headers.get('x-ratelimit-remaining-requests'))
  assert.equal(before - after, 3)
})

test('R15 R17 a model that a key may not use is 404 and allowed ids are suggested; an alias must be allowed itself', async () => {
  const { key } = await makeKey({ models: ['small-*', 'large-latest'] })
  assert.equal((await ask(key, 'small-1')).status, 200)
  assert.equal((await ask(key, 'large-latest')).status, 200)
  const forbidden = await ask(key, 'large')
  assert.deepEqual([forbidden.status, forbidden.code], [404, 'model_not_found'])
  assert.equal(
    forbidden.message,
    'This API key may not use the model: use another one, or ask the person who gave you the key. Perhaps it is large-latest.',
  )
  const near = await ask(key, 'smal-1')
  assert.match(near.message!, /^No such model: .* Perhaps it is small-1 or small-2\.$/)
  assert.doesNotMatch((await ask(key, 'larg')).message!, /Perhaps/)
  // Spec 4.5: the list stays the catalog.
  const list = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
  assert.equal(((await list.json()) as { data: unknown[] }).data.length, 4)
})

test('R15 count_tokens of a model that the key may not use is 404', async () => {
  const { key } = await makeKey({ models: ['large'] })
  const path = '/v1/messages/count_tokens'
  assert.equal((await ask(key, 'small-2', path)).status, 404)
  assert.equal((await ask(gateway.key, 'small-2', path)).status, 200)
})

test('R15 R4 a key past its end is treated as revoked', async () => {
  const { key, id } = await makeKey({ expiresMs: gateway.nowMs() + 3_600_000 })
  assert.equal((await ask(key)).status, 200)
  gateway.jump(3_600_001)
  assert.deepEqual((await ask(key)).status, 401)
  gateway.jump(-3_600_001)
  gateway.store.updateKey(id, { expiresMs: null })
  await until(() => gateway.ledger.directory.findKnownKey(digestKey(key))?.expiresMs === undefined, 'it has no end')
  gateway.jump(3_600_001)
  assert.equal((await ask(key)).status, 200)
  gateway.jump(-3_600_001)
})

test('R15 C2 300 requests, 100 at once, by a key with a budget spend no more than the law allows', async () => {
  const { key: probe, id: probeId } = await makeKey({ budget: { nanos: 10n ** 12n, per: undefined } })
  await ask(probe)
  const costNanos = row(probeId).spend!.spentNanos
  const { key, id } = await makeKey({ budget: { nanos: 5n * costNanos, per: 'day' } })
  gateway.reload({ limits: { requests_per_minute: 100_000 } })
  let statuses: number[] = []
  for (let n = 0; n < 300; n += 100)
    statuses = [
      ...statuses,
      ...(await Promise.all(Array.from({ length: 100 }, () => ask(key)))).map(({ status }) => status),
    ]
  const answered = BigInt(statuses.filter((status) => status === 200).length)
  const { spentNanos } = row(id).spend!
  assert.equal(spentNanos, answered * costNanos)
  // An answer costs no more than its hold of 20 tokens of output.
  assert.ok(answered >= 1n && spentNanos <= 5n * costNanos + 40n * 15_000n, `${answered} answers`)
  assert.ok(statuses.every((status) => status === 200 || status === 402))
  assert.equal(liveOf(key)!.heldNanos, 0n)
})

test('Y20 R15 an account with its own budget and rate: 402 and 429 name the account, whichever key asks', async () => {
  const { id } = gateway.store.createAccount('team', 10n ** 12n, { budget: { nanos: 1n, per: 'month' } })
  const [one, two] = [gateway.store.createKey(id), gateway.store.createKey(id, { requestsPerMinute: 50 })]
  for (const { key } of [one, two]) await gateway.untilKnown(key)
  const first = await ask(one.key)
  assert.equal(first.status, 200)
  const refused = await ask(two.key)
  const { untilMs } = gateway.store.findAccount(id).spend!
  assert.deepEqual(
    [refused.status, refused.code, refused.headers.get('x-should-retry')],
    [402, 'insufficient_credits', 'false'],
  )
  const renews = new Date(untilMs).toISOString().replace('.000', '')
  assert.equal(
    refused.message,
    `Account "team" has spent its budget of 0.000000001 credits a month: it renews at ${renews}. Ask its operator for more.`,
  )
  const restMs = untilMs - gateway.nowMs()
  gateway.jump(restMs)
  assert.equal((await ask(two.key)).status, 200, 'the month is over')
  gateway.jump(-restMs)
  gateway.store.updateAccount(id, { budget: null, requestsPerMinute: 4 })
  const own = () => gateway.ledger.directory.findKnownAccount(id)?.bounds
  await until(() => own()?.requestsPerMinute === 4, 'it is known')
  const answers = []
  for (const { key } of [one, two, one, two]) answers.push(await ask(key))
  const full = answers.find(({ status }) => status === 429)!
  assert.deepEqual([full.headers.get('x-ratelimit-limit-requests'), full.code], ['4', 'rate_limit_exceeded'])
  assert.match(full.message!, /^The account has made too many requests/)
  gateway.store.updateAccount(id, { requestsPerMinute: null })
  await until(() => own() === undefined, 'it is as wide as all')
  assert.equal((await ask(one.key)).status, 200)
})

test('law 13 an account without credit gets its grant before its first request of a month, once even if many arrive together', async () => {
  const { store } = gateway
  const { id } = store.createAccount('granted')
  const { key } = store.createKey(id)
  await gateway.untilKnown(key)
  assert.equal((await ask(key)).status, 402)
  const bounds = { ...accountBounds.none, grant: { nanos: 10n ** 9n, lapses: true } }
  // The last grant was in another month.
  const lastGrant = `of ${id}/1999-12`
  for (const [amountNanos, reference] of [
    [7n, lastGrant],
    [-7n, `taken from ${id}`],
  ] as const)
    store.credit(id, amountNanos, reference)
  store.change({
    about: {},
    decide: () => ({
      writes: [{ kind: 'set_account', accountId: id, fields: { lastGrant }, bounds }],
      result: undefined,
    }),
  })
  await until(() => gateway.ledger.directory.findKnownAccount(id)?.grantMonth === '1999-12', 'it is known to be due')
  const answers = await Promise.all([1, 2, 3].map(() => ask(key)))
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200],
  )
  const grants = [...store.eachEntry({ accountId: id })].filter(({ reference }) => reference?.startsWith('grant:'))
  assert.deepEqual(
    grants.map(({ reference, amountNanos }) => [reference!.slice(0, -2), amountNanos]),
    [[`grant:${id}/${new Date().toISOString().slice(0, 5)}`, 10n ** 9n]],
  )
  assert.equal((await ask(key)).status, 200)
})

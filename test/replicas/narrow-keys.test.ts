import assert from 'node:assert/strict'
import test, { before } from 'node:test'
import { digestKey } from '../../src/accounts/keys.ts'
import type { RunningServer } from '../../src/process/server.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { verifyOptions } from '../store/fixtures.ts'
import { openOperator } from '../store/postgres/opened.ts'
import { atEnd } from '../support/at-end.ts'
import { testModel } from '../support/gateway.ts'
import { startPostgres, withoutPostgres } from '../support/postgres.ts'
import { startReplica } from '../support/replica.ts'
import { until } from '../support/waiting.ts'

/* Keys that are narrower than their accounts, on three gateways that share a database (rulings R15, X7). */

const skip = withoutPostgres()
let books: Awaited<ReturnType<typeof openOperator>>
let urls: string[]
let servers: RunningServer[]

before(async () => {
  if (skip) return
  const postgres = await startPostgres({ settings: ['fsync = off'] })
  const url = postgres.createDatabase('keys')
  books = await openOperator(url)
  await books.createAccount('payer', 10n ** 15n)
  const simulator = await startSimulator()
  atEnd(simulator.close)
  const models = [testModel('large', 'chat'), testModel('small', 'chat')]
  const limits = { requests_per_minute: 100_000 }
  const replicas = [1, 2, 3].map((n) => startReplica(`r${n}`, url, simulator.url, { limits, models }))
  const running = await Promise.all(replicas)
  urls = running.map(({ url }) => url)
  servers = running.map(({ server }) => server)
})

async function ask(url: string, key: string, model = 'large') {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello!' }], max_completion_tokens: 20 }),
  })
  const { error } = (await response.json()) as { error?: { message: string } }
  return { status: response.status, message: error?.message, headers: response.headers }
}

async function askAtOnce(key: string, count: number): Promise<Record<number, number>> {
  const asked = await Promise.all(Array.from({ length: count }, (_, n) => ask(urls[n % 3]!, key)))
  const counts: Record<number, number> = {}
  for (const { status } of asked) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

const spendOf = async (id: string) => (await books.findKeys(id))[0]!.spend!

test('R15 X7 over three gateways a key makes exactly its allowed requests a minute', { skip }, async () => {
  const { key } = await books.createKey('payer', { requestsPerMinute: 40 })
  assert.deepEqual(await askAtOnce(key, 150), { 200: 40, 429: 110 })
  const refused = await ask(urls[0]!, key)
  assert.match(refused.message!, /This API key has made too many requests/)
  assert.equal(refused.headers.get('x-ratelimit-limit-requests'), '40')
})

test('R15 C2 X7 over three gateways a key spends no more than its budget and the last hold', { skip }, async () => {
  const { key: probe, id: probeId } = await books.createKey('payer', { budget: { nanos: 10n ** 12n, per: undefined } })
  assert.equal((await ask(urls[0]!, probe)).status, 200)
  await until(async () => (await spendOf(probeId)).spentNanos > 0n, 'it is posted')
  const costNanos = (await spendOf(probeId)).spentNanos
  const { key, id } = await books.createKey('payer', { budget: { nanos: 4n * costNanos, per: 'day' } })
  const counts = await askAtOnce(key, 300)
  const answered = BigInt(counts[200] ?? 0)
  assert.equal((counts[200] ?? 0) + (counts[402] ?? 0), 300)
  await until(async () => (await spendOf(id)).spentNanos === answered * costNanos, 'all are posted')
  assert.ok(answered >= 1n && answered * costNanos <= 4n * costNanos + 40n * 15_000n, `${answered} answers`)
  // What is left is spent one by one; then it is told as the key's, with when it renews.
  for (let n = 0; n < 9; n++) if ((await ask(urls[n % 3]!, key)).status === 402) break
  const { untilMs } = await spendOf(id)
  const words = `credits a day: it renews at ${new Date(untilMs).toISOString().replace('.000', '')}`
  // The hold of the one before goes a moment behind its debit: until then it is a refusal by what is held.
  let refused = await ask(urls[1]!, key)
  const isSpent = async () => {
    if (refused.message?.includes(words)) return true
    refused = await ask(urls[1]!, key)
    return false
  }
  await until(isSpent, 'it is told as spent')
  assert.equal(refused.status, 402)
  const { directory, admission } = servers[1]!.gateway
  const bounds = directory.findKnownKey(digestKey(key))!.bounds!
  const left = 4n * costNanos - (await spendOf(id)).spentNanos
  assert.equal(admission.lookBudget({ ...bounds, budget: bounds.budget! }), left, 'what a metric tells')
  assert.deepEqual(await books.verify(verifyOptions), [])
})

test('R15 X7 a changed budget, other models and a rotation take effect at every gateway at once', {
  skip,
}, async () => {
  const { key, id } = await books.createKey('payer', { budget: { nanos: 1n, per: 'day' }, models: ['small'] })
  assert.equal((await ask(urls[0]!, key, 'small')).status, 200)
  await until(async () => (await ask(urls[1]!, key, 'small')).status === 402, 'it is spent')
  assert.equal((await ask(urls[2]!, key)).status, 402)
  await books.updateKey(id, { budget: { nanos: 10n ** 9n, per: 'week' } })
  for (const url of urls) await until(async () => (await ask(url, key, 'small')).status === 200, 'it may spend more')
  for (const url of urls) assert.equal((await ask(url, key)).status, 404)
  const next = await books.rotateKey(id, 60_000)
  await books.updateKey(next.id, { models: ['large'], budget: { nanos: 10n ** 9n, per: 'month' } })
  for (const url of urls)
    for (const one of [key, next.key]) await until(async () => (await ask(url, one)).status === 200, 'both may ask')
  assert.deepEqual(await books.verify(verifyOptions), [])
  await books.updateKey(next.id, { budget: { nanos: 1n, per: 'month' } })
  for (const url of urls)
    for (const one of [key, next.key]) await until(async () => (await ask(url, one)).status === 402, 'neither may')
})

test('Y20 R15 X7 over three gateways all keys of an account share its requests a minute and its budget', {
  skip,
}, async () => {
  const { id } = await books.createAccount('narrow', 10n ** 15n, { requestsPerMinute: 40 })
  const keys = await Promise.all([1, 2, 3].map(() => books.createKey(id)))
  const asked = async (count: number) => {
    const at = (n: number) => ask(urls[n % 3]!, keys[(n >> 1) % 3]!.key)
    const answers = await Promise.all(Array.from({ length: count }, (_, n) => at(n)))
    return Object.fromEntries(
      [200, 402, 429].map((status) => [status, answers.filter((one) => one.status === status).length]),
    )
  }
  assert.deepEqual(await asked(150), { 200: 40, 402: 0, 429: 110 })
  const refused = await ask(urls[0]!, keys[0]!.key)
  assert.match(refused.message!, /has made too many requests/)
  assert.equal(refused.headers.get('x-ratelimit-limit-requests'), '40')
  const spend = async () => (await books.findAccount(id)).spend?.spentNanos ?? 0n
  await books.updateAccount(id, { requestsPerMinute: null, budget: { nanos: 10n ** 12n, per: 'month' } })
  await until(async () => (await spend()) > 0n, 'all 40 are counted')
  const costNanos = (await spend()) / 40n
  await books.updateAccount(id, { budget: { nanos: (await spend()) + 4n * costNanos, per: 'month' } })
  for (const { gateway } of servers)
    await until(() => gateway.directory.findKnownAccount(id)?.bounds?.requestsPerMinute === undefined, 'it is known')
  for (const { gateway } of servers)
    await until(() => (gateway.directory.findKnownAccount(id)?.bounds?.budget?.nanos ?? 0n) < 10n ** 12n, 'it is known')
  const counts = await asked(300)
  assert.equal(counts[200]! + counts[402]!, 300)
  assert.ok(counts[200]! >= 1 && BigInt(counts[200]!) * costNanos <= 4n * costNanos + 40n * 15_000n, `${counts[200]}`)
  const isSpent = async () =>
    /^Account "narrow" has spent its budget of \S+ credits a month: it renews at \S+Z\. Ask its operator/
  let last = await ask(urls[1]!, keys[1]!.key)
  await until(async () => {
    if (last.status === 402 && (await isSpent()).test(last.message!)) return true
    last = await ask(urls[1]!, keys[1]!.key)
    return false
  }, 'it is told as spent')
  assert.deepEqual(await books.verify(verifyOptions), [])
})

test('Y20 X7 over three gateways all keys of a person share their requests a minute and their budget', {
  skip,
}, async () => {
  const { id: account } = await books.createAccount('owned', 10n ** 15n)
  const person = (await books.createPerson({ name: 'Ada', account, requestsPerMinute: 300 })).id
  const keys = await Promise.all([1, 2, 3].map(() => books.createKey(account, { person })))
  const asked = async (count: number) => {
    const at = (n: number) => ask(urls[n % 3]!, keys[(n >> 1) % 3]!.key)
    const answers = await Promise.all(Array.from({ length: count }, (_, n) => at(n)))
    return Object.fromEntries(
      [200, 402, 429].map((status) => [status, answers.filter((one) => one.status === status).length]),
    )
  }
  assert.deepEqual(await asked(340), { 200: 300, 402: 0, 429: 40 })
  const refused = await ask(urls[0]!, keys[0]!.key)
  assert.match(refused.message!, /^The person with this API key has made too many requests/)
  assert.equal(refused.headers.get('x-ratelimit-limit-requests'), '300')
  const spend = async () => (await books.findPerson(person)).spend?.spentNanos ?? 0n
  await books.updatePerson(person, { requestsPerMinute: null, budget: { nanos: 10n ** 12n, per: 'month' } })
  await until(async () => (await books.readSpent(account, keys[2]!.id)) > 0n && (await spend()) > 0n, 'it is counted')
  const costNanos = (await books.listEntries({ accountId: account, limit: 1 }))[0]!.amountNanos
  await until(async () => (await spend()) === 300n * costNanos, 'all 300 are counted')
  await books.updatePerson(person, { budget: { nanos: (await spend()) + 4n * costNanos, per: 'month' } })
  const known = (gateway: (typeof servers)[number]['gateway']) =>
    gateway.directory.findKnownKey(digestKey(keys[0]!.key))?.personBounds?.budget?.nanos ?? 10n ** 12n
  for (const { gateway } of servers) await until(() => known(gateway) < 10n ** 12n, 'it is known')
  const counts = await asked(150)
  assert.equal(counts[200]! + counts[402]!, 150)
  assert.ok(counts[200]! >= 1 && BigInt(counts[200]!) * costNanos <= 4n * costNanos + 40n * 15_000n, `${counts[200]}`)
  const next = await books.createKey(account, { person })
  let last = await ask(urls[1]!, next.key)
  await until(async () => {
    if (/has spent their budget of \S+ credits a month: it renews at \S+Z\. Ask the operator/.test(last.message ?? ''))
      return true
    last = await ask(urls[1]!, next.key)
    return false
  }, 'a new key is told the same')
  assert.equal(last.status, 402)
  assert.deepEqual(await books.verify(verifyOptions), [])
})

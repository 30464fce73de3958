import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import type { TestGateway } from '../support/gateway.ts'
import { createHeld } from '../support/held.ts'
import { answers, asks, type Native, startNative } from '../support/native.ts'
import { whole } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'

/*
 * What the operator changes with the command line, while the gateway runs, through a connection of its own to the store.
 */

let native: Native
let gateway: TestGateway
/** Streams run until they are let go on; whole answers come at once. */
const { answer, letGo } = createHeld()
before(async () => {
  native = await startNative({
    config: { limits: { requests_per_minute: 1_000_000, failed_auth_per_minute: 1_000_000 } },
  })
  gateway = native.gateway
  const quick = whole(answers.chat)
  native.upstream.play((socket, asked) => (asked.json()['stream'] ? answer : quick)(socket, asked))
})
after(() => native.close())

function ask(key: string, stream = false): Promise<Response> {
  const body = JSON.stringify({ ...asks.chat, stream })
  return fetch(`${gateway.url}/v1/chat/completions`, { method: 'POST', headers: { 'x-api-key': key }, body })
}

/** Asks until the answer is as wanted: a second at most, on a machine that has time (faults F-C45). */
async function within(wanted: number, key: string): Promise<Response> {
  let response!: Response
  await until(async () => {
    response = await ask(key)
    if (response.status === wanted) return true
    await response.arrayBuffer()
    return false
  }, `the answer is ${wanted}`)
  return response
}

async function openAccount(name: string, nanos: bigint): Promise<{ key: string; id: string }> {
  gateway.store.createAccount(name, nanos)
  const made = gateway.store.createKey(name)
  await within(nanos > 0n ? 200 : 402, made.key)
  return made
}

async function codeOf(response: Response): Promise<string> {
  const { error } = (await response.json()) as { error: { code: string } }
  return `${response.status} ${error.code}`
}

test('F-C45 spec 5 a revoked key is refused within a second, and its running stream ends whole and is billed', async () => {
  const { key, id } = await openAccount('revoked', 10n ** 9n)
  const running = await ask(key, true)
  gateway.store.revokeKey(id)
  assert.equal(await codeOf(await within(401, key)), '401 invalid_api_key')
  letGo()
  assert.match(await running.text(), /data: \[DONE\]\n\n$/)
  const line = await gateway.logOf(running.headers.get('x-request-id')!)
  assert.deepEqual([line['outcome'], line['usage_source']], ['ok', 'final'])
})

test('F-C45 spec 3 a suspended account is refused within a second, its running stream ends whole; when activated it works again', async () => {
  const { key } = await openAccount('suspended', 10n ** 9n)
  const running = await ask(key, true)
  gateway.store.updateAccount('suspended', { state: 'suspended' })
  assert.equal(await codeOf(await within(401, key)), '401 account_suspended')
  letGo()
  assert.match(await running.text(), /data: \[DONE\]\n\n$/)
  gateway.store.updateAccount('suspended', { state: 'active' })
  assert.equal((await within(200, key)).status, 200)
})

test('F-C46 spec 3 a balance that falls below zero during a stream lets the stream end; then 402, until credit is added', async () => {
  const { key } = await openAccount('emptied', 10n ** 9n)
  const running = await ask(key, true)
  const { balanceNanos } = gateway.store.findAccount('emptied')
  gateway.store.credit('emptied', -balanceNanos, 'correction-1')
  const refused = await within(402, key)
  assert.equal(refused.headers.get('x-should-retry'), 'false')
  assert.equal(await codeOf(refused), '402 insufficient_credits')
  letGo()
  assert.match(await running.text(), /data: \[DONE\]\n\n$/)
  await gateway.logOf(running.headers.get('x-request-id')!)
  assert.ok(gateway.store.findAccount('emptied').balanceNanos < 0n)
  gateway.store.credit('emptied', 10n ** 9n, 'payment-1')
  assert.equal((await within(200, key)).status, 200)
})

test('spec 5 a new account with its key, and a rotated key, work within a second', async () => {
  const { key, id } = await openAccount('fresh', 10n ** 9n)
  assert.equal((await within(200, key)).status, 200)
  const second = gateway.store.createKey('fresh')
  assert.equal((await within(200, second.key)).status, 200)
  gateway.store.revokeKey(id)
  await within(401, key)
  assert.equal((await ask(second.key)).status, 200)
})

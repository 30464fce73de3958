import assert from 'node:assert/strict'
import test from 'node:test'
import { RemoteAdmission } from '../../src/accounts/remote-admission.ts'
import { AdmissionDesk } from '../../src/store/postgres/admission-desk.ts'
import { Presence } from '../../src/store/postgres/presence.ts'
import { atEnd } from '../support/at-end.ts'
import { startTestGateway } from '../support/gateway.ts'
import { withoutPostgres } from '../support/postgres.ts'
import { clusterOfFile, openShared, startReplica } from './cluster.ts'

/*
 * The walk of a whole gateway before admission by PostgreSQL. Its own books stay in a file: what is asked here is the order.
 */

const cluster = clusterOfFile()
const skip = withoutPostgres()
const good = { model: 'native-chat', messages: [{ role: 'user', content: 'canary-walk' }] }
const wrong = { ...good, messages: 7 }

async function start(name: string, balance: bigint, limit: number) {
  const store = await openShared(cluster(), name)
  const gateway = await startTestGateway({ config: { limits: { requests_per_minute: limit } } })
  const admission = new RemoteAdmission(
    () => undefined,
    () => undefined,
  )
  const desk = new AdmissionDesk({
    database: store.operator,
    clockMs: () => performance.now(),
    patienceMs: store.patienceMs,
    answer: (answers) => admission.hear(answers),
  })
  const presence = new Presence({
    database: store.operator,
    introduction: { name, version: '0', configDigest: 'one', sealFingerprint: 'one' },
    tell: (identity) => desk.tell(identity),
    forgetIdle: () => {},
    onConfigDiffers: () => {},
  })
  await presence.start()
  admission.connect((orders) => desk.take(orders))
  atEnd(async () => {
    await presence.close()
    desk.close()
  })
  const parts = gateway.server.gateway
  parts.admission = admission.open({
    requestsPerMinute: () => limit,
    isShedding: () => false,
    clockMs: () => performance.now(),
    nowMs: Date.now,
  })
  const { id } = [...gateway.ledger.accounts.values()][0]!
  await store.createAccount(balance, id)
  const tell = async (body: unknown) => {
    const response = await gateway.post('/v1/chat/completions', body)
    await response.text()
    return response.status
  }
  return { store, tell, id, gateway }
}

test('R1 X7: with admission in PostgreSQL 402 comes before 400, and takes no place', { skip }, async () => {
  const { store, tell, id } = await start('credit', 10n ** 12n, 3)
  const other = await startReplica(store.shared)
  assert.equal(await tell(wrong), 400)
  assert.equal(await tell(good), 200)
  await store.operator.query('UPDATE triwire.balances SET balance = 0 WHERE account_id = $1', [id])
  assert.deepEqual([await tell(wrong), await tell(good), await tell('[]')], [402, 402, 402])
  await store.operator.query('UPDATE triwire.balances SET balance = 1000000000000 WHERE account_id = $1', [id])
  const { figures } = await other.ask(id, 0n, { place: { accountMs: 0, keyMs: undefined } })
  assert.equal(figures?.window.taken, 2)
})

test('R1 X7: with admission in PostgreSQL 429 comes before 400, and a request with an invalid body uses its place', {
  skip,
}, async () => {
  const { store, tell, id } = await start('window', 10n ** 12n, 5)
  const other = await startReplica(store.shared)
  assert.deepEqual([await tell(good), await tell(wrong), await tell({ ...good, model: 'none' })], [200, 400, 404])
  // The fourth and fifth are taken elsewhere: this gateway does not know, and asks.
  assert.equal((await other.ask(id, 0n)).figures?.window.taken, 4)
  assert.equal((await other.ask(id, 0n)).figures?.window.taken, 5)
  assert.deepEqual([await tell(wrong), await tell('[]'), await tell(good)], [429, 429, 429])
})

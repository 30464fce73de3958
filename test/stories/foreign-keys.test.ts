import assert from 'node:assert/strict'
import test from 'node:test'
import { createBooks } from '../../src/accounts/books.ts'
import type { ForeignImport } from '../../src/accounts/foreign-keys.ts'
import { digestKey } from '../../src/accounts/keys.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { clusterOfFile } from '../replicas/cluster.ts'
import { openOperator } from '../store/postgres/opened.ts'
import { atEnd } from '../support/at-end.ts'
import { startTestGateway, testModel } from '../support/gateway.ts'
import { withoutPostgres } from '../support/postgres.ts'
import { startReplica } from '../support/replica.ts'
import { until } from '../support/waiting.ts'

const cluster = clusterOfFile()
const messages = [{ role: 'user', content: 'canary-foreign' }]
const asks = [
  ['/v1/messages', { model: 'native-messages', max_tokens: 9, messages }],
  ['/v1/chat/completions', { model: 'native-chat', messages }],
  ['/v1/responses', { model: 'native-responses', input: 'canary-foreign' }],
] as const
const heads = [(key: string) => ({ authorization: `Bearer ${key}` }), (key: string) => ({ 'x-api-key': key })]

async function statusOf(url: string, which: number, headers: Record<string, string>): Promise<number> {
  const [path, body] = asks[which]!
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  await response.text()
  return response.status
}

/** A key of a person, and one that somebody chose, which begins as ours do. */
const names = ['sk-canary-A1b2C3d4E5f6G7h8', 'sk-tri-canary-chosen']

const planOf = (keys: readonly string[], account = 'team'): ForeignImport => ({
  origin: 'litellm',
  accounts: [{ name: account, state: 'active', bounds: {}, creditNanos: 10n ** 12n, reference: `import:${account}` }],
  keys: keys.map((key) => ({
    ...{ digest: digestKey(key), prefix: `sk-...${key.slice(-4)}`, label: undefined, account, externalId: undefined },
    ...{ expiresMs: undefined, ownExpiresMs: undefined, bounds: {} },
  })),
})

test('issue 50 SQLite: a foreign key works on all wires and in both headers; unknown ones are counted (R4), rotated ones end', async () => {
  const gateway = await startTestGateway({
    pollMs: 10,
    config: { own_pages: true, limits: { failed_auth_per_minute: 10 }, trusted_proxies: ['127.0.0.0/8'] },
  })
  const from = (address: string) => ({ 'x-forwarded-for': address })
  const { directory } = gateway.ledger
  assert.equal(directory.hasForeignKeys, false)
  let looks = 0
  const find = directory.findKey
  directory.findKey = (digest) => {
    looks++
    return find(digest)
  }
  assert.equal(await statusOf(gateway.url, 0, { ...heads[0]!('sk-canary-none'), ...from('203.0.113.1') }), 401)
  assert.equal(looks, 0, 'a store without foreign keys is not asked for texts of their form')
  const books = createBooks(gateway.store.asked, gateway.nowMs)
  await books.importForeign(planOf(names))
  await until(() => directory.hasForeignKeys === true)
  for (const key of names)
    for (const which of asks.keys())
      for (const head of heads) assert.equal(await statusOf(gateway.url, which, head(key)), 200, `${key} ${which}`)
  const statuses: number[] = []
  for (let n = 0; n < 12; n++)
    statuses.push(await statusOf(gateway.url, 1, { ...heads[n % 2]!(`sk-canary-wrong-${n}`), ...from('203.0.113.2') }))
  assert.deepEqual(statuses, [...Array(10).fill(401), 429, 429])
  const models = await fetch(`${gateway.url}/console/api/me/models`, { headers: heads[0]!(names[0]!) })
  assert.equal(models.status, 200, await models.text())
  const session = await fetch(`${gateway.url}/console/api/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: names[0] }),
  })
  assert.equal(session.status, 200, await session.text())
  assert.match(session.headers.get('set-cookie') ?? '', /triwire-own=/)
  const [row] = await books.pageKeys({ isForeign: true, limit: 1 })
  const issued = await books.rotateKey(row!.id, 1_000)
  await gateway.untilKnown(issued.key)
  assert.equal(await statusOf(gateway.url, 1, heads[0]!(issued.key)), 200)
  for (const { id } of await books.pageKeys({ isForeign: true, limit: 9 })) await books.revokeKey(id)
  await until(() => directory.hasForeignKeys === false)
  for (const key of names) assert.equal(await statusOf(gateway.url, 1, heads[1]!(key)), 401)
  const lines = JSON.stringify(await gateway.logLines())
  for (const key of [...names, 'sk-canary-wrong-1']) assert.ok(!lines.includes(key), key)
})

test('issue 50 X7 PostgreSQL: every replica loads foreign keys, at its start and after a notice', {
  skip: withoutPostgres(),
}, async () => {
  const url = cluster().createDatabase('foreign')
  const books = await openOperator(url)
  await books.createAccount('payer', 10n ** 12n)
  const simulator = await startSimulator()
  atEnd(simulator.close)
  const models = [testModel('native-messages', 'messages'), testModel('native-chat', 'chat')]
  models.push(testModel('native-responses', 'responses'))
  const replicas = await Promise.all([1, 2].map((n) => startReplica(`r${n}`, url, simulator.url, { models })))
  for (const { url: at } of replicas) assert.equal(await statusOf(at, 1, heads[0]!(names[0]!)), 401)
  await books.importForeign(planOf(names))
  for (const { server } of replicas) await until(() => server.gateway.directory.hasForeignKeys === true)
  const late = await startReplica('r3', url, simulator.url, { models })
  for (const { url: at } of [...replicas, late])
    for (const which of asks.keys())
      for (const head of heads)
        for (const key of names) assert.equal(await statusOf(at, which, head(key)), 200, `${key} ${which}`)
  // A second import is of a store that is known to have some: its keys work at once (R16).
  await books.importForeign(planOf(['sk-canary-second'], 'second'))
  assert.equal(await statusOf(late.url, 1, heads[1]!('sk-canary-second')), 200)
  const rows = await books.pageKeys({ isForeign: true, limit: 9 })
  await books.rotateKey(rows[0]!.id, 60_000)
  for (const { id } of rows) await books.revokeKey(id)
  for (const { server } of [...replicas, late]) await until(() => server.gateway.directory.hasForeignKeys === false)
  for (const { url: at } of replicas) assert.equal(await statusOf(at, 0, heads[0]!(names[1]!)), 401)
})

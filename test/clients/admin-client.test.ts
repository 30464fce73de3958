import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { AdminProblem, createAdminClient } from '../../clients/admin/client.ts'
import { routes } from '../../clients/admin/routes.ts'
import { adminClientDigest } from '../../scripts/clients/admin-client.ts'
import { allOperations } from '../../src/operations/openapi.ts'
import { startApi } from '../operations/api.ts'

/* The generated client of the admin API, which the compiler checks as well: this file has no cast. */

test('issue 50: clients/admin is generated from the document of this version', () => {
  for (const file of ['api.ts', 'routes.ts']) {
    const text = readFileSync(new URL(`../../clients/admin/${file}`, import.meta.url), 'utf8')
    const cure = `clients/admin/${file} is old: run node bin/node.mjs scripts/admin-clients.ts --write`
    assert.ok(text.includes(adminClientDigest()), cure)
  }
  assert.deepEqual(
    Object.keys(routes),
    allOperations.map(({ id }) => id),
  )
})

test('issue 50: the generated client creates, reads, edits, writes back, lists and revokes on a real gateway', async () => {
  const { gateway, admin } = await startApi()
  const client = createAdminClient({ url: `${gateway.adminUrl}/`, token: admin })
  const made = await client.call('account.create', {
    name: 'round trip / ü',
    credit: '12.5',
    budget: { credits: '5', per: 'day' },
    warn: ['3', '1'],
  })
  assert.deepEqual([made.status, made.location], [201, `/api/v1/accounts/${made.data.id}`])
  const account = made.data.name
  const { data, version } = await client.call('account.show', { account })
  assert.deepEqual(
    [data.budget?.credits, data.budget?.per, data.budget?.spent, data.balance],
    ['5', 'day', '0', '12.5'],
  )
  const { budget, rpm, warn, grant, plan, name, state } = data
  const edit = { account, budget, rpm, warn, grant, plan, name, state }
  const same = await client.call('account.update', edit, { ifMatch: version! })
  assert.deepEqual([same.data, same.version], [data, version])
  const other = await client.call('account.update', { account, rpm: 7 }, { ifMatch: version! })
  assert.deepEqual([other.data.rpm, other.version === version], [7, false])
  const stale = client.call('account.update', { account, rpm: 8 }, { ifMatch: version! })
  await assert.rejects(stale, (error) => {
    assert.ok(error instanceof AdminProblem)
    assert.deepEqual([error.status, error.problem], [412, 'precondition_failed'])
    return error.requestId !== undefined
  })

  const once = { idempotencyKey: 'once' }
  const issued = await client.call('key.create', { account, label: 'one', models: ['native-chat'] }, once)
  assert.match(issued.data.key ?? '', /^sk-tri-/)
  const again = await client.call('key.create', { account, label: 'one', models: ['native-chat'] }, once)
  assert.equal(again.data.id, issued.data.id)
  for (let n = 0; n < 4; n++) await client.call('key.create', { account, label: `more ${n}` })
  const labels: (string | null)[] = []
  for await (const key of client.list('key.list', { account, limit: 2 })) labels.push(key.label)
  assert.deepEqual(labels.toSorted(), ['more 0', 'more 1', 'more 2', 'more 3', 'one'])
  const gone = await client.call('key.delete', { key: issued.data.id })
  assert.ok(gone.data.revoked)
  await assert.rejects(client.call('key.create', { account, models: ['a,b'] }), (error) => {
    assert.ok(error instanceof AdminProblem)
    assert.deepEqual(error.errors, [{ pointer: '/models', detail: 'A member of the list must not contain a comma.' }])
    return true
  })
})

/** The compiler refuses fields that an operation does not have, and values of another type. */
export function mistakes(client: ReturnType<typeof createAdminClient>): void {
  // @ts-expect-error: the name is missing
  void client.call('account.create', { credit: '5' })
  // @ts-expect-error: no such period
  void client.call('account.create', { name: 'a', budget: { credits: '5', per: 'year' } })
  // @ts-expect-error: no such operation
  void client.call('account.destroy', { account: 'a' })
}

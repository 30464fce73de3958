import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { digestAudit } from '../../src/accounts/trail.ts'
import { runWarm } from '../cli/run.ts'
import { problemOf, startApi } from './api.ts'

test('issue 13: an edit needs the version that was read; an edit of a stale version gets the current object', async () => {
  const { ask } = await startApi()
  const read = await ask('GET', '/accounts/b')
  const etag = read.headers.get('etag')!
  const edit = (headers: Record<string, string>, body: unknown) => ask('PATCH', '/accounts/b', { body, headers })
  assert.equal(problemOf(await edit({}, { name: 'bb' })), 'precondition_required')
  const done = await edit({ 'if-match': etag }, { name: 'bb', state: 'suspended' })
  assert.deepEqual([done.status, done.body['name'], done.body['state']], [200, 'bb', 'suspended'])
  assert.notEqual(done.headers.get('etag'), etag)
  for (const match of [etag, `W/${done.headers.get('etag')}`, '"", "x"', 'x']) {
    const stale = await ask('PATCH', '/accounts/bb', { body: { name: 'c' }, headers: { 'if-match': match } })
    assert.equal(problemOf(stale), 'precondition_failed')
    assert.equal((stale.body['current'] as unknown as Record<string, string>)['name'], 'bb')
    assert.equal(stale.headers.get('etag'), done.headers.get('etag'))
  }
  assert.equal(
    (await ask('PATCH', '/accounts/bb', { body: { state: 'active' }, headers: { 'if-match': '*' } })).status,
    200,
  )
  const credited = await ask('GET', '/accounts/bb')
  await ask('POST', '/accounts/bb/credits', { body: { credits: '1', reference: 'r' } })
  // Spending and payments in the meantime do not prevent an edit.
  assert.equal((await ask('GET', '/accounts/bb')).headers.get('etag'), credited.headers.get('etag'))
})

test('issue 13: of two simultaneous edits of one version, one is refused', async () => {
  const { ask } = await startApi()
  const etag = (await ask('GET', '/accounts/b')).headers.get('etag')!
  const told = await Promise.all(
    ['x', 'y'].map((name) => ask('PATCH', '/accounts/b', { body: { name }, headers: { 'if-match': etag } })),
  )
  // The path has the old name: the second edit finds it gone, or changed.
  assert.deepEqual(told.map(({ status }) => status).sort(), [200, 404])
  const id = told.find(({ status }) => status === 200)!.body['id']
  const now = (await ask('GET', `/accounts/${id}`)).headers.get('etag')!
  const again = await Promise.all(
    ['u', 'v'].map((name) => ask('PATCH', `/accounts/${id}`, { body: { name }, headers: { 'if-match': now } })),
  )
  assert.deepEqual(again.map(({ status }) => status).sort(), [200, 412])
})

test('C8 issue 13: a creation repeated with the same Idempotency-Key happens once, and a secret is shown once', async () => {
  const { ask, gateway, viewer, books } = await startApi()
  const make = (path: string, body: unknown, key: string, token?: string) =>
    ask('POST', path, { body, headers: { 'idempotency-key': key }, token })
  const both = await Promise.all([1, 2].map(() => make('/accounts', { name: 'new', credit: '2' }, 'k1')))
  assert.deepEqual(
    both.map(({ status }) => status),
    [201, 201],
  )
  assert.equal(both[0]!.text, both[1]!.text)
  assert.equal(gateway.store.findAccount('new').balanceNanos, 2_000_000_000n)
  const first = await make('/accounts/new/keys', { label: 'l' }, 'k2')
  const second = await make('/accounts/new/keys', { label: 'l' }, 'k2')
  assert.match(String(first.body['key']), /^sk-tri-/)
  const { key: _, ...shown } = first.body as unknown as Record<string, string>
  assert.deepEqual([second.status, second.body], [200, shown])
  assert.equal(gateway.store.listKeys('new').length, 1)
  assert.equal(problemOf(await make('/accounts/new/keys', { label: 'm' }, 'k2')), 'idempotency_mismatch')
  assert.equal(problemOf(await make('/accounts', { name: 'other' }, 'k2')), 'idempotency_mismatch')
  assert.equal(problemOf(await make('/accounts', { name: 'other' }, '   ü')), 'invalid_request')
  const operator = await make('/operators', { name: 'eve', role: 'viewer' }, 'k3')
  const replayed = await make('/operators', { name: 'eve', role: 'viewer' }, 'k3')
  assert.deepEqual([operator.status, replayed.status, 'token' in replayed.body], [201, 200, false])
  // Keys of idempotency are their asker's own.
  const other = (await books.createOperator('bob', 'admin', gateway.nowMs() + 1e9)).token
  assert.equal((await make('/accounts/new/keys', { label: 'm' }, 'k2', other)).status, 201)
  assert.equal(problemOf(await make('/accounts', {}, 'k9', viewer)), 'forbidden')
  gateway.advance(86_400_000 - 1)
  const { token } = await books.createOperator('cat', 'admin', gateway.nowMs() + 1e9)
  assert.equal((await make('/accounts', { name: 'kept' }, 'k1', token)).status, 201)
})

test('C8 a repeated creation of an account gets the same answer, whatever limits and metadata the account has', async () => {
  const { ask } = await startApi()
  // These names also have a meaning in the stored form of an answer.
  const names = [{ nanos: '12' }, { nanos: 'red' }, { key: 'CRM-7', token: 'a' }, { metadata: 'b', token: 'c' }]
  const named = names.map((metadata) => ({ metadata }))
  for (const [n, limits] of [{ budget: '50' }, { budget: '50/day' }, { warn: '5,1', rpm: 7 }, ...named].entries()) {
    const make = () =>
      ask('POST', '/accounts', { body: { name: `new ${n}`, ...limits }, headers: { 'idempotency-key': `once-${n}` } })
    const [first, second] = [await make(), await make()]
    assert.deepEqual([first.status, second.status], [201, 201], second.text)
    assert.equal(second.text, first.text)
  }
})

test('C8 issue 13: a credit is idempotent by its reference: 201, then 200, then 409', async () => {
  const { ask } = await startApi()
  const credit = (account: string, credits: string) =>
    ask('POST', `/accounts/${account}/credits`, { body: { credits, reference: 'invoice 1' } })
  const told = [await credit('b', '2.5'), await credit('b', '2.5')]
  assert.deepEqual(
    told.map(({ status, body }) => [status, body['balance']]),
    [
      [201, '9.5'],
      [200, '9.5'],
    ],
  )
  assert.equal(problemOf(await credit('b', '2')), 'reference_conflict')
  assert.equal(problemOf(await credit('tester', '2.5')), 'reference_conflict')
  assert.equal(problemOf(await ask('POST', '/accounts', { body: { name: 'b' } })), 'conflict')
  assert.equal(
    problemOf(await ask('POST', '/accounts/b/credits', { body: { credits: '9223372036', reference: 'x' } })),
    'conflict',
  )
})

test('operate §6 every change has a chained record: who, what, when, from where, before and after; and no secret', async () => {
  const { ask, gateway, keyB } = await startApi()
  const config = ['--config', gateway.configPath]
  const before = gateway.store.listAudit({ limit: 99 }).length
  const { body: made } = await ask('POST', '/accounts', { body: { name: 'audited', credit: '3' } })
  await ask('POST', '/accounts/audited/credits', { body: { credits: '-1', reference: 'fix' } })
  await ask('POST', '/accounts/audited/credits', { body: { credits: '-1', reference: 'fix' } })
  await ask('PATCH', '/accounts/audited', { body: { state: 'suspended' }, headers: { 'if-match': '*' } })
  await ask('PATCH', '/accounts/audited', { body: { state: 'suspended' }, headers: { 'if-match': '*' } })
  const { body: key } = await ask('POST', '/accounts/audited/keys', { body: { label: 'ci' } })
  await ask('PATCH', `/keys/${key['id']}`, { body: { label: null }, headers: { 'if-match': '*' } })
  const { body: next } = await ask('POST', `/keys/${key['id']}/rotate`, { body: { grace: '1h' } })
  await ask('POST', `/keys/${key['id']}/revoke`)
  const { body: operator } = await ask('POST', '/operators', { body: { name: 'eve', role: 'viewer' } })
  await ask('POST', '/operators/eve/revoke')
  await ask('POST', '/accounts', { body: { name: 'audited' } })
  assert.equal((await runWarm(['account', 'rename', 'audited', 'renamed', ...config])).code, 0)
  const rows = gateway.store.listAudit({ limit: 99 }).reverse().slice(before)
  const told = rows.map(({ actor, address, operation, before: from, after }) => [
    actor.replace(/^cli:.+@.+$/, 'cli:user@host'),
    address,
    operation,
    from && JSON.parse(from),
    after && Object.keys(JSON.parse(after)).join(),
  ])
  const ann = ['operator:ann', '127.0.0.1']
  assert.deepEqual(told, [
    [...ann, 'account.create', null, 'name,credit'],
    [...ann, 'account.credit', null, 'amount,reference'],
    [...ann, 'account.update', { state: 'active' }, 'state'],
    [...ann, 'key.create', null, 'account,prefix,label'],
    [...ann, 'key.update', { label: 'ci' }, 'label'],
    [...ann, 'key.rotate', { prefix: key['prefix'], expires: null }, 'expires,successor,prefix'],
    [...ann, 'key.revoke', null, 'prefix,revoked'],
    [...ann, 'operator.create', null, 'name,role,prefix,expires'],
    [...ann, 'operator.revoke', null, 'name,revoked'],
    ['cli:user@host', null, 'account.update', { name: 'audited' }, 'name'],
  ])
  assert.equal(rows[0]!.object, made['id'])
  const text = JSON.stringify(rows)
  for (const secret of [key['key'], next['key'], operator['token'], keyB]) assert.ok(!text.includes(String(secret)))
  const listed = (await ask('GET', '/audit?limit=200&operation=key.rotate')).body.items!
  assert.deepEqual(
    listed.map(({ object, actor }) => [object, actor]),
    [[key['id'], 'operator:ann']],
  )
  const printed = await runWarm(['audit', '--json', '--limit', '1', ...config])
  assert.deepEqual(
    [printed.code, (printed.json as unknown as { operation: string }[])[0]!.operation],
    [0, 'account.update'],
  )
})

test('C15 the audit trail is never changed by SQL, and a change that bypasses this is found', async () => {
  const { ask, gateway, books } = await startApi()
  await ask('POST', '/accounts', { body: { name: 'one' } })
  await ask('POST', '/accounts', { body: { name: 'two' } })
  const whole = await books.verifyAudit()
  assert.deepEqual(whole.findings, [])
  assert.match(whole.head!, /^\d+\/a1:/)
  const db = new DatabaseSync(gateway.storePath)
  for (const sql of [
    "UPDATE audit SET actor = 'nobody' WHERE seq = 3",
    'DELETE FROM audit WHERE seq = 3',
    "INSERT OR REPLACE INTO audit SELECT seq, at_ms, 'nobody', address, operation, object, before, after, digest FROM audit WHERE seq = 3",
  ])
    assert.throws(() => db.exec(sql), /records of the audit trail are never/, sql)
  db.exec('DROP TRIGGER audit_is_not_changed; DROP TRIGGER audit_is_not_deleted')
  db.exec("UPDATE audit SET actor = 'nobody' WHERE seq = 3")
  assert.deepEqual((await books.verifyAudit()).findings, [
    'audit record 3: its digest does not fit, so it or the one before it was changed',
  ])
  const rows = gateway.store.listAudit({ limit: 9 }).reverse()
  db.prepare('UPDATE audit SET digest = ? WHERE seq = 3').run(digestAudit(rows[2]!, rows[1]!.digest))
  assert.match((await books.verifyAudit()).findings.join(), /^audit record 4: its digest does not fit/)
  db.exec('DELETE FROM audit WHERE seq = 2')
  assert.match((await books.verifyAudit()).findings.join(), /audit record 3: the record before it is missing/)
  db.close()
  const told = await runWarm(['audit', 'verify', '--config', gateway.configPath])
  assert.equal(told.code, 1)
  assert.match(told.stdout, /audit record 3/)
})

import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { problemOf, startApi } from './api.ts'

test('Y21 law 10: a name that operators send in path, query and body is stored only in the row of its person', async () => {
  const { ask, gateway } = await startApi()
  const once = { 'idempotency-key': 'k1' }
  const body = { name: 'Qwertzu One', external_id: 'qwertzu-1', email: 'Qwertzu@example.com' }
  const made = await ask('POST', '/persons', { body, headers: once })
  const again = await ask('POST', '/persons', { body, headers: once })
  assert.deepEqual([made.status, again.body['id'], again.body['name']], [201, made.body['id'], 'Qwertzu One'])
  const edit = { body: { name: 'Qwertzu Two' }, headers: { 'if-match': made.headers.get('etag') ?? '*' } }
  const shown = await ask('GET', '/persons/Qwertzu%20One')
  const changed = await ask('PATCH', '/persons/qwertzu-1', {
    ...edit,
    headers: { 'if-match': shown.headers.get('etag')! },
  })
  assert.equal(changed.body['name'], 'Qwertzu Two')
  assert.equal(
    problemOf(await ask('PATCH', '/persons/qwertzu-1', { ...edit, headers: { 'if-match': '"x"' } })),
    'precondition_failed',
  )
  const csv = 'name,external_id\nQwertzu Three,qwertzu-3\nQwertzu Two,qwertzu-1\n'
  assert.deepEqual((await ask('POST', '/persons/import', { body: { csv } })).body, {
    created: 1,
    changed: 0,
    unchanged: 1,
  })
  assert.equal(
    problemOf(await ask('POST', '/persons/import', { body: { csv: 'name\nQwertzu\tX\n' } })),
    'invalid_request',
  )
  await ask('GET', '/persons?q=Qwertzu')
  await ask('POST', '/accounts/b/keys', { body: { person: 'Qwertzu Two' } })
  assert.equal(problemOf(await ask('GET', '/persons/Qwertzu%20Nine')), 'not_found')
  await ask('POST', '/persons/qwertzu-1/link', { body: { other: 'Qwertzu Three' } })
  const db = new DatabaseSync(gateway.storePath, { readOnly: true, readBigInts: true })
  const tables = db.prepare(`SELECT name FROM sqlite_master WHERE type = 'table'`).all()
  const textOf = (table: unknown) =>
    JSON.stringify(db.prepare(`SELECT * FROM ${table}`).all(), (_, value) =>
      typeof value === 'bigint' ? `${value}` : value,
    )
  const found = () => tables.flatMap(({ name }) => (/qwertzu/i.test(textOf(name)) ? [name] : []))
  assert.deepEqual(found(), ['persons'])
  await ask('POST', '/persons/Qwertzu%20Two/erase', { body: {} })
  assert.deepEqual(found(), [])
  db.close()
  assert.doesNotMatch(JSON.stringify(await gateway.logLines()), /qwertzu/i)
})

test('Y21 a list of people that a rule of the books refuses is refused over HTTP with the number of its line', async () => {
  const { ask } = await startApi()
  for (const [csv, detail] of [
    ['name,account\nAnn,tester\nBo,nowhere\n', /^line 3: There is no account "nowhere"/],
    ['name,budget\nDi,5/day\n', /^line 2: A person with a budget/],
    ['name,external_id\nA,u-1\nB,u-1\n', /^line 3: It is of the same person as line 2/],
  ] as const) {
    const { body } = await ask('POST', '/persons/import', { body: { csv } })
    assert.match(body['detail']!, detail)
    const errors = body['errors'] as unknown as { pointer: string }[]
    assert.deepEqual(
      errors.map(({ pointer }) => pointer),
      ['/csv'],
    )
  }
})

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { problemOf, startApi } from '../operations/api.ts'
import { until } from '../support/waiting.ts'

const question = { model: 'native-chat', messages: [{ role: 'user', content: 'canary-demo' }] }

async function start() {
  const api = await startApi()
  const { gateway, admin } = api
  const path = join(dirname(gateway.storePath), 'demo.db')
  const look = (below: string, token = admin, method = 'GET') =>
    fetch(`${gateway.adminUrl}/demo/api/v1${below}`, { method, headers: { authorization: `Bearer ${token}` } })
  const read = async (below: string, token?: string) => {
    const answer = await look(below, token)
    assert.equal(answer.status, 200, await answer.clone().text())
    return (await answer.json()) as Record<string, never> & { items: Record<string, never>[] }
  }
  return { ...api, path, look, read }
}

test('CON-P7 the demo is made in its own file, is read-only, and its file is removed when the demo is left', async () => {
  const { ask, gateway, path, look, read, viewer } = await start()
  assert.deepEqual((await ask('GET', '/demo')).body, { offered: true, made: false, making: false })
  assert.equal((await look('/accounts')).status, 404)
  const before = gateway.store.listAccounts().length
  const made = ask('POST', '/demo')
  await until(async () => (await ask('GET', '/demo')).body['making'] === true, 'the demo is being made')
  // Asked again it is the same one, while it is made and later.
  assert.equal((await ask('POST', '/demo')).status, 200)
  assert.deepEqual((await made).body, { offered: true, made: true, making: false })
  assert.equal((await ask('POST', '/demo')).status, 200)
  for (const token of [undefined, viewer]) {
    assert.equal((await read('/accounts?limit=50', token)).items.length, 8)
    assert.equal((await read('/keys?limit=50', token)).items.length, 24)
    const requests = (await read('/requests?limit=5', token)).items
    assert.equal(requests.length, 5)
    const explained = await read(`/requests/${requests[0]!['request_id']}/explain`, token)
    assert.equal(explained['request_id'], requests[0]!['request_id'])
    await until(async () => (await read('/needs', token)).items.length > 0, 'the demo needs somebody')
  }
  const usage = await read('/usage?by=model&measures=credits,requests,errors,first_byte_ms&last=30d&bucket=day')
  assert.equal((usage['series'] as unknown as unknown[]).length, 4)
  for (const [method, below] of [
    ['POST', '/accounts'],
    ['POST', '/session'],
    ['DELETE', '/demo'],
    ['GET', '/events'],
  ] as const)
    assert.equal((await look(below, undefined, method)).status, 403, `${method} ${below}`)
  assert.equal((await look('/accounts', 'tri-op-wrong')).status, 401)
  // The real store has no part in it.
  assert.equal(gateway.store.listAccounts().length, before)
  assert.deepEqual((await ask('DELETE', '/demo')).body, { offered: true, made: false, making: false })
  assert.deepEqual(
    readdirSync(dirname(path)).filter((name) => name.startsWith('demo')),
    [],
  )
  assert.equal((await look('/accounts')).status, 404)
  // A request that changes nothing leaves no record.
  await ask('DELETE', '/demo')
  const { items } = (await ask('GET', '/audit?limit=50')).body as unknown as { items: { operation: string }[] }
  const acts = items.map(({ operation }) => operation).filter((one) => one.startsWith('demo.'))
  assert.deepEqual(acts, ['demo.remove', 'demo.make'])
})

test('CON-P7 no demo is offered after a request was billed, and a user’s file with its name stays unchanged', async () => {
  const { ask, gateway, path } = await start()
  const notes = new DatabaseSync(`${path}.notes`)
  notes.exec('CREATE TABLE notes (text)')
  notes.close()
  for (const bytes of [Buffer.from('a file of somebody'), Buffer.alloc(0), readFileSync(`${path}.notes`)]) {
    writeFileSync(path, bytes, { mode: 0o600 })
    assert.deepEqual((await ask('GET', '/demo')).body, { offered: false, made: false, making: false })
    assert.equal(problemOf(await ask('POST', '/demo')), 'conflict')
    await ask('DELETE', '/demo')
    assert.deepEqual(readFileSync(path), bytes)
  }
  const other = await start()
  await (await other.gateway.post('/v1/chat/completions', question)).text()
  assert.deepEqual((await other.ask('GET', '/demo')).body, { offered: false, made: false, making: false })
  assert.equal(problemOf(await other.ask('POST', '/demo')), 'conflict')
  assert.ok(!existsSync(other.path) && gateway)
})

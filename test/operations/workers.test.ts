import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import test from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { run } from '../cli/run.ts'
import { openOperator } from '../store/postgres/opened.ts'
import { startPostgres, withoutPostgres } from '../support/postgres.ts'
import { configFile, model, newFolder, serve } from '../support/serve.ts'
import { until } from '../support/waiting.ts'
import { readEvents } from './event-reader.ts'

test('X7 X9 --workers: any worker answers operators for all, at the shared port and its own; only a worker can call another', {
  skip: withoutPostgres(),
}, async () => {
  const postgres = await startPostgres()
  const folder = newFolder()
  const config = configFile(folder, model('m'))
  const url = postgres.createDatabase('ops')
  const store = `store: ${url}\nstate_dir: ./state\nseal_key: ${Buffer.from('a seal key of thirty-two bytes..').toString('base64')}`
  writeFileSync(config, readFileSync(config, 'utf8').replace('store: ./triwire.db', store))
  const made = await run(['operator', 'create', 'ann', '--role', 'admin', '--json', '--config', config])
  assert.equal(made.code, 0, made.stderr)
  const { token } = made.json
  const served = serve(['--workers', '2', '--config', config], folder)
  const admin = await served.adminUrl()
  const ask = async (path: string, init: RequestInit = {}, origin = admin) => {
    const response = await fetch(`${origin}/api/v1${path}`, { headers: { authorization: `Bearer ${token}` }, ...init })
    return { status: response.status, body: (await response.json()) as { items: Record<string, unknown>[] } }
  }
  assert.equal((await ask('/upstreams', { headers: {} })).status, 401)
  const upstreams = await ask('/upstreams')
  // Retries are those of the worker that was asked.
  assert.deepEqual(
    upstreams.body.items.map(({ retries_left }) => retries_left),
    [10],
  )
  const own = [...served.stderr().matchAll(/"worker_listening".*?"own":"([^"]+)"/g)].map(
    ([, address]) => `http://${address}`,
  )
  assert.equal(new Set(own).size, 2)
  const { database } = await openOperator(url)
  const readDoors = () => database.query('SELECT door FROM triwire.replicas WHERE door IS NOT NULL')
  await until(async () => (await readDoors()).length === 2, 'both are registered')
  assert.deepEqual(
    (await ask('/models')).body.items.map(({ id }) => id),
    ['m'],
  )
  const body = JSON.stringify({ name: 'one', credit: '2' })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  assert.equal((await ask('/accounts', { method: 'POST', body, headers })).status, 201)
  const watched = await readEvents(admin, { authorization: `Bearer ${token}` })
  await watched.wait('tick', 2)
  const played = await Promise.all(
    own.map(async (origin) => {
      const asked = { account: 'one', wire: 'chat', body: { model: 'm', messages: [{ role: 'user', content: 'hi' }] } }
      const response = await fetch(`${origin}/api/v1/playground`, {
        method: 'POST',
        body: JSON.stringify(asked),
        headers,
      })
      await response.text()
      return { status: response.status, id: response.headers.get('x-request-id') }
    }),
  )
  assert.deepEqual(
    played.map(({ status }) => status),
    [502, 502],
  )
  const finished = await watched.wait('request.finished', 2)
  const played_ids = played.map(({ id }) => id).sort()
  assert.deepEqual(finished.map(({ data }) => data['request_id']).sort(), played_ids)
  for (const origin of own) {
    const listed_requests = (await ask('/requests?account=one', {}, origin)).body.items
    assert.deepEqual(listed_requests.map(({ request_id }) => request_id).sort(), played_ids)
    for (const id of played_ids) {
      const explained = (await ask(`/requests/${id}/explain`, {}, origin)).body as unknown as Record<string, unknown>
      // Attempts are known in the memory of the worker that served it, and not in the ledger.
      assert.ok(Array.isArray(explained['attempts']), id!)
    }
    const scraped = await (await fetch(`${origin}/metrics`)).text()
    assert.match(scraped, /^triwire_ledger_writable\{replica="[^"]+ worker [12]"\} 1$/m)
  }
  // Each of them has counted one of these. The one that is asked writes its own before it answers, the other soon after.
  await until(async () => {
    const { total } = (await ask('/usage?bucket=all&measures=requests,errors')).body as unknown as {
      total: Record<string, number[]>
    }
    return isDeepStrictEqual(total, { requests: [2], errors: [2] })
  }, 'both are counted')
  const status = (await ask('/status')).body as unknown as Record<string, unknown>
  assert.deepEqual([status['store'], status['ready'], status['streams']], ['postgres', true, 0])
  const off = await ask('/upstreams/sim/disable', { method: 'POST', headers })
  assert.deepEqual(
    off.body.items.map(({ state }) => state),
    ['disabled'],
  )
  assert.equal((await ask('/upstreams/sim/enable', { method: 'POST', headers })).body.items[0]!['state'], 'ready')
  watched.close()
  const { json } = await run(['audit', '--json', '--config', config])
  assert.deepEqual(
    json.map(({ actor, operation }) => [actor!.replace(/^cli:.*/, 'cli'), operation]),
    [
      ['operator:ann', 'upstream.enable'],
      ['operator:ann', 'upstream.disable'],
      ['operator:ann', 'playground'],
      ['operator:ann', 'playground'],
      ['operator:ann', 'account.create'],
      ['cli', 'operator.create'],
    ],
  )
  const listed = await run(['upstreams', '--json', '--config', config, '--admin-listen', new URL(admin).host])
  assert.deepEqual([listed.code, listed.json.length], [0, 1])
  const doors = (await readDoors()) as { door: string }[]
  for (const origin of [admin, ...own]) {
    assert.equal((await fetch(`${origin}/api/v1/upstreams`)).status, 401)
    for (const { door } of doors) {
      const { key } = JSON.parse(door)
      // An operator may not, and neither may a person who has read the key in the database.
      for (const shown of [token, key]) {
        const asked = { method: 'POST', headers: { authorization: `Bearer ${shown}` }, body: '[]' }
        assert.equal((await fetch(`${origin}/internal/${key}/readHolds`, asked)).status, 404)
      }
    }
  }
  assert.equal(doors.length, 2)
  served.child.kill('SIGTERM')
  assert.equal(await served.exited, 0)
})

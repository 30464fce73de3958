import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import test from 'node:test'
import { run } from '../cli/run.ts'
import { startPostgres, withoutPostgres } from '../support/postgres.ts'
import { configFile, model, newFolder, serve } from '../support/serve.ts'
import { readEvents } from './event-reader.ts'

test('X7 X9 --workers: one admin API for all, which operators of the shared store ask, and nobody else asks a worker', {
  skip: withoutPostgres(),
}, async () => {
  const postgres = await startPostgres()
  const folder = newFolder()
  const config = configFile(folder, model('m'))
  const store = `store: ${postgres.createDatabase('ops')}\nstate_dir: ./state\nseal_key: ${Buffer.alloc(32, 7).toString('base64')}`
  writeFileSync(config, readFileSync(config, 'utf8').replace('store: ./triwire.db', store))
  const made = await run(['operator', 'create', 'ann', '--role', 'admin', '--json', '--config', config])
  assert.equal(made.code, 0, made.stderr)
  const { token } = made.json
  const served = serve(['--workers', '2', '--config', config], folder)
  const admin = await served.adminUrl()
  const ask = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`${admin}/api/v1${path}`, { headers: { authorization: `Bearer ${token}` }, ...init })
    return { status: response.status, body: (await response.json()) as { items: Record<string, unknown>[] } }
  }
  assert.equal((await ask('/upstreams', { headers: {} })).status, 401)
  const upstreams = await ask('/upstreams')
  // Ten of each of the two workers.
  assert.deepEqual(
    upstreams.body.items.map(({ retries_left }) => retries_left),
    [20],
  )
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
    [1, 2].map(async () => {
      const asked = { account: 'one', wire: 'chat', body: { model: 'm', messages: [{ role: 'user', content: 'hi' }] } }
      const response = await fetch(`${admin}/api/v1/playground`, {
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
  const listed_requests = (await ask('/requests?account=one')).body.items
  assert.deepEqual(listed_requests.map(({ request_id }) => request_id).sort(), played_ids)
  // Each of them has counted one of these, and writes it when figures are read.
  const { total } = (await ask('/usage?bucket=all&measures=requests,errors')).body as unknown as {
    total: Record<string, number[]>
  }
  assert.deepEqual(total, { requests: [2], errors: [2] })
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
  const workers = [...served.stderr().matchAll(/"worker_listening".*?"admin":"([^"]+)"/g)].map(([, address]) => address)
  for (const worker of workers) {
    assert.equal((await fetch(`http://${worker}/api/v1/upstreams`)).status, 401)
    // What it answers the process that has started it is not there for others, whatever they show.
    const door = await fetch(`http://${worker}/internal/readHolds`, { method: 'POST', headers, body: '[]' })
    assert.equal(door.status, 404)
  }
  assert.equal(workers.length, 2)
  served.child.kill('SIGTERM')
  assert.equal(await served.exited, 0)
})

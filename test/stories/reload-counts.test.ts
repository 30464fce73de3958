import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import type { Config } from '../../src/config/config.ts'
import { startTestGateway } from '../support/gateway.ts'

/*
 * A reload puts another configuration in force (`RunningServer.reload`). What it counts goes on counting.
 */

async function start(t: TestContext, limits: Record<string, number>) {
  const gateway = await startTestGateway({ config: { limits } })
  t.after(() => gateway.close())
  const reload = (changes: Partial<Config['limits']> = {}) => {
    const config = gateway.server.gateway.snapshots.current.config
    gateway.server.reload({ ...config, limits: { ...config.limits, ...changes } })
  }
  const ask = async (key = gateway.key) => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'x-api-key': key },
      // What is no JSON is refused behind the window, and costs nothing.
      body: '[]',
    })
    const { error } = (await response.json()) as { error: { code: string } }
    return error.code
  }
  return { reload, ask }
}

test('spec 8 a reload keeps the rate windows, also if it changes the limit', async (t) => {
  const { reload, ask } = await start(t, { requests_per_minute: 2 })
  assert.deepEqual([await ask(), await ask(), await ask()], ['invalid_body', 'invalid_body', 'rate_limit_exceeded'])
  reload()
  assert.equal(await ask(), 'rate_limit_exceeded')
  reload({ failedAuthPerMinute: 99 })
  assert.equal(await ask(), 'rate_limit_exceeded')
  reload({ requestsPerMinute: 3 })
  assert.deepEqual([await ask(), await ask()], ['invalid_body', 'rate_limit_exceeded'])
})

test('R4 a reload keeps the counted failures, also if it changes the limit', async (t) => {
  const { reload, ask } = await start(t, { failed_auth_per_minute: 1 })
  assert.deepEqual([await ask('x'), await ask('x')], ['invalid_api_key', 'too_many_failed_auth'])
  reload()
  assert.equal(await ask('x'), 'too_many_failed_auth')
  reload({ requestsPerMinute: 99 })
  assert.equal(await ask('x'), 'too_many_failed_auth')
  reload({ failedAuthPerMinute: 2 })
  assert.deepEqual([await ask('x'), await ask('x')], ['invalid_api_key', 'too_many_failed_auth'])
})

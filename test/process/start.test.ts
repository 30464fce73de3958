import assert from 'node:assert/strict'
import { join } from 'node:path'
import test from 'node:test'
import { type GatewayOptions, startGateway } from '../../src/process/start.ts'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { atEnd } from '../support/at-end.ts'
import { testFolder } from '../support/folder.ts'
import { openStore } from '../support/operator.ts'

/* The gateway in the process of another program, as the package exports it (docs/embedding.md). */

async function start(options: Partial<GatewayOptions> = {}) {
  const gateway = await startGateway({ store: join(testFolder('embedded'), 'made/triwire.db'), ...options })
  atEnd(() => gateway.close())
  return gateway
}

function ask(url: string, key: string, model: string) {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'canary-embedded' }] })
  return fetch(`${url}/v1/chat/completions`, { method: 'POST', headers: { authorization: `Bearer ${key}` }, body })
}

test('X8 a gateway in process has the simulator and a demo key, and is gone when it is closed', async () => {
  const gateway = await start()
  assert.equal((await ask(gateway.url, gateway.demoKey!, 'sim-messages')).status, 200)
  assert.equal((await fetch(`${gateway.adminUrl}/readyz`)).status, 200)
  await gateway.close()
  await assert.rejects(fetch(`${gateway.url}/v1/models`))
  await gateway.close()
})

test('X8 a gateway in process takes its configuration as an object, and creates accounts', async () => {
  const upstream = await startSimulator({ record: true })
  atEnd(upstream.close)
  const prices = { input: '1', output: '2' }
  const model = { id: 'mine', wire: 'messages', upstream: 'own', upstream_model: 'sim', max_output_tokens: 900, prices }
  const gateway = await start({
    config: {
      catalog: { pinned: '2026-11-01', models: [model] },
      upstreams: { own: { base_url: upstream.url, accounts: [{ name: 'a', key: 'canary-upstream' }] } },
    },
  })
  assert.equal(gateway.demoKey, undefined)
  const { key } = await gateway.createAccount('app', '2.5')
  assert.equal((await ask(gateway.url, key, 'mine')).status, 200)
  assert.equal(upstream.requests.length, 1)
  const poor = await gateway.createAccount('poor')
  assert.equal((await ask(gateway.url, poor.key, 'mine')).status, 402)
  await assert.rejects(gateway.createAccount('app'), { code: 'name_taken' })
  await assert.rejects(gateway.createAccount('owing', '-1'), /cannot start below zero/)
  await gateway.close()
  await assert.rejects(gateway.createAccount('late'), /the gateway is closed/)
})

test('X8 a gateway in process refuses unknown options, and starts no store with another name', async () => {
  const store = join(testFolder('embedded'), 'triwire.db')
  const asked = (options: object) => startGateway(options as GatewayOptions)
  await assert.rejects(asked({ store, lisen: '127.0.0.1:0' }), /lisen is not an option: .* store, config, listen,/)
  await assert.rejects(asked({ stroe: store }), /stroe is not an option/)
  await assert.rejects(asked({}), /store must be the path of a SQLite file/)
})

test('N-F12 a gateway in process refuses the demo account on real models, until it is deliberately given credit', async () => {
  const store = join(testFolder('embedded'), 'triwire.db')
  const first = await start({ store })
  const demoKey = first.demoKey!
  await first.close()
  const upstream = await startSimulator({ record: true })
  atEnd(upstream.close)
  const model = { id: 'real', wire: 'chat', upstream: 'own', upstream_model: 'sim', max_output_tokens: 900 }
  const config = {
    catalog: { pinned: '2026-11-01', models: [{ ...model, prices: { input: '1', output: '2' } }] },
    upstreams: { own: { base_url: upstream.url, accounts: [{ name: 'a', key: 'canary-upstream' }] } },
  }
  const real = await start({ store, config })
  const refused = await ask(real.url, demoKey, 'real')
  const { error } = (await refused.json()) as { error: { code: string } }
  assert.deepEqual([refused.status, error.code, upstream.requests.length], [401, 'account_suspended', 0])
  // Another account is as welcome as ever.
  const { key } = await real.createAccount('app', '1')
  assert.equal((await ask(real.url, key, 'real')).status, 200)
  await real.close()
  const books = openStore(store)
  books.credit('demo', 1n, 'on purpose')
  books.close()
  const meant = await start({ store, config })
  assert.equal((await ask(meant.url, demoKey, 'real')).status, 200)
})

test('X8 a gateway in process that cannot start leaves nothing running', async () => {
  const first = await start()
  const taken = new URL(first.url).host
  const store = join(testFolder('embedded'), 'triwire.db')
  await assert.rejects(startGateway({ store, listen: taken }), { code: 'EADDRINUSE' })
  await assert.rejects(
    startGateway({ store, config: { limitz: {} } }),
    /^ConfigError: config:1: limitz is not a known key/,
  )
  // The store is free again.
  const second = await start({ store })
  assert.equal(typeof second.demoKey, 'undefined')
})

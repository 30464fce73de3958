import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { runWarm } from '../cli/run.ts'
import { startApi } from '../operations/api.ts'
import { createAuthority } from '../support/certificates.ts'
import { testModel } from '../support/gateway.ts'
import { startRawUpstream, whole } from '../support/raw-upstream.ts'
import { startReceiver } from '../support/receiver.ts'
import { until } from '../support/waiting.ts'

const chat = '/v1/chat/completions'
const question = { model: 'native-chat', messages: [{ role: 'user', content: 'canary-needs' }] }
const minuteMs = 60_000

test('CON-P3 lines appear and vanish over HTTP, in status and on the command line; the finance role sees only money', async () => {
  const { ask, books, gateway, viewer } = await startApi({
    credit: '0.001',
    models: [testModel('native-chat', 'chat'), testModel('down', 'chat', { upstream: 'gone' })],
    upstream: (url) => ({
      upstreams: {
        sim: { base_url: url, accounts: [{ name: 'a', key: 'upstream-key-1' }] },
        gone: { base_url: 'http://127.0.0.1:9', accounts: [{ name: 'a', key: 'upstream-key-2' }] },
      },
    }),
  })
  type Line = { rule: string; since: string | null; link: string; command: string; text: string }
  const list = async (token?: string) => {
    gateway.advance(11_000)
    return (await ask('GET', '/needs', { token })).body.items as unknown as Line[]
  }
  const rules = async (token?: string) => (await list(token)).map(({ rule }) => rule)
  assert.deepEqual(await rules(), [])
  assert.match((await runWarm(['needs', ...serverOf(gateway)])).stdout, /Nothing needs you/)
  await (await gateway.post(chat, question)).text()
  for (let at = 0; at < 5; at++) await (await gateway.post(chat, { ...question, model: 'down' })).text()
  // The figures of a week are read every five minutes.
  gateway.advance(5 * minuteMs)
  await until(async () => (await rules()).includes('account_dry'), 'the debit is in the figures')
  assert.deepEqual((await rules()).toSorted(), ['account_dry', 'model_failing'])
  const account = gateway.store.findAccount('tester')
  const dry = (await list()).find(({ rule }) => rule === 'account_dry')!
  assert.deepEqual([dry.link, dry.command.split(' ')[3]], [`accounts/${account.id}`, account.id])
  assert.ok(Date.parse(dry.since!) <= gateway.nowMs())
  const { token: finance } = await books.createOperator('fin', 'finance', gateway.nowMs() + 86_400_000)
  assert.deepEqual(await rules(finance), ['account_dry'])
  const told = await runWarm(['status', ...serverOf(gateway)], { env: { TRIWIRE_TOKEN: viewer } })
  assert.ok(told.stdout.includes(dry.text) && told.stdout.includes(dry.command), told.stdout + told.stderr)
  const { body } = await ask('GET', '/status')
  assert.deepEqual(
    (body['needs'] as unknown as Line[]).map(({ rule }) => rule),
    await rules(),
  )
  await books.credit(account.id, 1_000_000_000n, 'invoice')
  assert.deepEqual(await rules(), ['model_failing'])
})

test('X15 CON-P3 a webhook gets each line once, with its act, and only if it asks for that event', async () => {
  const [one, other] = [await startReceiver(), await startReceiver()]
  const secret = 'a plain secret of hooks'
  const { gateway, books } = await startApi({
    config: {
      admin: { public_url: 'https://ops.example/triwire' },
      webhooks: [
        { url: one.url, secret, events: ['needs_changed'] },
        { url: other.url, secret },
      ],
    },
  })
  const { id } = await books.createAccount('acme')
  await books.updateKey((await books.createKey(id, { label: 'ci' })).id, {})
  const look = async () => {
    gateway.advance(minuteMs)
    await gateway.server.webhooks.look()
    await gateway.server.webhooks.look()
  }
  await look()
  assert.equal(one.received.length, 0)
  const db = new DatabaseSync(gateway.storePath)
  db.exec(`UPDATE keys SET created_ms = created_ms - ${91 * 86_400_000} WHERE label = 'ci'`)
  db.close()
  await until(async () => {
    await look()
    return one.received.length > 0
  }, 'the line is told')
  for (let at = 0; at < 3; at++) await look()
  assert.equal(one.received.length, 1)
  const { body } = one.received[0]!
  const [key] = await books.listKeys(id)
  assert.deepEqual(
    [body.type, body.data],
    [
      'needs_changed',
      {
        need: `key_unused:${key!.id}`,
        severity: 'note',
        text: 'Key ci of acme was not used for 91 days.',
        link: `https://ops.example/triwire/console/keys/${key!.id}`,
        command: `triwire key revoke ${key!.id}`,
      },
    ],
  )
  assert.deepEqual(other.received, [])
})

test('CON-P3 a server makes lines from its own configuration, upstreams, webhooks and certificates', async () => {
  const dayMs = 86_400_000
  const { certFile, keyFile } = createAuthority().issue('localhost', 10)
  const upstream = await startRawUpstream()
  upstream.play(whole({ error: { message: 'no', type: 'invalid_request_error' } }, 401))
  const prices = { input: '1', output: '1' }
  const from = new Date(Date.now() + 5 * dayMs).toISOString()
  const { ask, gateway } = await startApi({
    cools: true,
    models: [
      testModel('native-chat', 'chat', { prices: [prices, { ...prices, from, input: '2' }] }),
      testModel('refused', 'chat', { upstream: 'strict' }),
      testModel('down', 'chat', { upstream: 'gone' }),
    ],
    upstream: (url) => ({
      upstreams: {
        sim: { base_url: url, accounts: [{ name: 'a', key: 'upstream-key-1' }] },
        strict: { base_url: upstream.url, accounts: [{ name: 'a', key: 'upstream-key-2' }] },
        // The last account of a model is never left alone.
        gone: {
          base_url: 'http://127.0.0.1:9',
          accounts: ['a', 'b'].map((name) => ({ name, key: `upstream-key-${name}` })),
        },
      },
    }),
    config: {
      webhooks: [{ url: 'http://127.0.0.1:9/hook', secret: 'a plain secret of hooks', events: ['upstream_down'] }],
    },
  })
  const list = async () => {
    gateway.advance(11_000)
    return (await ask('GET', '/needs')).body.items as unknown as { rule: string; text: string }[]
  }
  const rules = async () => (await list()).map(({ rule }) => rule)
  assert.deepEqual(await rules(), ['price_change'])
  const post = async (model: string) => (await gateway.post(chat, { ...question, model })).text()
  await post('refused')
  await gateway.server.webhooks.look()
  for (let at = 0; at < 4; at++) {
    await post('down')
    gateway.advance(30_000 * 2 ** at)
  }
  const soon = await rules()
  assert.ok(soon.includes('upstream_refused') && soon.includes('webhook_unheard'), soon.join())
  for (let at = 0; at < 3; at++) {
    gateway.advance(4 * minuteMs)
    await post('down')
  }
  const texts = (await list()).map(({ text }) => text)
  assert.ok(
    texts.some((text) => /^Upstream account gone\/[ab] has failed for \d+ minutes \(upstream_connect\)\.$/.test(text)),
    texts.join('\n'),
  )
  assert.ok(texts.includes('Upstream account strict/a is refused by its provider (upstream_401).'))
  assert.ok(
    texts.includes('Webhook http://127.0.0.1:9/hook does not take its messages: 1 message waits.'),
    texts.join('\n'),
  )
  const secured = await startApi({ config: { tls: { cert: certFile, key: keyFile } } })
  const [line] = (await secured.ask('GET', '/needs')).body.items as unknown as { rule: string; text: string }[]
  assert.match(line!.text, /^The certificate of the client listener ends in 9 days\.$/)
})

function serverOf({ configPath, adminUrl }: { configPath: string; adminUrl: string }): string[] {
  return ['--config', configPath, '--admin-listen', new URL(adminUrl).host]
}

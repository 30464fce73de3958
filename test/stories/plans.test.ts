import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import fc from 'fast-check'
import { parseCredits } from '../../src/accounts/credit.ts'
import { digestKey } from '../../src/accounts/keys.ts'
import { type Tier, tiers } from '../../src/catalog/model.ts'
import { ratesAt } from '../../src/catalog/price-list.ts'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { planMistakes, readPlans, readPriceList } from '../../src/config/price-list.ts'
import {
  calendars as calendarsSchema,
  type PlanEntries,
  type PricesEntry,
  plans as plansSchema,
  prices as pricesSchema,
} from '../../src/config/price-schema.ts'
import { runWarm } from '../cli/run.ts'
import { startApi } from '../operations/api.ts'
import { verifyOptions } from '../store/fixtures.ts'
import { testFolder } from '../support/folder.ts'
import { testModel } from '../support/gateway.ts'
import { answers, startNative } from '../support/native.ts'
import { openStore } from '../support/operator.ts'
import { whole } from '../support/raw-upstream.ts'
import { configFile, model, newFolder, serve } from '../support/serve.ts'
import { until } from '../support/waiting.ts'

/* Plans of accounts (issue 46, point 3): a factor over all lists, or prices of single models, after band, tier and step. */

const plansOf = (plans: unknown) => plansSchema.parse(plans) as PlanEntries
const pricesOf = (prices: unknown) => pricesSchema.parse(prices) as PricesEntry

const dollars = fc.integer({ min: 0, max: 40 }).map((quarters) => `${quarters / 4}`)
const factors = fc.constantFrom('0.5', '0.9', '1', '1.25', '2')
const rates = fc.record({ input: dollars, cache_read: dollars, output: dollars })

test('law 7 a plan is applied last, after band, tier, geography and step, and equals a list with all prices multiplied', () => {
  const written = fc.record({
    base: rates,
    step: rates,
    times: fc.record({ band: factors, tier: factors, geo: factors, plan: factors }),
    at: fc.integer({ min: Date.UTC(2026, 0), max: Date.UTC(2027, 0) }),
    tier: fc.option(fc.constantFrom<Tier>(...tiers), { nil: undefined }),
    geo: fc.option(fc.constant('us'), { nil: undefined }),
    inputTokens: fc.constantFrom(0, 1_000, 1_001),
  })
  fc.assert(
    fc.property(written, ({ base, step, times, at, tier, geo, inputTokens }) => {
      const listOf = (factor: number) => {
        const scale = (one: object) =>
          Object.fromEntries(
            Object.entries(one).map(([name, text]) => [name, `${Number((Number(text) * factor).toFixed(9))}`]),
          )
        return pricesOf({
          ...scale(base),
          steps: [{ above: 1_000, ...scale(step) }],
          calls: { web_search: '0.01' },
          bands: [{ name: 'peak', zone: 'UTC', hours: '09:00-17:00', times: times.band }],
          tiers: { flex: times.tier },
          geos: { us: times.geo },
        })
      }
      const facts = { at, tier, geo, inputTokens }
      const after = readPlans({ id: 'm', prices: listOf(1) }, { plans: plansOf({ gold: { times: times.plan } }) })
      const before = readPriceList(listOf(Number(times.plan)))
      assert.deepEqual(ratesAt(after.get('gold')!, facts), ratesAt(before, facts))
    }),
  )
})

test('C11 the prices of a plan for one model have bands of their own, with the days of their calendar', () => {
  const band = { name: 'peak', days: 'mon-fri', hours: '09:00-12:00', not_on: 'cn', times: '2' }
  const plans = plansOf({ gold: { times: '3', models: { m: { input: '1', output: '1', bands: [band] } } } })
  const calendars = { cn: { zone: 'Asia/Shanghai', through: '2026-12-31', days: ['2026-10-01'] } }
  const model = { id: 'm', prices: pricesOf({ input: '7', output: '7' }) }
  const list = readPlans(model, { plans, calendars: calendarsSchema.parse(calendars) }).get('gold')!
  const nanosAt = (time: string) => ratesAt(list, { at: Date.parse(time), inputTokens: 1 }).rates.inputNanos
  // The hours are those of Shanghai: 01:00 to 04:00 in UTC.
  assert.deepEqual(
    ['2026-09-30T00:59Z', '2026-09-30T01:00Z', '2026-10-01T01:00Z', '2026-10-02T01:00Z'].map(nanosAt),
    ['1', '2', '1', '2'].map(parseCredits),
  )
})

test('C11 an account pays by its plan from the next request on, on all wires and under all names; other accounts do not', async () => {
  const models = clientWireNames.map((wire) => ({
    ...testModel(`m-${wire}`, wire, { prices: { input: '3', output: '15', tiers: { flex: '0.5' } } }),
    also: [`also-${wire}`],
  }))
  const plans = { gold: { times: '0.9', models: { 'm-responses': '0.5', 'm-messages': { input: '1', output: '1' } } } }
  const config = join(testFolder('plans'), 'plans.yaml')
  writeFileSync(config, JSON.stringify({ plans: { gold: {}, silver: {} } }))
  const native = await startNative({ models, config: { plans } })
  const { gateway, upstream } = native
  const set = async (plan: string) => {
    const asked = ['account', 'set', 'tester', '--plan', plan, '--store', gateway.storePath, '--config', config]
    const { code, stderr } = await runWarm(asked)
    assert.equal(code, 0, stderr)
    const known = () => gateway.ledger.directory.findKnownKey(digestKey(gateway.key))?.account.plan
    await until(() => known() === (plan === 'none' ? undefined : plan), 'the server knows the plan')
  }
  const ask = async (wire: (typeof clientWireNames)[number], name: string) => {
    upstream.play(whole(answers[wire]))
    const { status, id } = await native.ask(wire, { model: `${name}-${wire}` })
    assert.equal(status, 200)
    return gateway.store.findEntry(id)!.amountNanos
  }
  // Nine tokens of input and three of output.
  const listed = 9n * 3_000n + 3n * 15_000n
  const gold = { chat: (listed * 9n) / 10n, responses: listed / 2n, messages: 12n * 1_000n }
  for (const wire of clientWireNames) assert.equal(await ask(wire, 'm'), listed)
  await set('gold')
  for (const wire of clientWireNames) for (const name of ['m', 'also']) assert.equal(await ask(wire, name), gold[wire])
  await set('silver')
  assert.equal(await ask('chat', 'm'), listed, 'a plan that is not configured is the list')
  await set('none')
  assert.equal(await ask('chat', 'm'), listed)
  assert.deepEqual(gateway.store.verify(verifyOptions), [])
  await native.close()
})

test('C11 errors of plans name their key: a result with more than nine decimal places, and an unknown model', () => {
  const models = [{ id: 'm', prices: pricesOf({ input: '0.000000003', output: '1' }) }]
  const mistakesOf = (plans: unknown) =>
    [...planMistakes({ plans: plansOf(plans), calendars: {}, models })].map(({ path }) => path.join('.'))
  assert.deepEqual(mistakesOf({ a: { times: '0.5' } }), ['plans.a.times'])
  assert.deepEqual(mistakesOf({ a: { models: { m: '0.5' } } }), ['plans.a.models.m'])
  assert.deepEqual(mistakesOf({ a: { models: { other: '0.5' } } }), ['plans.a.models.other'])
  assert.deepEqual(mistakesOf({ a: { times: '2', models: { m: { input: '1', output: '2' } } } }), [])
  const dated = [
    { input: '1', output: '1' },
    { input: '2', output: '2' },
  ]
  assert.deepEqual(mistakesOf({ a: { models: { m: dated } } }), ['plans.a.models.m.1.from'])
  for (const times of ['0', '-1', 'x', '1.0000000001']) assert.throws(() => plansOf({ a: { times } }), times)
})

test('C11 an account can get a configured plan; a mistyped one is refused with the cure, by command line and HTTP', async () => {
  const { gateway, ask } = await startApi({ config: { plans: { gold: { times: '0.9' } } } })
  const file = join(testFolder('plans'), 'gold.yaml')
  writeFileSync(file, 'plans: { gold: { times: "0.9" } }')
  const cure = /There is no plan "glod": declare it in the configuration, under plans/
  const cli = (...args: string[]) => runWarm([...args, '--store', gateway.storePath, '--config', file])
  const made = { create: ['account', 'create', 'new'], set: ['account', 'set', 'tester'] }
  for (const command of [made.set, made.create]) {
    const refused = await cli(...command, '--plan', 'glod')
    assert.notEqual(refused.code, 0)
    assert.match(refused.stderr, new RegExp(`--plan: ${cure.source}`))
    const { code, stderr } = await cli(...command, '--plan', 'gold')
    assert.equal(code, 0, stderr)
  }
  assert.equal(gateway.store.findAccount('new').bounds.plan, 'gold')
  const askFor = async (plan: string) => {
    const name = `with-${plan}`
    return [
      await ask('POST', '/accounts', { body: { name, plan } }),
      await ask('PATCH', '/accounts/tester', { body: { plan }, headers: { 'if-match': '*' } }),
    ]
  }
  for (const { status, body } of await askFor('glod'))
    assert.deepEqual([status, body['errors']], [400, [{ pointer: '/plan', detail: `${cure.source}.` }]])
  for (const plan of ['gold', 'none'])
    for (const { body } of await askFor(plan)) assert.equal(body['plan'], plan === 'none' ? null : plan)
})

test('C11 a start, a reload and check name the first ten accounts whose plan is not in the configuration', async () => {
  const folder = newFolder()
  const store = openStore(join(folder, 'triwire.db'))
  const file = configFile(folder, model('only'))
  const text = readFileSync(file, 'utf8')
  const withPlans = (plans: object) => writeFileSync(file, `${text}plans: ${JSON.stringify(plans)}\n`)
  const check = async () => {
    const { code, json } = await runWarm(['check', '--json', '--config', file])
    assert.equal(code, 0)
    const { warnings } = json as unknown as { warnings: { path: string; message: string }[] }
    return warnings.filter(({ path }) => path === 'plans').map(({ message }) => message)
  }
  withPlans({ gold: {} })
  assert.deepEqual(await check(), [])
  store.createAccount('right', 0n, { plan: 'gold' })
  store.createAccount('without', 0n)
  for (let n = 0; n < 11; n++) store.createAccount(`lost${n % 10}${n}`, 0n, { plan: 'glod' })
  const running = serve(['--config', file, '--json'], folder)
  await running.saw('"plan_missing","accounts":[{"account":"lost00","plan":"glod"},')
  await running.saw('{"account":"lost88","plan":"glod"}],"more":true,"cure":"They pay the prices of models: declare')
  assert.doesNotMatch(running.stderr(), /"right"|"without"/)
  const [message] = await check()
  assert.match(
    message!,
    /^plans lacks those of the accounts lost00 \(glod\), .*, lost88 \(glod\) and others\. They pay/,
  )
  withPlans({ glod: {} })
  running.child.kill('SIGHUP')
  await running.saw('"plan_missing","accounts":[{"account":"right","plan":"gold"}],"cure"')
  withPlans({ glod: {}, gold: {} })
  running.child.kill('SIGHUP')
  await running.saw('"config_reloaded"', 2)
  assert.equal(running.stderr().split('"plan_missing"').length, 3)
  assert.deepEqual(await check(), [])
  running.child.kill('SIGTERM')
  assert.equal(await running.exited, 0)
  store.close()
})

test('C11 a start with the built-in models names accounts whose plan is not in the configuration', async () => {
  const folder = newFolder()
  const store = openStore(join(folder, 'triwire.db'))
  store.createAccount('lost', 0n, { plan: 'glod' })
  const file = join(folder, 'triwire.yaml')
  writeFileSync(file, 'listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\nstore: ./triwire.db\nplans: { gold: {} }\n')
  const running = serve(['--config', file, '--json'], folder)
  await running.saw('"plan_missing","accounts":[{"account":"lost","plan":"glod"}]')
  running.child.kill('SIGTERM')
  assert.equal(await running.exited, 0)
  store.close()
})

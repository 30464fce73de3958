import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { testFolder } from '../support/folder.ts'
import { configOf } from '../support/price-lists.ts'
import { run, runWarm } from './run.ts'

const folder = testFolder('price')

function configFile(name: string, prices: string, more = ''): string[] {
  const file = join(folder, name)
  writeFileSync(file, `${configOf(prices)}${more}`, { mode: 0o600 })
  return ['--config', file]
}

const peak =
  '{ name: peak, zone: Asia/Shanghai, days: mon-fri, hours: ["09:00-12:00", "14:00-18:00"], not_on: cn, times: "2" }'
const ofTest = configFile(
  'list.yaml',
  `
        - input: "0.15"
          cache_read: "0.003"
          output: "0.6"
          steps: [{ above: 1000, input: "0.3", cache_read: "0.006", output: "0.9" }]
          calls: { web_search: "0.01" }
          bands: [${peak}]
          tiers: { flex: "0.5", priority: { input: "1", cache_read: "0.1", output: "2", steps: [] } }
          geos: { us: "1.1" }
        - { from: 2099-01-01T00:00:00Z, input: "9", cache_read: "1", output: "9" }`,
  'reporting: { time_zone: Asia/Shanghai }\n',
)
const price = async (...args: string[]) =>
  (await runWarm(['price', 'm', '--json', ...args, ...ofTest])).json as unknown as Record<string, never>

const rates = (input: string, cached: string, output: string) => ({
  ...{ input, cache_read: cached, cache_write: input, cache_write_1h: input, output },
})

test('C11 price shows the row, the band, the factors, the step and the rates of a model at a moment', async () => {
  const { code, json } = await run(['price', 'm', '--at', '2026-11-27T10:00:00+08:00', '--json', ...ofTest])
  assert.equal(code, 0)
  const { version, next, ...told } = json as unknown as Record<string, unknown>
  assert.match(String(version), /^[0-9a-f]{12}$/)
  assert.deepEqual(told, {
    model: 'm',
    at: '2026-11-27T02:00:00.000Z',
    rates: rates('0.3', '0.006', '1.2'),
    calls: { web_search: '0.01' },
    ...{ row: 0, from: null, band: 'peak', tier: null, geo: null, step: null },
    factors: { band: '2' },
    notes: [],
  })
  assert.deepEqual(
    (next as { at: string; band: string | null }[]).map(({ at, band }) => [at, band]),
    [
      ['2026-11-27T04:00:00.000Z', null],
      ['2026-11-27T06:00:00.000Z', 'peak'],
      ['2026-11-27T10:00:00.000Z', null],
    ],
  )
})

test('C11 price takes a day of the reporting zone, a tier, a geography and tokens', async () => {
  const cases: [args: string[], facts: unknown[]][] = [
    [
      ['--at', '2026-11-27'],
      [rates('0.15', '0.003', '0.6'), null, null, null, null],
    ],
    [
      ['--at', '2026-11-27T02:00:00Z', '--tokens', '1001'],
      [rates('0.6', '0.012', '1.8'), 'peak', null, null, 1000],
    ],
    [
      ['--at', '2026-11-27', '--tier', 'flex', '--geo', 'US'],
      [rates('0.0825', '0.00165', '0.33'), null, 'flex', 'us', null],
    ],
    [
      ['--at', '2026-11-27T02:00:00Z', '--tier', 'fast', '--geo', 'us'],
      [rates('1.1', '0.11', '2.2'), 'peak', 'priority', 'us', null],
    ],
    [
      ['--at', '2026-11-27', '--tier', 'standard'],
      [rates('0.15', '0.003', '0.6'), null, null, null, null],
    ],
    [
      ['--at', '2099-06-01T00:00:00Z', '--tier', 'flex'],
      [rates('9', '1', '9'), null, null, null, null],
    ],
  ]
  for (const [args, facts] of cases) {
    const told = await price(...args)
    assert.deepEqual([told['rates'], told['band'], told['tier'], told['geo'], told['step']], facts, args.join(' '))
  }
  assert.equal((await price('--at', '2026-11-27'))['at'], '2026-11-26T16:00:00.000Z')
  assert.deepEqual((await price('--at', '2026-11-27T02:00:00Z', '--tier', 'priority'))['factors'], {
    band: '2',
    tier: null,
  })
  assert.deepEqual((await price('--at', '2099-06-01', '--tier', 'ultrafast', '--geo', 'eu'))['notes'], [
    'ultrafast has no price here: it is billed at the base.',
    'eu has no price here: it is billed at the base.',
  ])
})

test('C11 price prints text, and reports errors in the question', async () => {
  const ask = (...args: string[]) => runWarm(['price', ...args, ...ofTest])
  const { stdout } = await ask('m', '--at', '2026-11-27T02:00:00Z', '--tier', 'flex')
  for (const line of [
    /^row +0$/m,
    /^band +peak, times 2$/m,
    /^tier +flex, times 0\.5$/m,
    /^geo +-$/m,
    /^input +0\.15$/m,
    /^call of web_search +0\.01$/m,
  ])
    assert.match(stdout, line)
  const wrong: [args: string[], message: RegExp][] = [
    [['n'], /there is no model 'n'/],
    [['m', '--at', 'yesterday'], /--at: Write a day like 2026-11-21/],
    [['m', '--tier', 'gold'], /there is no tier 'gold': name flex, priority, fast or ultrafast/],
    [['m', '--tokens', '1.5'], /It is a whole number/],
  ]
  for (const [args, message] of wrong) {
    const { code, stderr } = await ask(...args)
    assert.equal(code, 2, args.join(' '))
    assert.match(stderr, message)
  }
})

test('C11 check shows the current cost of models whose prices change, and their next changes', async () => {
  const from = new Date(Date.now() + 86_400_000).toISOString()
  const later = new Date(Date.now() + 2 * 86_400_000).toISOString()
  const dated = configFile(
    'dated.yaml',
    `[{ input: "1", output: "2" }, { from: "${from}", input: "2", output: "4" }, { from: "${later}", input: "3", output: "6" }]`,
  )
  const { json } = await runWarm(['check', '--json', ...dated])
  const { prices } = json as unknown as {
    prices: { model: string; now: { rates: object }; next: { at: string; rates: object }[] }[]
  }
  assert.deepEqual(
    prices.map(({ model, now, next }) => [model, now.rates, next.map(({ at, rates: then }) => [at, then])]),
    [
      [
        'm',
        rates('1', '1', '2'),
        [
          [from, rates('2', '2', '4')],
          [later, rates('3', '3', '6')],
        ],
      ],
    ],
  )
  const { stdout } = await runWarm(['check', ...dated])
  assert.match(stdout, /^model +input \/ output now +next changes\nm +1 \/ 2 +\S+Z 2 \/ 4, \S+Z 3 \/ 6$/m)
  const plain = await runWarm(['check', '--json', ...configFile('plain.yaml', '{ input: "1", output: "2" }')])
  assert.equal('prices' in plain.json, false)
})

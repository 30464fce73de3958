import assert from 'node:assert/strict'
import test from 'node:test'
import { loadText } from '../../src/config/load.ts'
import type { ConfigError } from '../../src/config/problem.ts'
import { configOf, mistakesOf, warningsOf } from '../support/price-lists.ts'

/* Every mistake of a price list has its line and a cure; a calendar that ends is a warning. */

const rates = 'input: "1", cache_read: "0.1", output: "2"'
const peak = '{ name: peak, zone: Asia/Shanghai, days: mon-fri, hours: ["09:00-12:00", "14:00-18:00"], times: "2" }'
const bands = (...list: string[]) => `{ ${rates}, bands: [${list.join(', ')}] }`
const band = (more: string) => `{ name: b, zone: UTC, times: "2", ${more} }`
/** The line of the prices of `configOf`, below its calendar. */
const line = 15

const at = 'catalog.models[0].prices'

const cases: [name: string, prices: string, path: string, message: RegExp, calendars?: string][] = [
  [
    'a row without its date',
    `[{ ${rates} }, { ${rates} }]`,
    `${at}[1].from`,
    /is missing: each row after the first has the moment/,
  ],
  [
    'rows that do not rise',
    `[{ ${rates} }, { from: 2027-01-01T00:00:00Z, ${rates} }, { from: 2026-12-31T00:00:00Z, ${rates} }]`,
    `${at}[2].from`,
    /must be later than the `from` of the row before it/,
  ],
  [
    'two rows of one moment',
    `[{ ${rates} }, { from: 2027-01-01T00:00:00Z, ${rates} }, { from: 2027-01-01T08:00:00+08:00, ${rates} }]`,
    `${at}[2].from`,
    /must be later/,
  ],
  [
    'a first row that is to come',
    `[{ from: 2099-01-01T00:00:00Z, ${rates} }]`,
    `${at}[0].from`,
    /has not come yet.*write the prices of today before it/,
  ],
  [
    'a date without a zone',
    `[{ ${rates} }, { from: 2027-01-01, ${rates} }]`,
    `${at}[1].from`,
    /must be a time with its zone/,
  ],
  [
    'a day that is none',
    `[{ ${rates} }, { from: 2027-02-30T00:00:00Z, ${rates} }]`,
    `${at}[1].from`,
    /must be a time with its zone/,
  ],
  ['an empty list', '[]', at, /must have a row/],
  [
    'rows that disagree on what counts',
    `[{ ${rates}, counts: start }, { from: 2027-01-01T00:00:00Z, ${rates} }]`,
    `${at}[1].counts`,
    /must be the same in all rows/,
  ],
  ['a moment that is none', `{ ${rates}, counts: middle }`, `${at}.counts`, /must be one of: end, start/],
  [
    'bands that overlap',
    bands(peak, band('days: tue, hours: "03:59-05:00"')),
    `${at}.bands[1]`,
    /overlaps bands\[0\] \(peak\)/,
  ],
  [
    'bands that overlap by a minute',
    bands(band('hours: "01:00-02:01"'), band('hours: "02:00-03:00"').replace('b,', 'c,')),
    `${at}.bands[1]`,
    /overlaps bands\[0\]/,
  ],
  [
    'a band over midnight, and one of the next day',
    bands(band('days: sun, hours: "22:00-02:00"'), band('days: mon, hours: "01:00-03:00"').replace('b,', 'c,')),
    `${at}.bands[1]`,
    /overlaps bands\[0\]/,
  ],
  [
    'bands that meet in summer alone',
    bands(
      '{ name: a, zone: Europe/Berlin, hours: "10:00-11:00", times: "2" }',
      '{ name: b, zone: UTC, hours: "08:00-08:30", times: "2" }',
    ),
    `${at}.bands[1]`,
    /overlaps bands\[0\]/,
  ],
  [
    'bands of one name',
    bands(band('hours: "01:00-02:00"'), band('hours: "03:00-04:00"')),
    `${at}.bands[1].name`,
    /is also the name of bands\[0\]/,
  ],
  ['an empty window', bands(band('hours: "09:00-09:00"')), `${at}.bands[0].hours`, /is empty.*"00:00-24:00"/],
  [
    'hours that are none',
    bands(band('hours: "9:00-25:00"')),
    `${at}.bands[0].hours`,
    /must be hours such as "09:00-12:00"/,
  ],
  ['days that are none', bands(band('days: monday')), `${at}.bands[0].days`, /must be days such as mon-fri/],
  ['no days', bands(band('days: []')), `${at}.bands[0].days`, /must not be empty/],
  [
    'an unknown zone',
    bands(band('hours: "01:00-02:00"').replace('UTC', 'Asia/Shanghia')),
    `${at}.bands[0].zone`,
    /must be the name of a time zone.*did you mean Asia\/Shanghai/,
  ],
  [
    'no zone',
    bands('{ name: b, hours: "01:00-02:00", times: "2" }'),
    `${at}.bands[0].zone`,
    /is missing: it must be the zone/,
  ],
  ['an unknown calendar', bands(band('not_on: cm')), `${at}.bands[0].not_on`, /must name an entry of calendars: cn/],
  [
    'a band of another zone than its calendar',
    bands(band('not_on: cn')),
    `${at}.bands[0].zone`,
    /must be the zone of its calendar cn, Asia\/Shanghai/,
  ],
  ['a band without a price', bands('{ name: b, zone: UTC }'), `${at}.bands[0].times`, /is missing: write a factor/],
  [
    'a band with half a price',
    bands('{ name: b, zone: UTC, input: "1", cache_read: "1" }'),
    `${at}.bands[0].output`,
    /is missing/,
  ],
  ['a band with a factor and prices', bands(band('input: "1", output: "1"')), `${at}.bands[0].times`, /not both/],
  [
    'a band that is silent of what has a price',
    bands('{ name: b, zone: UTC, input: "1", output: "1" }'),
    `${at}.bands[0].cache_read`,
    /is missing: prices that are written out/,
  ],
  ['a factor of ten places', `{ ${rates}, tiers: { flex: "0.0123456789" } }`, `${at}.tiers.flex`, /at most 9 places/],
  ['a factor of 0', `{ ${rates}, tiers: { flex: "0" } }`, `${at}.tiers.flex`, /must be more than 0/],
  ['a factor that is none', `{ ${rates}, tiers: { flex: half } }`, `${at}.tiers.flex`, /must be a decimal above 0/],
  [
    'a factor whose price is not exact',
    '{ input: "0.000000001", output: "1", tiers: { flex: "0.5" } }',
    `${at}.tiers.flex`,
    /more than 9 places.*write the prices out/,
  ],
  [
    'two factors whose price is not exact',
    '{ input: "0.00000001", output: "1", tiers: { flex: "0.5" }, geos: { us: "1.1" } }',
    `${at}.geos.us`,
    /by itself or with another factor/,
  ],
  [
    'a factor whose step is not exact',
    '{ input: "1", output: "1", steps: [{ above: 5, input: "0.000000001", output: "1" }], tiers: { flex: "0.5" } }',
    `${at}.tiers.flex`,
    /write the prices out/,
  ],
  [
    'an unknown tier',
    `{ ${rates}, tiers: { fast: "2" } }`,
    `${at}.tiers.fast`,
    /known here: flex, priority, ultrafast|must be one of/,
  ],
  [
    'a tier without steps that the row has',
    '{ input: "1", output: "1", steps: [{ above: 5, input: "2", output: "2" }], tiers: { flex: { input: "1", output: "1" } } }',
    `${at}.tiers.flex.steps`,
    /is missing/,
  ],
  [
    'an unknown key of a row',
    `[{ ${rates}, until: 2027-01-01 }]`,
    `${at}[0].until`,
    /is not a known key; known here: from, input/,
  ],
  [
    'an unknown key of a band',
    bands(band('until: 2027-01-01')),
    `${at}.bands[0].until`,
    /is not a known key; known here: name, zone/,
  ],
  [
    'a price of a later row',
    `[{ ${rates} }, { from: 2027-01-01T00:00:00Z, input: "x", output: "1" }]`,
    `${at}[1].input`,
    /at most 9 places/,
  ],
  [
    'steps of a later row',
    `[{ ${rates} }, { from: 2027-01-01T00:00:00Z, ${rates}, steps: [{ above: 5, input: "1", output: "1" }] }]`,
    `${at}[1].steps[0].cache_read`,
    /is missing/,
  ],
]

for (const [name, prices, path, message, calendars] of cases)
  test(`C11 a mistake in a price list has its line and its cure: ${name}`, () => {
    const found = mistakesOf(prices, calendars)
    assert.deepEqual(
      found.map((one) => one.path),
      [path],
    )
    assert.match(found[0]!.message, message)
    assert.equal(found[0]!.line, line)
  })

const calendarCases: [name: string, calendar: string, path: string, message: RegExp][] = [
  [
    'an unknown zone',
    '{ zone: Asia/Peking, through: 2026-12-31, days: [] }',
    'calendars.cn.zone',
    /must be the name of a time zone/,
  ],
  [
    'a day that is none',
    '{ zone: UTC, through: 2026-12-31, days: [2026-02-30] }',
    'calendars.cn.days[0]',
    /must be a day such as/,
  ],
  [
    'days in the wrong order',
    '{ zone: UTC, through: 2026-12-31, days: [2026-10-07..2026-10-01] }',
    'calendars.cn.days[0]',
    /must begin with the earlier day/,
  ],
  [
    'a day after its end',
    '{ zone: UTC, through: 2026-12-31, days: [2026-10-01, 2027-01-01] }',
    'calendars.cn.days[1]',
    /is after `through`/,
  ],
  ['no end', '{ zone: UTC, days: [] }', 'calendars.cn.through', /is missing/],
  [
    'days of ten years',
    '{ zone: UTC, through: 2036-12-31, days: [2026-01-01..2035-01-01] }',
    'calendars.cn.days[0]',
    /at most a year/,
  ],
]

for (const [name, calendar, path, message] of calendarCases)
  test(`C11 a mistake in a calendar has its line and its cure: ${name}`, () => {
    const found = mistakesOf(`{ ${rates} }`, `\n  cn: ${calendar}`)
    assert.deepEqual(
      found.map((one) => [one.path, one.line]),
      [[path, 2]],
    )
    assert.match(found[0]!.message, message)
  })

test('C11 adjacent bands, bands of other days and bands over midnight are valid', () => {
  const right = [
    bands(
      peak,
      band('days: mon-fri, hours: ["04:00-06:00", "10:00-24:00", "00:00-01:00"]'),
      band('days: sat-sun')
        .replace('b,', 'c,')
        .replace('UTC', 'Asia/Shanghai')
        .replace('sat-sun', 'sun, hours: "08:00-12:00"'),
    ),
    bands(band('days: sun, hours: "22:00-02:00"'), band('days: mon, hours: "02:00-03:00"').replace('b,', 'c,')),
    bands(
      '{ name: a, zone: Europe/Berlin, hours: "10:00-11:00", times: "2" }',
      '{ name: b, zone: UTC, hours: "10:00-11:00", times: "2" }',
    ),
    bands('{ name: b, not_on: cn, times: 2 }'),
    `[{ from: 2020-01-01T00:00Z, ${rates} }]`,
    `{ ${rates}, tiers: { flex: { ${rates} } }, geos: { us: 1.1 } }`,
  ]
  for (const prices of right) assert.deepEqual(mistakesOf(prices), [], prices)
})

test('C11 a calendar that has ended, or ends within 45 days, is a warning if a band uses it', () => {
  const dayAt = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)
  const calendar = (through: string) => `\n  cn: { zone: Asia/Shanghai, through: ${through}, days: [] }`
  const used = bands(peak.replace(' times', ' not_on: cn, times'))
  const cases: [days: number, warning: RegExp | undefined][] = [
    [47, undefined],
    [44, /^calendars\.cn\.through is the last day of the calendar, in \d+ days.*add the days that follow/],
    [1, /is the last day of the calendar, in [12] days/],
    [-2, /is over: every day since then counts as a working day/],
  ]
  for (const [days, warning] of cases) {
    const found = warningsOf(used, calendar(dayAt(days)))
    if (warning === undefined) assert.deepEqual(found, [])
    else assert.match(found.join('\n'), warning)
    assert.deepEqual(warningsOf(`{ ${rates} }`, calendar(dayAt(days))), [])
  }
})

test('C11 a calendar that ends is a warning for each list that uses it: prices, costs, costs of routes, plans', () => {
  const ended = '\n  cn: { zone: Asia/Shanghai, through: 2026-01-31, days: [] }'
  const list = bands(peak.replace(' times', ' not_on: cn, times'))
  const route = `upstream: [{ name: up, cost: ${list} }]`
  const texts = [
    configOf(list, ended),
    configOf(`{ ${rates} }`, ended).replace('upstream: up', `upstream: up\n      cost: ${list}`),
    configOf(`{ ${rates} }`, ended).replace('upstream: up', route),
    `${configOf(`{ ${rates} }`, ended)}plans: { gold: { models: { m: ${list} } } }\n`,
  ]
  for (const text of texts) {
    const { warnings } = loadText(text, 'prices', {}, {})
    assert.ok(
      warnings.some(({ message }) => message.startsWith('calendars.cn.through is over')),
      text,
    )
  }
})

test('Y17 expected_tiers of accounts are those of the models that they serve, each once', () => {
  const text = configOf('{ input: "1", output: "1", tiers: { priority: "2" } }').replace(
    'key: k',
    'key: k, expected_tiers: [priority, flex, priority]',
  )
  assert.deepEqual(loadText(text, 'x', {}, {}).catalog.entries[0]!.expectedTiers, ['priority', 'flex'])
  const wrong = text.replace('[priority, flex, priority]', '[fast]')
  assert.throws(() => loadText(wrong, 'x', {}, {}), /expected_tiers\[0\] must be one of: flex, priority, ultrafast/)
})

test('C11 steps that do not rise and prices that are missing are mistakes in every list: prices, costs, costs of routes, plans', () => {
  const plain = configOf(`{ ${rates} }`)
  for (const [list, place] of [
    [`{ ${rates}, steps: [{ above: 9, ${rates} }, { above: 5, ${rates} }] }`, 'steps[1].above'],
    [`{ ${rates}, steps: [{ above: 9, input: "1", output: "2" }] }`, 'steps[0].cache_read'],
    [`{ ${rates}, tiers: { priority: { input: "1", output: "2" } } }`, 'tiers.priority.cache_read'],
    [`{ ${rates}, geos: { us: { input: "1", output: "2" } } }`, 'geos.us.cache_read'],
    [bands(band('hours: ["09:00-12:00"], input: "1", output: "2"').replace(' times: "2",', '')), 'bands[0].cache_read'],
  ] as const)
    for (const [text, at] of [
      [configOf(list), 'catalog.models[0].prices'],
      [plain.replace('upstream: up', `upstream: up\n      cost: ${list}`), 'catalog.models[0].cost'],
      [plain.replace('upstream: up', `upstream: [{ name: up, cost: ${list} }]`), 'catalog.models[0].upstream[0].cost'],
      [`${plain}plans: { gold: { models: { m: ${list} } } }\n`, 'plans.gold.models.m'],
    ] as const)
      assert.throws(
        () => loadText(text, 'prices', {}, {}),
        ({ problems }: ConfigError) => {
          assert.deepEqual(
            problems.map(({ path }) => path),
            [`${at}.${place}`],
          )
          return true
        },
        text,
      )
})

test('C11 a plan applies to the built-in models, and its mistakes with their prices are found', () => {
  const half = loadText(
    'plans: { gold: { times: "0.5", models: { sim-chat: { input: "1", output: "1" } } } }',
    'plans',
    {},
    {},
  )
  const inputOf = (id: string) => {
    const model = half.catalog.entries.find((entry) => entry.id === id)!
    return [model.prices, model.plans!.get('gold')!].map((list) => Number(list.only!.prices.inputNanos))
  }
  assert.deepEqual(inputOf('sim-messages'), [3e9, 1.5e9])
  assert.deepEqual(inputOf('sim-chat'), [3e9, 1e9])
  assert.throws(
    () => loadText('plans: { gold: { models: { sim-none: "0.5" } } }', 'plans', {}, {}),
    /must be the id of a model of the catalog/,
  )
})

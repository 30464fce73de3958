import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { formatCredits, parseCredits } from '../../src/accounts/credit.ts'
import type { PriceList, Tier } from '../../src/catalog/model.ts'
import { priceNanos } from '../../src/catalog/model.ts'
import { holdPrices, nextChanges, ratesAt, setAt } from '../../src/catalog/price-list.ts'
import { readKeptList } from '../../src/config/list-text.ts'
import { loadText } from '../../src/config/load.ts'
import { chineseHolidays, configOf, listFrom } from '../support/price-lists.ts'
import { runsUpTo } from '../support/runs.ts'

/* Laws 1, 2, 3, 5, 6 and 7 of prices over time, against oracles that share no code with the product. */

const minuteMs = 60_000

const plainPrices = '{ input: "1", cache_read: "0.1", output: "2" }'

const peak =
  '{ name: peak, zone: Asia/Shanghai, days: mon-fri, hours: ["09:00-12:00", "14:00-18:00"], not_on: cn, times: "2" }'
/** The rows of the three forms that DeepSeek's rule had (PyPI model-prices 0.0.5), with the rates of deepseek-flash. */
const deepseek = `
        - { input: "0.15", cache_read: "0.003", output: "0.6", bands: [${peak.replace('days: mon-fri, ', '').replace('not_on: cn, ', '')}] }
        - { from: 2026-08-23T00:00:00+08:00, input: "0.15", cache_read: "0.003", output: "0.6", bands: [${peak.replace('not_on: cn, ', '')}] }
        - { from: 2026-09-18T00:00:00+08:00, input: "0.15", cache_read: "0.003", output: "0.6", bands: [${peak}] }`

/** The days off of 2026 in Beijing, one by one. */
const daysOff = new Set(
  [
    ...['01-01', '01-02', '01-03', '02-15', '02-16', '02-17', '02-18', '02-19', '02-20', '02-21', '02-22', '02-23'],
    ...['04-04', '04-05', '04-06', '05-01', '05-02', '05-03', '05-04', '05-05', '06-19', '06-20', '06-21'],
    ...['09-25', '09-26', '09-27', '10-01', '10-02', '10-03', '10-04', '10-05', '10-06', '10-07'],
  ].map((day) => `2026-${day}`),
)

/** The provider's sentence: Beijing has had eight hours on UTC, and no summer time, since 1991. */
function isPeak(ms: number): boolean {
  const beijing = new Date(ms + 8 * 3_600_000)
  const hour = beijing.getUTCHours()
  const isHour = (hour >= 9 && hour < 12) || (hour >= 14 && hour < 18)
  const isWorkday = beijing.getUTCDay() >= 1 && beijing.getUTCDay() <= 5
  if (ms < Date.parse('2026-08-22T16:00:00Z')) return isHour
  if (ms < Date.parse('2026-09-17T16:00:00Z')) return isHour && isWorkday
  return isHour && isWorkday && !daysOff.has(beijing.toISOString().slice(0, 10))
}

test('C11 law 1: at every minute of two years exactly one set of rates applies, the one in the provider’s sentence', () => {
  const list = listFrom(deepseek)
  const until = Date.UTC(2028, 0, 1)
  for (let at = Date.UTC(2026, 0, 1); at < until; at += minuteMs) {
    const { band, prices } = setAt(list, { at })
    const expected = isPeak(at)
    if ((band === 'peak') !== expected || prices.inputNanos !== (expected ? 300_000_000n : 150_000_000n))
      assert.fail(`${new Date(at).toISOString()}: ${band}`)
  }
})

const plain = (band: string) => `{ input: "1", output: "1", bands: [${band}] }`

const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
const parts = (zone: string) =>
  new Intl.DateTimeFormat('en-GB', {
    ...{ timeZone: zone, hourCycle: 'h23', year: 'numeric', month: '2-digit', day: '2-digit' },
    ...{ hour: '2-digit', minute: '2-digit' },
  })

/** Whether a moment is in a window on these days, by the platform's own clock of the zone. */
function isIn(format: Intl.DateTimeFormat, at: number, days: readonly string[], from: string, to: string): boolean {
  const [day, month, year, hour, minute] = format.format(at).match(/\d+/g)!
  const [date, time] = [Date.UTC(Number(year), Number(month) - 1, Number(day)), `${hour}:${minute}`]
  const on = (ms: number) => days.includes(weekdays[new Date(ms).getUTCDay()]!)
  if (from < to) return on(date) && time >= from && time < to
  return (on(date) && time >= from) || (on(date - 86_400_000) && time < to)
}

test('C11 law 2: days and hours are those of the zone, also on days of 23 and 25 hours', () => {
  const zones = ['Asia/Shanghai', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu', 'UTC']
  const cases: [days: string[], from: string, to: string][] = [
    [['mon', 'tue', 'wed', 'thu', 'fri'], '01:00', '04:00'],
    [['mon', 'tue', 'wed', 'thu', 'fri'], '22:00', '08:00'],
    [['sun'], '01:30', '03:30'],
    [['sat'], '23:15', '02:45'],
    [weekdays, '22:00', '08:00'],
  ]
  // Weeks in which clocks change, and one in which none does.
  const weeks = ['2026-03-06', '2026-03-27', '2026-04-03', '2026-10-02', '2026-10-23', '2026-10-30', '2026-11-20']
  for (const zone of zones) {
    const format = parts(zone)
    for (const [days, from, to] of cases) {
      const list = listFrom(
        plain(`{ name: b, zone: ${zone}, days: [${days}], hours: "${from}-${to}", times: "2" }`),
        '',
      )
      for (const week of weeks)
        for (let at = Date.parse(week), end = at + 4 * 86_400_000; at < end; at += 15 * minuteMs)
          assert.equal(
            setAt(list, { at }).band !== null,
            isIn(format, at, days, from, to),
            `${zone} ${days} ${from}-${to} ${new Date(at).toISOString()}`,
          )
    }
  }
})

test('C11 law 2: a random window in a random zone applies exactly when the platform’s clock of the zone shows it', () => {
  const time = fc
    .tuple(fc.nat(23), fc.nat(59))
    .map((pair) => pair.map((part) => String(part).padStart(2, '0')).join(':'))
  fc.assert(
    fc.property(
      fc.constantFrom('Asia/Kolkata', 'America/Sao_Paulo', 'Europe/London', 'Pacific/Auckland', 'Asia/Shanghai'),
      fc.subarray(weekdays, { minLength: 1 }),
      time,
      time,
      fc.array(fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2028, 0, 1) }), { minLength: 20 }),
      (zone, days, from, to, moments) => {
        fc.pre(from !== to)
        const list = listFrom(
          plain(`{ name: b, zone: ${zone}, days: [${days}], hours: "${from}-${to}", times: "2" }`),
          '',
        )
        const format = parts(zone)
        for (const at of moments) assert.equal(setAt(list, { at }).band !== null, isIn(format, at, days, from, to))
      },
    ),
    { numRuns: runsUpTo(60) },
  )
})

test('C11 law 3: bands and rows are half-open, to the millisecond', () => {
  const list = listFrom(deepseek)
  const rows: [at: string, band: string | null, row: number][] = [
    ['2026-09-28T08:59:59.999+08:00', null, 2],
    ['2026-09-28T09:00:00.000+08:00', 'peak', 2],
    ['2026-09-28T11:59:59.999+08:00', 'peak', 2],
    ['2026-09-28T12:00:00.000+08:00', null, 2],
    ['2026-09-28T17:59:59.999+08:00', 'peak', 2],
    ['2026-09-28T18:00:00.000+08:00', null, 2],
    ['2026-08-22T23:59:59.999+08:00', null, 0],
    ['2026-08-23T00:00:00.000+08:00', null, 1],
    ['2026-09-17T23:59:59.999+08:00', null, 1],
    ['2026-09-18T00:00:00.000+08:00', null, 2],
    ['2020-01-01T10:00:00.000+08:00', 'peak', 0],
  ]
  for (const [at, band, row] of rows) {
    const set = setAt(list, { at: Date.parse(at) })
    assert.deepEqual([set.band, set.row], [band, row], at)
  }
})

/** By hand: a week, the holidays and the dates of DeepSeek's rule, for 1,000,000 fresh, 1,000,000 cached and 1,000,000 output tokens. */
test('C11 the bill of deepseek-flash by day, hour, holiday and date, to the nano-credit', () => {
  const list = listFrom(deepseek)
  const usage = { inputTokens: 1_000_000, cacheReadTokens: 1_000_000, cacheWriteTokens: 0, cacheWrite1hTokens: 0 }
  // 0.15 + 0.003 + 0.6, and twice that.
  const [off, on] = ['0.753', '1.506']
  const golden: [beijing: string, credits: string][] = [
    // The week of 30 November 2026.
    ...['11-30', '12-01', '12-02', '12-03', '12-04'].flatMap((day): [string, string][] => [
      [`2026-${day}T08:59`, off],
      [`2026-${day}T09:00`, on],
      [`2026-${day}T11:59`, on],
      [`2026-${day}T12:00`, off],
      [`2026-${day}T13:59`, off],
      [`2026-${day}T14:00`, on],
      [`2026-${day}T17:59`, on],
      [`2026-${day}T18:00`, off],
    ]),
    ['2026-12-05T10:00', off],
    ['2026-12-06T15:00', off],
    // Mid-Autumn, a Friday, and the National Day's week: Thursday to Wednesday.
    ['2026-09-24T10:00', on],
    ['2026-09-25T10:00', off],
    ['2026-09-28T10:00', on],
    ['2026-09-30T17:59', on],
    ...['10-01', '10-02', '10-05', '10-06', '10-07'].map((day): [string, string] => [`2026-${day}T10:00`, off]),
    ['2026-10-08T10:00', on],
    // Sunday 20 September and Saturday 10 October are working days in China, and no weekdays of the rule.
    ['2026-09-20T10:00', off],
    ['2026-10-10T10:00', off],
    // Before 23 August every day counted, and before 18 September holidays did.
    ['2026-08-16T10:00', on],
    ['2026-08-22T10:00', on],
    ['2026-08-23T10:00', off],
    ['2026-08-24T10:00', on],
    ['2026-08-29T10:00', off],
    // The list of 2027 is not out: then every weekday counts.
    ['2027-01-01T10:00', on],
  ]
  for (const [beijing, credits] of golden) {
    const { prices } = setAt(list, { at: Date.parse(`${beijing}:00+08:00`) })
    const amount = priceNanos(prices, { ...usage, outputTokens: 1_000_000, reasoningTokens: 0, estimated: false })
    assert.equal(formatCredits(amount), credits, beijing)
  }
})

const tiered = `
        - input: "1"
          cache_read: "0.1"
          cache_write: "1.25"
          output: "5"
          steps: [{ above: 100, input: "2", cache_read: "0.2", cache_write: "2.5", output: "7.5" }]
          calls: { web_search: "0.01" }
          bands: [{ name: night, zone: UTC, hours: "22:00-08:00", times: "0.5" }]
          tiers: { flex: "0.5", priority: "1.8" }
          geos: { us: "1.1" }
        - from: 2027-01-01T00:00:00Z
          input: "2"
          output: "10"
          tiers: { priority: { input: "3", output: "11" }, ultrafast: "6" }`

const [day, night, later] = ['2026-11-25T12:00Z', '2026-11-25T23:00Z', '2027-01-01T12:00Z'].map((at) =>
  Date.parse(at),
) as [number, number, number]

test('C11 Y17 factors of band, tier and geography multiply all rates and steps, and no calls', () => {
  const list = listFrom(tiered)
  type Row = [
    at: number,
    tier: Tier | undefined,
    geo: string | undefined,
    tokens: number,
    input: string,
    output: string,
  ]
  const rows: Row[] = [
    [day, undefined, undefined, 100, '1', '5'],
    [day, undefined, undefined, 101, '2', '7.5'],
    [day, 'flex', undefined, 100, '0.5', '2.5'],
    [day, 'priority', undefined, 101, '3.6', '13.5'],
    [day, 'priority', 'us', 101, '3.96', '14.85'],
    [night, 'flex', 'us', 0, '0.275', '1.375'],
    [night, undefined, undefined, 0, '0.5', '2.5'],
    [day, 'ultrafast', undefined, 0, '1', '5'],
    [day, undefined, 'eu', 0, '1', '5'],
    [later, 'priority', undefined, 0, '3', '11'],
    [later, 'ultrafast', 'us', 0, '12', '60'],
    [later, 'flex', undefined, 0, '2', '10'],
  ]
  for (const [at, tier, geo, inputTokens, input, output] of rows) {
    const { rates } = ratesAt(list, { at, tier, geo, inputTokens })
    assert.deepEqual(
      [formatCredits(rates.inputNanos), formatCredits(rates.outputNanos)],
      [input, output],
      `${tier} ${geo}`,
    )
  }
  const { version, row, band, tier, geo, step } = ratesAt(list, {
    at: night,
    tier: 'flex',
    geo: 'us',
    inputTokens: 101,
  })
  assert.deepEqual([row, band, tier, geo, step], [0, 'night', 'flex', 'us', 100])
  assert.match(version, /^[0-9a-f]{12}$/)
  const unpriced = ratesAt(list, { at: later, tier: 'flex', geo: 'us', inputTokens: 0 })
  assert.deepEqual(
    [unpriced.row, unpriced.band, unpriced.tier, unpriced.geo, unpriced.step],
    [1, null, null, null, null],
  )
  assert.deepEqual(setAt(list, { at: night, tier: 'flex', geo: 'us' }).prices.calls, { web_search: 10_000_000n })
})

test('C11 law 6: a row for a later date changes nothing before its day, and neither does a removed one', () => {
  const row = (from: string, price: number) =>
    `\n        - { ${from}input: "${price}", output: "${price}", bands: [${peak}] }`
  const dates = [
    '',
    'from: 2026-05-01T00:00:00Z, ',
    'from: 2026-12-01T00:00:00+08:00, ',
    'from: 2027-06-01T00:00:00Z, ',
  ]
  const starts = [Number.NEGATIVE_INFINITY, ...dates.slice(1).map((text) => Date.parse(text.slice(6, -2)))]
  const lists = dates.map((_, n) =>
    listFrom(
      dates
        .slice(0, n + 1)
        .map((from, i) => row(from, i + 1))
        .join(''),
    ),
  )
  fc.assert(
    fc.property(fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2028, 0, 1) }), (at) => {
      for (const [n, list] of lists.slice(1).entries()) {
        const [without, withIt] = [setAt(lists[n]!, { at }), setAt(list, { at })]
        if (at < starts[n + 1]!) assert.deepEqual(withIt, without)
        else assert.equal(withIt.prices.outputNanos, parseCredits(`${n + 2}`) * (withIt.band === null ? 1n : 2n))
      }
    }),
  )
})

test('C11 law 7: a factor on a whole list gives the same prices before as after band, tier, geography and step', () => {
  const facts = fc.record({
    at: fc.constantFrom(day, night),
    tier: fc.constantFrom<Tier | undefined>(undefined, 'flex', 'priority'),
    geo: fc.constantFrom(undefined, 'us'),
    inputTokens: fc.constantFrom(0, 100, 101),
  })
  const listOf = (times: bigint): PriceList => {
    const of = (nanos: bigint) => `"${formatCredits((nanos * times) / 100n)}"`
    const [one, five, two] = [1_000_000_000n, 5_000_000_000n, 2_000_000_000n]
    return listFrom(
      `{ input: ${of(one)}, output: ${of(five)}, steps: [{ above: 100, input: ${of(two)}, output: ${of(five)} }], bands: [{ name: n, zone: UTC, hours: "22:00-08:00", times: "0.5" }], tiers: { flex: "0.5", priority: "1.8" }, geos: { us: "1.1" } }`,
    )
  }
  const whole = listOf(100n)
  fc.assert(
    fc.property(facts, fc.integer({ min: 1, max: 300 }), (chosen, percent) => {
      const [before, after] = [ratesAt(listOf(BigInt(percent)), chosen), ratesAt(whole, chosen)]
      for (const kind of ['inputNanos', 'cacheReadNanos', 'outputNanos'] as const)
        assert.equal(before.rates[kind] * 100n, after.rates[kind] * BigInt(percent))
    }),
    { numRuns: runsUpTo(40) },
  )
})

const dayMs = 86_400_000

/** The most days that the configuration allows for each part of a request: its body, its answer, the time for its usage. */
const longestMs = ['body', 'total', 'settle_window']
  .map((name) => {
    const isAllowed = (days: number) => {
      try {
        return Boolean(loadText(`${configOf(plainPrices)}timeouts: { ${name}: ${days}d }\n`, 'days', {}, {}))
      } catch {
        return false
      }
    }
    return Array.from({ length: 24 }, (_, n) => n + 1).filter(isAllowed).length * dayMs
  })
  .reduce((sum, ms) => sum + ms)

test('C11 law 4: with counts: start, the proof of a list knows each moment at which a request may have begun', () => {
  const { kept } = listFrom(`
        - { counts: start, input: "1", output: "5", tiers: { flex: "0.5" } }
        - { from: 2027-01-01T00:00:00Z, counts: start, input: "2", output: "9", tiers: { flex: "0.5" } }`)
  const versionsAt = readKeptList(kept!.digest, kept!.text)
  const countAt = (createdMs: number) => versionsAt({ createdMs, band: null, tier: 'flex', geo: null }).size
  const later = Date.UTC(2027, 0)
  assert.deepEqual(
    [-1, 0, longestMs - 1, longestMs].map((ms) => countAt(later + ms)),
    [1, 2, 2, 1],
  )
})

test('C11 law 4: the first row of a list also proves entries of before its date, whichever moment counts', () => {
  const from = Date.UTC(2026, 0)
  for (const counts of ['start', 'end']) {
    const list = listFrom(`
        - { from: 2026-01-01T00:00:00Z, counts: ${counts}, input: "1", output: "5", tiers: { flex: "0.5" } }
        - { from: 2027-01-01T00:00:00Z, counts: ${counts}, input: "2", output: "9", tiers: { flex: "0.5" } }`)
    const { version } = setAt(list, { at: from - 1, tier: 'flex' })
    const versionsAt = readKeptList(list.kept!.digest, list.kept!.text)
    assert.deepEqual([...versionsAt({ createdMs: from - 1, band: null, tier: 'flex', geo: null })], [version], counts)
  }
})

test('C11 law 5: a hold is at least the bill of its request, whatever row, band, tier and geography apply', () => {
  const list = listFrom(
    tiered
      .replace('cache_write: "1.25"', 'cache_write: "1.25"\n          cache_write_1h: "2"')
      .replace('cache_write: "2.5"', 'cache_write: "2.5", cache_write_1h: "4"'),
  )
  const served: Tier[] = ['flex', 'priority', 'ultrafast']
  const moment = fc.oneof(
    fc.constantFrom(day, night, later, Date.UTC(2027, 0) - longestMs),
    fc.integer({ min: later - longestMs - dayMs, max: later + dayMs }),
  )
  fc.assert(
    fc.property(
      moment,
      fc.nat(longestMs),
      fc.subarray(served),
      fc.nat(200),
      fc.nat(50),
      fc.constantFrom('us', undefined),
      (start, takes, mayServe, input, output, geo) => {
        for (const [writes, kinds] of [
          ['none', ['fresh', 'read']],
          ['short', ['fresh', 'read', 'write']],
          ['long', ['fresh', 'read', 'write', 'long write']],
        ] as const) {
          const held = priceNanos(holdPrices(list, start, mayServe, writes), usageOf('fresh', input, output))
          for (const tier of [undefined, ...mayServe])
            for (const kind of kinds) {
              const { prices } = setAt(list, { at: start + takes, tier, geo })
              const billed = priceNanos(prices, usageOf(kind, input, output))
              if (billed > held) assert.fail(`${kind} ${tier}: ${billed} was billed, and ${held} held`)
            }
        }
      },
    ),
  )
  const plainList = listFrom(plainPrices)
  assert.deepEqual(priceNanos(holdPrices(plainList, day, [], 'none'), usageOf('fresh', 1_000_000, 0)), 1_000_000_000n)
  // A row that begins when the request must have ended does not make holds dearer.
  assert.equal(holdPrices(list, Date.UTC(2027, 0) - longestMs - 1, [], 'none').outputNanos, 5_500_000_000n)
})

function usageOf(kind: 'fresh' | 'read' | 'write' | 'long write', tokens: number, outputTokens: number) {
  return {
    inputTokens: kind === 'fresh' ? tokens : 0,
    cacheReadTokens: kind === 'read' ? tokens : 0,
    cacheWriteTokens: kind === 'write' || kind === 'long write' ? tokens : 0,
    cacheWrite1hTokens: kind === 'long write' ? tokens : 0,
    ...{ outputTokens, reasoningTokens: 0, estimated: false },
  }
}

test('C11 the next changes of a list are the edges of its bands and the dates of its rows', () => {
  const list = listFrom(deepseek)
  const shown = (at: string, most: number) =>
    nextChanges(list, { at: Date.parse(at) }, most).map(({ at, set }) => [
      new Date(at).toISOString().slice(0, 16),
      set.band,
    ])
  assert.deepEqual(shown('2026-11-27T10:30:00+08:00', 4), [
    ['2026-11-27T04:00', null],
    ['2026-11-27T06:00', 'peak'],
    ['2026-11-27T10:00', null],
    ['2026-11-30T01:00', 'peak'],
  ])
  // Before the holidays of October, over all of them.
  assert.deepEqual(shown('2026-09-30T18:00:00+08:00', 1), [['2026-10-08T01:00', 'peak']])
  assert.deepEqual(nextChanges(listFrom('{ input: "1", output: "1" }'), { at: day }, 9), [])
  assert.deepEqual(
    nextChanges(listFrom(tiered.replace(/ +bands.*\n/, '')), { at: day }, 9).map(({ at }) => at),
    [Date.parse('2027-01-01')],
  )
})

test('C11 the next changes are the minutes at which the band of a bill changes, also on days when clocks change', () => {
  const days = ['2027-03-27', '2027-03-28', '2027-04-03', '2027-10-02', '2027-10-30', '2027-10-31', '2027-11-06']
  const hours = [
    '02:30-05:00',
    '02:00-03:00',
    '01:00-02:30',
    '01:30-02:15',
    '02:30-02:45',
    '23:00-02:30',
    '00:00-01:45',
  ]
  for (const zone of ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'UTC'])
    for (const window of hours) {
      const list = listFrom(
        `{ input: "1", output: "1", bands: [{ name: low, zone: ${zone}, hours: "${window}", times: "2" }] }`,
      )
      for (const day of days) {
        const from = Date.parse(`${day}T12:00:00Z`)
        const bandAt = (at: number) => setAt(list, { at }).band
        // Two days, minute by minute.
        const minutes = Array.from({ length: 2 * 1_440 }, (_, i) => from + (i + 1) * minuteMs)
        const changed = minutes.filter((ms) => bandAt(ms) !== bandAt(ms - minuteMs))
        const next = nextChanges(list, { at: from }, changed.length)
        assert.deepEqual(
          next.map(({ at, set }) => `${new Date(at).toISOString()} ${set.band}`),
          changed.map((ms) => `${new Date(ms).toISOString()} ${bandAt(ms)}`),
          `${zone} ${window} ${day}`,
        )
      }
    }
})

test('C11 a plain list has the version that its prices always had, and so does a list of one row', () => {
  const prices = '{ input: "3", cache_read: "0.3", cache_write: "3.75", output: "15" }'
  const versions = [prices, `[${prices}]`].map((text) => setAt(listFrom(text), { at: day }).version)
  assert.deepEqual(versions, ['8b6953028551', '8b6953028551'])
  const stepped =
    '{ input: "1", output: "2", steps: [{ above: 5, input: "2", output: "3" }], calls: { web_search: "0.01" } }'
  assert.equal(
    setAt(listFrom(stepped), { at: day }).version,
    setAt(listFrom(`${stepped.slice(0, -2)}, tiers: { flex: "0.5" } }`), { at: day }).version,
  )
})

test('C11 the days of a calendar are days off, and the day after its end is not', () => {
  const list = listFrom(plain(peak), chineseHolidays.replace('2026-12-31', '2026-10-07'))
  const bandAt = (at: string) => setAt(list, { at: Date.parse(`${at}+08:00`) }).band
  assert.deepEqual(
    [bandAt('2026-10-07T10:00'), bandAt('2026-10-08T10:00'), bandAt('2027-10-01T10:00')],
    [null, 'peak', 'peak'],
  )
})

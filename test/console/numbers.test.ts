import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { findDoubt, readAmount } from '../../console/src/pure/amount.ts'
import { balanceOver, creditsOf } from '../../console/src/pure/balance.ts'
import {
  exactCredits,
  readCredits,
  tellAway,
  tellChange,
  tellColumn,
  tellCount,
  tellCredits,
  tellExact,
  tellMs,
  tellPlotted,
  tellRequests,
  tellShare,
  tellSpan,
  tellTime,
  tellTimesIn,
} from '../../console/src/pure/format.ts'
import { priceLines } from '../../console/src/pure/price.ts'
import { formatCredits, parseCredits } from '../../src/accounts/credit.ts'
import { priceNanos } from '../../src/catalog/model.ts'

/** A space that does not break is one to read. */
const plain = (text: string | undefined) => text?.replaceAll('\u00a0', ' ')

test('CON-18 one request is shown in the singular', () => {
  const said = [undefined, 0, 1, 2, 1_000].map((count) => tellRequests(count))
  assert.deepEqual(said, ['– requests', '0 requests', '1 request', '2 requests', '1,000 requests'])
})

test('credits are read and written as the gateway does, to the nano-credit', () => {
  const nanos = fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n })
  fc.assert(fc.property(nanos, (n) => assert.equal(exactCredits(n), formatCredits(n))))
  fc.assert(fc.property(nanos, (n) => assert.equal(readCredits(formatCredits(n)), parseCredits(formatCredits(n)))))
  assert.equal(readCredits(null), 0n)
})

test('numbers are short where space is short', () => {
  const credits = [
    ['0', '0'],
    ['0.000000001', '0.000000001'],
    ['-0.001', '−0.001'],
    ['0.00018', '0.00018'],
    ['0.00128', '0.0013'],
    ['-0.000099', '−0.000099'],
    ['0.0099999', '0.01'],
    ['0.01', '0.01'],
    ['0.0126', '0.013'],
    ['0.126', '0.13'],
    ['4.126', '4.13'],
    ['1204.5', '1,204.50'],
    ['12345.67', '12,346'],
    ['-12.5', '−12.50'],
    ['1240000', '1.24 M'],
    ['999999.9', '1.00 M'],
  ] as const
  for (const [given, told] of credits) assert.equal(plain(tellCredits(given)), told, given)
  assert.equal(tellCredits(null), '–')
  for (const [given, told] of [
    [0, '0'],
    [312, '312'],
    [12_480, '12,480'],
    [100_000, '100 k'],
    [999_700, '1.00 M'],
    [1_240_000, '1.24 M'],
    [45_600_000, '45.6 M'],
    [2_100_000_000, '2.10 G'],
  ] as const)
    assert.equal(plain(tellCount(given)), told)
  for (const [given, told] of [
    [0, '0 ms'],
    [0.3, '<1 ms'],
    [840, '840 ms'],
    [999.6, '1.00 s'],
    [2_140, '2.14 s'],
    [21_400, '21.4 s'],
    [200_000, '3 min 20 s'],
  ] as const)
    assert.equal(plain(tellMs(given)), told)
  for (const [given, told] of [
    [0, '0 %'],
    [0.0004, '<0.1 %'],
    [0.043, '4.3 %'],
    [0.62, '62 %'],
    [1, '100 %'],
  ] as const)
    assert.equal(plain(tellShare(given)), told)
  assert.equal(plain(tellSpan(187_200_000)), '2 d 4 h')
  assert.equal(plain(tellSpan(0)), '0 s')
  assert.equal(plain(tellSpan(3 * 31_557_600_000 + 40 * 86_400_000)), '3 y 40 d')
  assert.equal(plain(tellSpan(328_633 * 86_400_000)), '>100 y')
})

test('CON-18 amounts are read in the forms in which people type them, and never guessed', () => {
  for (const [typed, read] of [
    ['12,50', '12.50'],
    ['12.5', '12.5'],
    [' 12 ', '12'],
    ['-3,5', '-3.5'],
    ['−3', '-3'],
    ['0,125', '0.125'],
    ['0,00018', '0.00018'],
    ['1.250,50', '1250.50'],
    ['1,250.50', '1250.50'],
    ['1 250,50', '1250.50'],
    ['1\u202f250', '1250'],
    ["1'250.50", '1250.50'],
    ['1,250,000', '1250000'],
    ['1.250.000', '1250000'],
    ['0,5/day', '0.5/day'],
    ['2,5 / week', '2.5/week'],
    // Texts with two meanings, or none.
    ['1,250', '1,250'],
    ['1,250/day', '1,250/day'],
    ['1,2,3', '1,2,3'],
    ['12,', '12,'],
    ['much', 'much'],
    ['', ''],
  ] as const)
    assert.equal(readAmount(typed), read, typed)
  fc.assert(
    fc.property(fc.bigInt(0n, 10n ** 15n), (nanos) => {
      const text = formatCredits(nanos)
      assert.equal(readAmount(text), text)
      const comma = readAmount(text.replace('.', ','))
      assert.ok(comma === text || comma === text.replace('.', ','), `${text}: ${comma}`)
    }),
  )
})

test('CON-18 an amount with two meanings is refused, and both meanings are shown in forms that have one', () => {
  for (const [typed, whole, decimals] of [
    ['1.000', '1000', '1.00'],
    ['1,000', '1000', '1.00'],
    [' 12.500 ', '12500', '12.50'],
    ['-1.250', '-1250', '-1.25'],
    ['−1.250', '-1250', '-1.25'],
    ['999,999 / day', '999999/day', '999.9990/day'],
    ['1.234/month', '1234/month', '1.2340/month'],
  ] as const) {
    const said = `"${typed.trim()}" has two meanings: write ${whole} or ${decimals}`
    assert.equal(findDoubt(typed), said)
    for (const form of [whole, decimals]) assert.deepEqual([findDoubt(form), readAmount(form)], [undefined, form])
  }
  for (const typed of [
    '0.125',
    '0,125',
    '1.00',
    '1.0000',
    '1.000,50',
    '1,000.5',
    '1.000.000',
    '1 000',
    '1234.500',
    'much',
  ])
    assert.equal(findDoubt(typed), undefined, typed)
})

test('CON-13 no amount is shown as zero, as a bound, or with fewer than two significant digits', () => {
  const nanos = fc.oneof(fc.bigInt(1n, 10_000_000_000n), fc.bigInt(1n, 1_000n))
  fc.assert(
    fc.property(nanos, fc.boolean(), (size, isNegative) => {
      const told = tellCredits(isNegative ? -size : size)
      assert.equal(told.startsWith('−'), isNegative)
      const shown = Number(told.replace('−', '').replaceAll(',', ''))
      assert.ok(Math.abs(shown - Number(size) / 1e9) <= 0.051 * (Number(size) / 1e9), `${size} is ${told}`)
    }),
  )
})

test('CON-13 shown entries add up: every digit of an amount and of a balance is shown', () => {
  for (const [given, told] of [
    ['24.99982', '24.99982'],
    ['25', '25.00'],
    ['-0.00018', '−0.00018'],
    ['1234567.5', '1,234,567.50'],
    ['0.000000001', '0.000000001'],
    ['0', '0.00'],
  ] as const)
    assert.equal(tellExact(given), told)
  const amounts = fc.bigInt({ min: -(10n ** 15n), max: 10n ** 15n })
  const read = (told: string) => readCredits(told.replace('−', '-').replaceAll(',', ''))
  fc.assert(
    fc.property(amounts, amounts, (balance, amount) => {
      const [before, change, after] = [balance, amount, balance - amount].map((n) => read(tellExact(formatCredits(n))))
      assert.equal(before! - change!, after)
    }),
  )
})

test('CON-P5 amounts of a column are aligned: each is exact, and all have as many decimals as the longest', () => {
  const tell = tellColumn(['130.1475276', '41.526354', '0.001164', '5'])
  assert.deepEqual(['130.1475276', '41.526354', '5'].map(tell), ['130.1475276', '41.5263540', '5.0000000'])
  assert.equal(tellColumn(['3', '0.5'])('3'), '3.00')
  const amounts = fc.array(fc.bigInt({ min: -(10n ** 15n), max: 10n ** 15n }), { minLength: 1, maxLength: 20 })
  fc.assert(
    fc.property(amounts, (nanos) => {
      const values = nanos.map(formatCredits)
      const told = values.map(tellColumn(values))
      assert.equal(new Set(told.map((text) => text.split('.')[1]!.length)).size, 1)
      assert.deepEqual(
        told.map((text) => readCredits(text.replace('−', '-').replaceAll(',', ''))),
        nanos,
      )
    }),
  )
})

/** The steps of axes: uPlot takes 1, 2, 2.5 and 5 times a power of ten. */
const steps = fc
  .tuple(fc.constantFrom(1, 2, 2.5, 5), fc.integer({ min: -8, max: 5 }))
  .map(([digit, power]) => digit * 10 ** power)

test('CON-13 the labels of an axis differ, and each shows its value', () => {
  const units: Record<string, [tell: (value: number, step: number) => string, unit: number, least: number]> = {
    credits: [tellPlotted, 1, 1e-8],
    shares: [tellShare, 0.01, 1e-6],
    ms: [tellMs, 1, 0.25],
  }
  for (const [name, [tell, unit, least]] of Object.entries(units))
    fc.assert(
      fc.property(
        steps.filter((step) => step >= least && step < (name === 'ms' ? 10 : name === 'shares' ? 0.6 : 1e5)),
        (step) => {
          const values = [1, 2, 3, 4, 5].map((at) => Number((at * step).toPrecision(12)))
          const labels = values.map((value) => plain(tell(value, step))!)
          assert.equal(new Set(labels).size, 5, `${name}, ${step}: ${labels}`)
          const said = labels.map((label) => Number(label.replaceAll(/[, %ms]/g, '')) * unit)
          for (const [at, value] of values.entries())
            assert.ok(Math.abs(said[at]! - value) <= 1e-6 * value, `${name}, ${step}: ${labels}`)
        },
      ),
    )
  assert.deepEqual(
    [0, 0.0002, 0.0004].map((value) => tellPlotted(value, 0.0002)),
    ['0', '0.0002', '0.0004'],
  )
  assert.deepEqual(
    [0.025, 0.05].map((value) => tellPlotted(value, 0.025)),
    ['0.025', '0.050'],
  )
})

test('a change is shown relative to the previous value, and not at all if that is zero', () => {
  assert.equal(tellChange(5, 0), undefined)
  assert.equal(plain(tellChange(110, 100)), '+10 %')
  assert.equal(plain(tellChange(95, 100)), '−5.0 %')
  assert.equal(plain(tellChange(100, 100)), '±0 %')
  assert.equal(plain(tellChange(2_000, 100)), '×20.0')
})

test('times are in the viewer’s zone: to the second for today, else with their day', () => {
  const nowMs = Date.parse('2026-11-22T23:30:00Z')
  assert.equal(tellTime('2026-11-22T22:00:05Z', nowMs, 'UTC'), '22:00:05')
  assert.equal(tellTime('2026-11-22T22:00:05Z', nowMs, 'Asia/Kolkata'), '03:30:05')
  assert.equal(tellTime('2026-11-21T22:00:05Z', nowMs, 'UTC'), '21 Nov, 22:00')
  assert.equal(tellTime('2025-11-21T22:00:05Z', nowMs, 'UTC'), '21 Nov 2025, 22:00')
  assert.equal(
    tellTimesIn('The budget renews on 2026-11-30 23:00 UTC, after 2026-11-29 08:05 UTC.', nowMs, 'Europe/Berlin'),
    'The budget renews on 1 Dec, 00:00, after 29 Nov, 09:05.',
  )
  assert.equal(tellTime(null, nowMs, 'UTC'), '–')
  assert.equal(plain(tellAway('2026-11-23T02:30:00Z', nowMs)), 'in 3 h')
  assert.equal(plain(tellAway('2026-11-20T23:30:00Z', nowMs)), '2 d ago')
})

test('C1, C11: the lines of a bill add up to its total, except for the single rounding up', () => {
  const count = fc.nat(2_000_000)
  const rate = fc.bigInt(0n, 80_000_000_000n)
  fc.assert(
    fc.property(
      fc.array(count, { minLength: 5, maxLength: 5 }),
      fc.array(rate, { minLength: 10, maxLength: 10 }),
      (c, r) => {
        const rates = (at: number) => ({
          inputNanos: r[at]!,
          cacheReadNanos: r[at + 1]!,
          cacheWriteNanos: r[at + 2]!,
          cacheWrite1hNanos: r[at + 3]!,
          outputNanos: r[at + 4]!,
        })
        const words = (at: number) => ({
          input: formatCredits(r[at]!),
          cache_read: formatCredits(r[at + 1]!),
          cache_write: formatCredits(r[at + 2]!),
          cache_write_1h: formatCredits(r[at + 3]!),
          output: formatCredits(r[at + 4]!),
        })
        const [input, read, shortly, hour, output] = c as [number, number, number, number, number]
        const usage = {
          ...{ inputTokens: input, cacheReadTokens: read, cacheWriteTokens: shortly + hour, cacheWrite1hTokens: hour },
          ...{ outputTokens: output, reasoningTokens: 0, estimated: false },
        }
        const told = {
          ...{
            input_tokens: input,
            cache_read_tokens: read,
            cache_write_tokens: shortly + hour,
            cache_write_1h_tokens: hour,
          },
          ...{ output_tokens: output, reasoning_tokens: 0, calls: { web_search: 2 } },
        }
        const prices = { ...rates(0), steps: [{ above: 200_000, ...rates(5) }], calls: { web_search: 10_000_000n } }
        const price = {
          version: 'x',
          ...words(0),
          steps: [{ above: 200_000, ...words(5) }],
          calls: { web_search: '0.01' },
        }
        const billed = priceNanos(prices as never, usage, { web_search: 2 })
        const sum = priceLines(told as never, price as never).reduce((sum, { nanos }) => sum + nanos, 0n)
        assert.ok(billed - sum >= 0n && billed - sum <= 6n, `${billed} and ${sum}`)
      },
    ),
  )
})

test('a balance is computed backwards from the current one, with its credits at their times, as far as data reach', () => {
  const buckets = ['2026-11-19', '2026-11-20', '2026-11-21', '2026-11-22']
  const all = { credited: [{ at: '2026-11-21T08:00:00Z', credits: '5' }], knownFrom: undefined }
  const told = balanceOver(buckets, ['1', '1', '2', '0.5'], all, '10', 'UTC')
  assert.deepEqual(told.balances, [8.5, 7.5, 10.5, 10])
  assert.deepEqual(told.credits, [null, null, 10.5, null])
  assert.deepEqual(
    balanceOver(buckets, ['1', null, '2', '0.5'], { ...all, credited: [] }, '10', 'UTC').balances,
    [null, 12.5, 10.5, 10].map((v, at) => (at === 1 ? 12.5 : v)),
  )
})

test('a balance starts with the account’s first credit, and is not shown if credits may be missing', () => {
  const buckets = ['2026-11-19', '2026-11-20', '2026-11-21', '2026-11-22']
  const record = (at: string, after: Record<string, unknown>) => ({ at, after })
  const given = [record('2026-11-22T08:00:00Z', { amount: '3' }), record('2026-11-21T08:00:00Z', { amount: '5' })]
  const making = { items: [record('2026-11-20T10:00:00Z', { name: 'a', credit: '4' })], next: null }
  const told = (made: typeof making | undefined, next: string | null, items = given) =>
    balanceOver(
      buckets,
      ['0', '1', '2', '0.5'],
      creditsOf(made, { items, next }, { items: [], next: null }),
      '8.5',
      'UTC',
    )
  // Before it was made it had nothing.
  assert.deepEqual(told(making, null), { balances: [0, 3, 6, 8.5], credits: [null, 3, 6, 8.5] })
  // Of more credits than are listed the older ones are not known.
  assert.deepEqual(told(making, 'more').balances, [null, null, 6, 8.5])
  // Nor is what an account had that is older than the audit.
  assert.deepEqual(told({ items: [], next: null }, null).balances, [null, null, 6, 8.5])
  assert.deepEqual(told({ items: [], next: null }, null, []).balances, [null, null, null, 8.5])
  // Nothing is told of what has not come yet.
  assert.deepEqual(told(undefined, null).balances, [null, null, null, 8.5])
})

test('a balance has the monthly grants of its account, and what lapsed of the grant before', () => {
  const buckets = ['2026-11-29', '2026-11-30', '2026-12-01', '2026-12-02']
  const list = (...items: { at: string; after: Record<string, unknown> }[]) => ({ items, next: null })
  const granted = list(
    { at: '2026-12-01T00:00:01Z', after: { amount: '100', reference: 'grant:a/2026-12', lapsed: '40' } },
    { at: '2026-11-01T00:00:01Z', after: { amount: '100', reference: 'grant:a/2026-11' } },
  )
  const making = list({ at: '2026-11-01T00:00:00Z', after: { name: 'a' } })
  assert.deepEqual(balanceOver(buckets, ['10', '20', '5', '1'], creditsOf(making, list(), granted), '94', 'UTC'), {
    balances: [60, 40, 95, 94],
    credits: [null, null, 95, null],
  })
  assert.deepEqual(creditsOf(making, list(), undefined).credited, [])
})

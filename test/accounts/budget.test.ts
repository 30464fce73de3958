import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import {
  formatBudget,
  neverMs,
  parseBudget,
  renewsAt,
  type Spend,
  spanOf,
  spendMore,
  spentAt,
} from '../../src/accounts/budget.ts'
import { createCalendar } from '../../src/accounts/calendar.ts'

const berlin = createCalendar({ timeZone: 'Europe/Berlin', weekStarts: 'monday' })
const zones = ['UTC', 'Europe/Berlin', 'Asia/Kathmandu', 'America/Los_Angeles'].map((timeZone) =>
  createCalendar({ timeZone, weekStarts: 'monday' }),
)
const at = (text: string) => Date.parse(text)
const hourMs = 3_600_000

test('R15 a budget is written as credits per day, week or month, or without a period for ever', () => {
  assert.deepEqual(parseBudget('5/day'), { nanos: 5_000_000_000n, per: 'day' })
  assert.deepEqual(parseBudget(' 0.5 / week '), { nanos: 500_000_000n, per: 'week' })
  assert.deepEqual(parseBudget('5'), { nanos: 5_000_000_000n, per: undefined })
  for (const text of ['5/day', '12.5/month', '5']) assert.equal(formatBudget(parseBudget(text)), text)
  for (const text of ['', 'day', '5/year', '5/', '-1/day', '0', '0/day', '1e3/day', '5 /day/day'])
    assert.throws(() => parseBudget(text), RangeError, text)
})

test('R15 the day of a budget is that of the reporting zone, even if it has 23 or 25 hours', () => {
  for (const [day, hours] of [
    ['2026-03-29', 23],
    ['2026-10-25', 25],
    ['2026-11-22', 24],
  ] as const) {
    const { fromMs, untilMs } = spanOf(berlin, 'day', at(`${day}T10:00:00Z`))
    assert.equal((untilMs - fromMs) / hourMs, hours, day)
    let spend: Spend | undefined
    // The last moment of the day is its own, the next is the next day's.
    for (const ms of [fromMs, untilMs - 1]) spend = spendMore(spend, 'day', berlin, ms, -3n)
    assert.deepEqual(spend, { fromMs, untilMs, spentNanos: 6n })
    assert.deepEqual([spentAt(spend, untilMs - 1), spentAt(spend, untilMs)], [6n, 0n])
    assert.equal(spendMore(spend, 'day', berlin, untilMs, -4n).spentNanos, 4n)
  }
})

test('R15 weeks begin as the zone’s do, months on the first, and a budget for ever never renews', () => {
  const now = at('2026-11-22T23:30:00Z')
  assert.deepEqual(spanOf(berlin, 'week', now), {
    fromMs: at('2026-11-22T23:00:00Z'),
    untilMs: at('2026-11-29T23:00:00Z'),
  })
  assert.equal(spanOf(berlin, 'month', now).untilMs, at('2026-11-30T23:00:00Z'))
  assert.deepEqual(spanOf(berlin, undefined, now), { fromMs: 0, untilMs: neverMs })
  const day = { nanos: 1n, per: 'day' } as const
  assert.equal(renewsAt(berlin, day, undefined, now), at('2026-11-23T23:00:00Z'))
  const earlier = { fromMs: 0, untilMs: now + 5, spentNanos: 0n }
  assert.equal(renewsAt(berlin, day, earlier, now), now + 5)
  assert.equal(renewsAt(berlin, day, earlier, now + 5), at('2026-11-23T23:00:00Z'))
  assert.equal(renewsAt(berlin, { nanos: 1n, per: undefined }, earlier, now), undefined)
})

test('R15 X12 after a change of the zone, the reported window runs to its end, and no window begins before it', () => {
  const [utc, , , angeles] = zones
  const noon = at('2026-11-22T12:00:00Z')
  const told = spendMore(undefined, 'day', utc!, noon, -3n)
  assert.equal(told.untilMs, at('2026-11-23T00:00:00Z'))
  // In Los Angeles the day began at 8:00 UTC, before the reported window ends.
  const last = spendMore(told, 'day', angeles!, at('2026-11-22T23:59:59Z'), -3n)
  assert.deepEqual([last.untilMs, last.spentNanos], [told.untilMs, 6n])
  const next = spendMore(last, 'day', angeles!, at('2026-11-23T00:00:00Z'), -3n)
  assert.deepEqual(next, { fromMs: told.untilMs, untilMs: at('2026-11-23T08:00:00Z'), spentNanos: 3n })
})

test('R15 the amount spent is the sum of the entries of the window, whatever happens to zone and clock', () => {
  const entry = fc.record({
    stepMs: fc.oneof(fc.nat(10), fc.nat(3 * 24 * hourMs), fc.constant(-hourMs)),
    nanos: fc.bigInt(-20n, 100n),
    zone: fc.constantFrom(...zones),
  })
  const per = fc.constantFrom('day', 'week', 'month', undefined)
  fc.assert(
    fc.property(per, fc.array(entry, { maxLength: 60 }), (per, entries) => {
      let [nowMs, postedMs] = [at('2026-03-20T00:00:00Z'), 0]
      let spend: Spend | undefined
      const posted: { ms: number; nanos: bigint }[] = []
      const ends: number[] = []
      for (const { stepMs, nanos, zone } of entries) {
        nowMs += stepMs
        // As the ledger has it (ruling C15).
        postedMs = Math.max(nowMs, postedMs)
        posted.push({ ms: postedMs, nanos })
        const next = spendMore(spend, per, zone, postedMs, -nanos)
        if (spend && next.fromMs !== spend.fromMs) ends.push(spend.untilMs, next.fromMs)
        spend = next
        const { fromMs, untilMs, spentNanos } = spend
        const inIt = posted.filter(({ ms }) => ms >= fromMs && ms < untilMs)
        assert.equal(
          spentNanos,
          inIt.reduce((sum, one) => sum + one.nanos, 0n),
        )
        assert.ok(postedMs >= fromMs && postedMs < untilMs)
      }
      assert.deepEqual(
        ends,
        ends.toSorted((a, b) => a - b),
      )
    }),
  )
})

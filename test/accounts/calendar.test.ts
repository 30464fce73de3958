import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { createCalendar, isTimeZone, type PeriodName, quarterMs, weekStarts } from '../../src/accounts/calendar.ts'
import { runsOf } from '../support/runs.ts'

const at = (iso: string) => Date.parse(iso)
const told = (zone: string, period: PeriodName, iso: string, weekStart: (typeof weekStarts)[number] = 'monday') => {
  const { startMs, endMs } = createCalendar({ timeZone: zone, weekStarts: weekStart }).periodOf(at(iso), period)
  return [startMs, endMs].map((ms) => new Date(ms).toISOString().slice(0, 19)).join(' ')
}

/** A zone, a period, a moment in it, and where it begins and ends. */
const cases: readonly [zone: string, period: PeriodName, moment: string, told: string][] = [
  ['UTC', 'day', '2026-11-22T23:59:59.999Z', '2026-11-22T00:00:00 2026-11-23T00:00:00'],
  ['Europe/Berlin', 'day', '2026-11-22T23:00:00Z', '2026-11-22T23:00:00 2026-11-23T23:00:00'],
  // 23 and 25 hours.
  ['Europe/Berlin', 'day', '2026-03-29T12:00:00Z', '2026-03-28T23:00:00 2026-03-29T22:00:00'],
  ['Europe/Berlin', 'day', '2026-10-25T00:30:00Z', '2026-10-24T22:00:00 2026-10-25T23:00:00'],
  // The hour that comes twice is two.
  ['Europe/Berlin', 'hour', '2026-10-25T00:30:00Z', '2026-10-25T00:00:00 2026-10-25T01:00:00'],
  ['Europe/Berlin', 'hour', '2026-10-25T01:30:00Z', '2026-10-25T01:00:00 2026-10-25T02:00:00'],
  ['Asia/Kolkata', 'day', '2026-11-22T18:30:00Z', '2026-11-22T18:30:00 2026-11-23T18:30:00'],
  ['Asia/Kolkata', 'hour', '2026-11-22T18:00:00Z', '2026-11-22T17:30:00 2026-11-22T18:30:00'],
  ['Asia/Kathmandu', 'day', '2026-11-22T18:14:59Z', '2026-11-21T18:15:00 2026-11-22T18:15:00'],
  ['+05:30', 'day', '2026-11-22T18:29:59Z', '2026-11-21T18:30:00 2026-11-22T18:30:00'],
  // Half an hour of summer time.
  ['Australia/Lord_Howe', 'hour', '2026-04-04T15:10:00Z', '2026-04-04T15:00:00 2026-04-04T15:30:00'],
  // No midnight: clocks went from 0:00 to 1:00, and from 23:59 of the day before to 1:00.
  ['America/Sao_Paulo', 'day', '2018-11-04T12:00:00Z', '2018-11-04T03:00:00 2018-11-05T02:00:00'],
  ['Africa/Cairo', 'day', '2026-04-24T12:00:00Z', '2026-04-23T22:00:00 2026-04-24T21:00:00'],
  // Midnight twice: from 1:00 back to 0:00, and from 0:01 back to 23:01 of the day before.
  ['America/Havana', 'day', '2026-11-01T05:30:00Z', '2026-11-01T04:00:00 2026-11-02T05:00:00'],
  ['America/St_Johns', 'day', '2010-11-07T03:00:00Z', '2010-11-07T02:30:00 2010-11-08T03:30:00'],
  // A day that there was not.
  ['Pacific/Apia', 'day', '2011-12-30T09:59:59Z', '2011-12-29T10:00:00 2011-12-30T10:00:00'],
  ['Pacific/Apia', 'day', '2011-12-30T10:00:00Z', '2011-12-30T10:00:00 2011-12-31T10:00:00'],
  ['Europe/Berlin', 'week', '2026-11-22T12:00:00Z', '2026-11-15T23:00:00 2026-11-22T23:00:00'],
  ['Europe/Berlin', 'month', '2026-10-31T23:30:00Z', '2026-10-31T23:00:00 2026-11-30T23:00:00'],
  ['Europe/Berlin', 'month', '2026-10-31T22:30:00Z', '2026-09-30T22:00:00 2026-10-31T23:00:00'],
]

for (const [zone, period, moment, expected] of cases)
  test(`issue 13: the ${period} of ${moment} in ${zone}`, () => {
    assert.equal(told(zone, period, moment), expected)
  })

test('issue 13: a week begins on the day that is configured', () => {
  assert.equal(told('UTC', 'week', '2026-11-22T12:00:00Z', 'sunday'), '2026-11-22T00:00:00 2026-11-29T00:00:00')
  assert.equal(told('UTC', 'week', '2026-11-22T12:00:00Z', 'saturday'), '2026-11-21T00:00:00 2026-11-28T00:00:00')
})

const zones = ['UTC', ...Intl.supportedValuesOf('timeZone')]
const zone = fc.record({ timeZone: fc.constantFrom(...zones), weekStarts: fc.constantFrom(...weekStarts) })
const moment = fc.integer({ min: at('2012-01-01'), max: at('2050-01-01') })
const numRuns = runsOf(300)

test('issue 13: the periods of every zone follow one another without a gap, contain their moments, and nest', () => {
  const period = fc.constantFrom<PeriodName>('quarter', 'hour', 'day', 'week', 'month')
  fc.assert(
    fc.property(zone, moment, period, (zone, ms, period) => {
      const calendar = createCalendar(zone)
      const { startMs, endMs } = calendar.periodOf(ms, period)
      assert.ok(startMs <= ms && ms < endMs)
      // Asked afresh, from its other end, and for its neighbours.
      assert.deepEqual(createCalendar(zone).periodOf(endMs - 1, period), { startMs, endMs })
      assert.deepEqual(createCalendar(zone).periodOf(startMs, period), { startMs, endMs })
      assert.equal(calendar.periodOf(endMs, period).startMs, endMs)
      assert.equal(calendar.periodOf(startMs - 1, period).endMs, startMs)
      assert.equal(startMs % quarterMs, 0, 'it is made of quarters')
      const day = calendar.periodOf(ms, 'day')
      if (period === 'week' || period === 'month') assert.ok(day.startMs >= startMs && day.endMs <= endMs)
      if (period === 'hour' || period === 'quarter') assert.ok(day.startMs <= startMs && day.endMs >= endMs)
    }),
    { numRuns },
  )
})

test('issue 13: a day has the date that clocks show in it, and begins at the reported moment', () => {
  fc.assert(
    fc.property(zone, moment, (zone, ms) => {
      const calendar = createCalendar(zone)
      const date = calendar.dateOf(ms)
      const { startMs, endMs } = calendar.periodOf(ms, 'day')
      assert.equal(calendar.startOf(date), startMs)
      const shown = new Intl.DateTimeFormat('en-CA', { timeZone: zone.timeZone, dateStyle: 'short' })
      assert.equal(shown.format(endMs - 1), date)
      assert.equal(calendar.dateOf(startMs), date)
    }),
    { numRuns },
  )
})

test('issue 13: an invalid time zone is rejected, and so is one whose days begin within a quarter hour', () => {
  for (const name of ['Berlin', 'Europe/Berln', '', 'UTC+1', '+05:37', '../etc']) assert.equal(isTimeZone(name), false)
  for (const name of ['UTC', 'Asia/Kathmandu', '+05:45', 'America/St_Johns']) assert.equal(isTimeZone(name), true)
})

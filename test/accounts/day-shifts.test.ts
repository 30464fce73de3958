import assert from 'node:assert/strict'
import test from 'node:test'
import { createCalendar } from '../../src/accounts/calendar.ts'
import { dayShifts } from '../../src/accounts/day-shifts.ts'

const [sinceMs, untilMs] = [Date.UTC(2026, 1, 10, 12), Date.UTC(2027, 0, 10)]

test('X12: the UTC day of a shifted time is the zone’s day of that time, also in zones that change their clocks', () => {
  // Beirut puts its clocks forward and back over midnight, Kathmandu and UTC never do, in Apia it is tomorrow.
  for (const timeZone of [
    'UTC',
    'Europe/Berlin',
    'Asia/Beirut',
    'Asia/Kathmandu',
    'America/Santiago',
    'Pacific/Apia',
  ]) {
    const calendar = createCalendar({ timeZone, weekStarts: 'monday' })
    const shifts = dayShifts(calendar, { sinceMs, untilMs })
    assert.ok(shifts.length <= 7, `${timeZone}: ${shifts.length}`)
    for (let ms = sinceMs; ms < untilMs; ms += 1_800_000) {
      const { shiftMs } = shifts.findLast(({ fromMs }) => fromMs <= ms)!
      assert.equal(new Date(ms + shiftMs).toISOString().slice(0, 10), calendar.dateOf(ms), `${timeZone} ${ms}`)
    }
  }
})

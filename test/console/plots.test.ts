import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { assignColours, colourCount } from '../../console/src/pure/colours.ts'
import { hasAmount, largest, stack, sumAt } from '../../console/src/pure/stack.ts'
import { axisTicks, firstOpen, tellBucket, tellSpan, whollySeen } from '../../console/src/pure/ticks.ts'

const value = fc.option(fc.nat(1_000), { nil: null })

test('stacked bars: the highest edge is the sum, and only a gap in all series is a gap', () => {
  const series = fc
    .integer({ min: 1, max: 6 })
    .chain((count) => fc.array(fc.array(value, { minLength: 7, maxLength: 7 }), { minLength: count, maxLength: count }))
  fc.assert(
    fc.property(series, (series) => {
      const stacked = stack(series)
      for (let at = 0; at < 7; at++) {
        const here = series.map((values) => values[at] ?? null)
        const sum = here.every((one) => one === null) ? null : here.reduce((sum: number, one) => sum + (one ?? 0), 0)
        assert.equal(stacked.at(-1)![at], sum)
        assert.equal(sumAt(series)[at], sum)
        for (let up = 1; up < stacked.length; up++) assert.ok((stacked[up]![at] ?? 0) >= (stacked[up - 1]![at] ?? 0))
      }
    }),
  )
  assert.deepEqual(sumAt([]), [])
  assert.deepEqual(largest([null, 3, 7, 7]), { at: 2, value: 7 })
  assert.equal(largest([null]), undefined)
  assert.deepEqual([hasAmount([null, 0]), hasAmount([0, 2, null])], [false, true])
})

test('an id keeps its colour whatever is shown beside it, and no two on one plot share one', () => {
  const ids = fc.uniqueArray(fc.constantFrom(...'abcdefghijkl'), { maxLength: colourCount })
  fc.assert(
    fc.property(fc.array(ids, { maxLength: 8 }), (plots) => {
      const memory = new Map<string, number>()
      for (const shown of plots) {
        const before = new Map(memory)
        const colours = assignColours(shown, memory)
        assert.equal(new Set(colours.values()).size, shown.length)
        const had = shown.map((id) => before.get(id)).filter((colour) => colour !== undefined)
        // Nobody changes his colour where nobody has to.
        if (new Set(had).size === had.length)
          for (const id of shown) if (before.has(id)) assert.equal(colours.get(id), before.get(id))
      }
    }),
  )
})

test('an axis has labels at midnights and round hours of the viewer, or days of the reporting zone, as far apart as they need', () => {
  const zones = { viewer: 'Europe/Berlin', reporting: 'UTC' }
  const hours = Array.from({ length: 168 }, (_, at) => new Date(Date.UTC(2026, 9, 20, at)).toISOString())
  const ticks = axisTicks(hours, 'hour', zones, 600)
  // The clocks go back in between: midnight is midnight all the same.
  assert.deepEqual(
    ticks.map(({ text }) => text),
    ['Wed 21', 'Thu 22', 'Fri 23', 'Sat 24', 'Sun 25', 'Mon 26', 'Tue 27'],
  )
  assert.deepEqual([ticks[4]!.at - ticks[3]!.at, ticks[5]!.at - ticks[4]!.at], [24, 25])
  assert.deepEqual(
    axisTicks(hours.slice(0, 24), 'hour', { viewer: 'UTC', reporting: 'UTC' }, 500).map(({ text }) => text),
    ['Tue 20', '06:00', '12:00', '18:00'],
  )
  const days = Array.from({ length: 30 }, (_, at) => new Date(Date.UTC(2026, 10, 1 + at)).toISOString().slice(0, 10))
  for (const width of [200, 500, 900]) assert.ok(axisTicks(days, 'day', zones, width).length <= width / 68)
  assert.equal(axisTicks(days, 'day', zones, 500)[0]!.text, '1 Nov')
  // Half-hour zones have their midnights between our hours: every so many then.
  assert.ok(axisTicks(hours, 'hour', { viewer: 'Asia/Kolkata', reporting: 'UTC' }, 600).length > 2)
})

test('CON-18 no label of an axis is cut by the right edge', () => {
  const zones = { viewer: 'Europe/Berlin', reporting: 'Europe/Berlin' }
  const starts = { hour: 3_600_000, day: 86_400_000, month: 31 * 86_400_000 }
  fc.assert(
    fc.property(
      fc.constantFrom('hour', 'day', 'month'),
      fc.integer({ min: 1, max: 400 }),
      fc.integer({ min: 120, max: 1_500 }),
      fc.integer({ min: 0, max: 10_000 }),
      (bucket, count, widthPx, shift) => {
        const buckets = Array.from({ length: count }, (_, at) =>
          new Date(Date.UTC(2026, 0, 1) + shift * 900_000 + at * starts[bucket]).toISOString(),
        )
        const ticks = axisTicks(buckets, bucket, zones, widthPx)
        const seen = whollySeen(ticks, count, widthPx, 20)
        for (const { at, text } of seen)
          assert.ok(((at + 0.5) / count) * widthPx + (text.length * 7) / 2 <= widthPx + 20, text)
        // Labels that are not at the edge stay.
        assert.ok(
          ticks.length - seen.length <= 1 + Math.floor((30 * count) / widthPx),
          `${ticks.length} and ${seen.length}`,
        )
      },
    ),
  )
})

test('a time is shown with the hours of its zone, and a day alone', () => {
  const zones = { viewer: 'Asia/Kolkata', reporting: 'UTC' }
  assert.equal(tellBucket('2026-11-22T10:00:00Z', 'hour', zones), 'Sun 22 Nov, 15:30 to 16:30')
  assert.equal(tellBucket('2026-11-22', 'day', zones), 'Sun 22 Nov')
  assert.equal(tellBucket('2026-11-16', 'week', zones), 'week of Mon 16 Nov')
  assert.equal(tellBucket('2026-11-01', 'month', zones), 'Nov 2026')
  const hours = ['2026-11-22T10:00:00Z', '2026-11-22T11:00:00Z', '2026-11-22T12:00:00Z']
  assert.equal(tellSpan(hours, 'hour', zones), 'Sun 22 Nov, 15:30 – Sun 22 Nov, 18:30')
  assert.equal(tellSpan(['2026-11-22T10:00:00Z'], 'hour', zones, ' to '), 'Sun 22 Nov, 15:30 to Sun 22 Nov, 16:30')
  assert.equal(tellSpan(['2026-11-22', '2026-11-24'], 'day', zones), 'Sun 22 Nov – Tue 24 Nov')
})

test('incomplete values are marked as such', () => {
  const hours = ['2026-11-22T08:00:00Z', '2026-11-22T09:00:00Z', '2026-11-22T10:00:00Z']
  assert.equal(firstOpen(hours, '2026-11-22T10:30:00Z', 'UTC'), 2)
  assert.equal(firstOpen(hours, '2026-11-22T09:00:00Z', 'UTC'), 1)
  assert.equal(firstOpen(hours, undefined, 'UTC'), 3)
  assert.equal(firstOpen(['2026-11-21', '2026-11-22'], '2026-11-22T10:30:00Z', 'UTC'), 1)
})

import { useState } from 'preact/hooks'
import { place, setQuery } from '../location.ts'
import { addDays } from '../pure/calendar.ts'
import { daysOf, ranges, readRange } from '../pure/range.ts'
import { reportingZone } from '../session.ts'
import { Dialog } from './dialog.tsx'
import { usualRange } from './usual-range.ts'

/** Chooses the time of the figures: one of the usual ranges, or days. */
export function RangePicker() {
  const [isOpen, setOpen] = useState(false)
  const { query, page } = place.value
  const range = readRange(query, Date.now(), reportingZone(), usualRange(page))
  return (
    <>
      <fieldset class="segments">
        <legend class="offscreen">Range</legend>
        {Object.entries(ranges).map(([name, { short, label }]) => (
          <button
            type="button"
            key={name}
            title={label}
            aria-pressed={range.name === name}
            onClick={() => setQuery({ range: name, from: undefined, to: undefined })}
          >
            {short}
          </button>
        ))}
        <button type="button" aria-pressed={range.name === 'own'} aria-haspopup="dialog" onClick={() => setOpen(true)}>
          {range.name === 'own' ? range.label : 'Days'}
        </button>
      </fieldset>
      {isOpen && <Days close={() => setOpen(false)} />}
    </>
  )
}

function Days({ close }: { close(): void }) {
  const zone = reportingZone()
  const { query, page } = place.value
  const given = daysOf(readRange(query, Date.now(), zone, usualRange(page)), zone)
  const [first, setFirst] = useState(given.first)
  const [last, setLast] = useState(given.last)
  return (
    <Dialog title="Days" close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          const [from, to] = first <= last ? [first, last] : [last, first]
          setQuery({ range: undefined, from, to: addDays(to, 1) })
          close()
        }}
      >
        <p class="small">Days begin in {zone}. Both are meant with all of their hours.</p>
        <div class="fields">
          <div class="field">
            <label for="first-day">First day</label>
            <input id="first-day" type="date" required value={first} onInput={(e) => setFirst(e.currentTarget.value)} />
          </div>
          <div class="field">
            <label for="last-day">Last day</label>
            <input id="last-day" type="date" required value={last} onInput={(e) => setLast(e.currentTarget.value)} />
          </div>
        </div>
        <div class="form-foot">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary">
            Show
          </button>
        </div>
      </form>
    </Dialog>
  )
}

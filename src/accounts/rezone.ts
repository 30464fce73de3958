import { BookError } from './book-error.ts'
import type { BookChange } from './book-rules.ts'
import { isSameZone, isTimeZone, spellZone } from './calendar.ts'

/** @property before undefined if no server had recorded one */
export type ZoneChange = { before: string | undefined; after: string }

/**
 * Changes the zone by whose days reports and budgets are counted (ruling X12). No server may use the store meanwhile,
 * since each counts by the zone that it was started with.
 * @param named an IANA name, or an offset such as `+05:30`.
 */
export function rezone(named: string): BookChange<ZoneChange> {
  const timeZone = spellZone(named)
  return {
    about: { reporting: true },
    decide({ reporting }) {
      if (!isTimeZone(timeZone)) throw new BookError('zone_invalid', timeZone)
      const { isRecorded, servers, timeZone: recorded } = reporting!
      const before = isRecorded ? recorded : undefined
      const result = { before, after: timeZone }
      if (before !== undefined && isSameZone(before, timeZone)) return { writes: [], result: { before, after: before } }
      if (servers.length > 0) throw new BookError('servers_run', servers.join(', '))
      return {
        writes: [{ kind: 'set_zone', timeZone }],
        result,
        trail: {
          operation: 'reporting.rezone',
          object: 'reporting',
          before: before === undefined ? undefined : { time_zone: before },
          after: { time_zone: timeZone },
        },
      }
    },
  }
}

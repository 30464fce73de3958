import { isTimeZone } from '../accounts/calendar.ts'
import { findNearIds } from '../catalog/near-ids.ts'

/** Returns the cure for a wrong time zone, with similar names; undefined if the name is right. */
export function timeZoneMistake(name: string): string | undefined {
  if (isTimeZone(name)) return undefined
  const near = findNearIds(name.replaceAll(' ', '_'), Intl.supportedValuesOf('timeZone'))
  const meant = near.length === 0 ? '' : `; did you mean ${near.join(' or ')}?`
  return `must be the name of a time zone, such as UTC, Europe/Berlin or Asia/Kolkata${meant}`
}

/* Days and hours in a named time zone, from the time zone data of the browser. */

const formats = new Map<string, Intl.DateTimeFormat>()

/** Returns a format, and keeps it because making one is slow. */
export function formatIn(zone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${zone} ${JSON.stringify(options)}`
  const known = formats.get(key)
  if (known) return known
  const made = new Intl.DateTimeFormat('en-GB', { timeZone: zone, ...options })
  formats.set(key, made)
  return made
}

export type Parts = { year: number; month: number; day: number; hour: number; minute: number; weekday: string }

export function partsIn(zone: string, ms: number): Parts {
  const format = formatIn(zone, {
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    weekday: 'short',
    hourCycle: 'h23',
  })
  const parts = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, value]))
  return {
    year: Number(parts['year']),
    month: Number(parts['month']),
    day: Number(parts['day']),
    hour: Number(parts['hour']),
    minute: Number(parts['minute']),
    weekday: parts['weekday'] ?? '',
  }
}

/** Returns the date, such as `2026-11-22`. */
export function dayIn(zone: string, ms: number): string {
  const { year, month, day } = partsIn(zone, ms)
  return `${year}-${two(month)}-${two(day)}`
}

/** Returns the day that is a number of days later, or earlier if the number is negative. */
export function addDays(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10)
}

/** Returns the month that is a number of months later, or earlier if the number is negative: `2026-12`. */
export function addMonths(month: string, months: number): string {
  const [year, of] = month.split('-').map(Number)
  return new Date(Date.UTC(year!, of! - 1 + months)).toISOString().slice(0, 7)
}

export function daysBetween(from: string, to: string): number {
  return Math.round((Date.parse(`${to}T00:00:00Z`) - Date.parse(`${from}T00:00:00Z`)) / 86_400_000)
}

export function isDay(text: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(`${text}T00:00:00Z`))
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** Formats a day as `22 Nov`, with the year if it is not this one. */
export function tellDay(day: string, thisYear?: number): string {
  const [year, month, date] = day.split('-').map(Number)
  const told = `${date} ${months[month! - 1]}`
  return thisYear === undefined || thisYear === year ? told : `${told} ${year}`
}

export function tellMonth(day: string): string {
  const [year, month] = day.split('-').map(Number)
  return `${months[month! - 1]} ${year}`
}

export function two(number: number): string {
  return String(number).padStart(2, '0')
}

/** Formats a time zone's name with its offset from UTC at a moment: `Europe/Berlin, UTC+1`. */
export function tellZone(zone: string, ms: number): string {
  if (zone === 'UTC') return 'UTC'
  const parts = formatIn(zone, { timeZoneName: 'shortOffset' }).formatToParts(ms)
  const offset = parts.find(({ type }) => type === 'timeZoneName')?.value.replace('GMT', 'UTC') ?? ''
  return offset === '' ? zone : `${zone}, ${offset}`
}

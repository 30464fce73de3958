import { formatIn, partsIn, tellDay, two } from './calendar.ts'

/* Numbers for people: short in the page, exact in tooltips. The space before a unit does not break. */

const nbsp = '\u00a0'
const nano = 1_000_000_000n

/** Parses credits into nano-credits, exactly. @returns 0 for invalid text */
export function readCredits(text: string | null | undefined): bigint {
  const [, sign, whole, fraction = ''] = /^(-?)(\d+)(?:\.(\d{1,9}))?$/.exec(text ?? '') ?? []
  if (whole === undefined) return 0n
  const nanos = BigInt(whole) * nano + BigInt(fraction.padEnd(9, '0'))
  return sign === '-' ? -nanos : nanos
}

/** Nano-credits as a decimal, exactly. */
export function exactCredits(nanos: bigint): string {
  const size = nanos < 0n ? -nanos : nanos
  const fraction = String(size % nano)
    .padStart(9, '0')
    .replace(/0+$/, '')
  return `${nanos < 0n ? '-' : ''}${size / nano}${fraction === '' ? '' : `.${fraction}`}`
}

/** `1,204.50`, `<0.01`, `1.24 M` */
export function tellCredits(value: string | bigint | null | undefined): string {
  if (value === null || value === undefined) return '–'
  const nanos = typeof value === 'bigint' ? value : readCredits(value)
  if (nanos === 0n) return '0'
  const size = nanos < 0n ? -nanos : nanos
  const sign = nanos < 0n ? '−' : ''
  if (size < 10_000_000n) return nanos < 0n ? '>−0.01' : '<0.01'
  const credits = Number(size) / 1e9
  if (credits >= 999_999.5) return sign + tellBig(credits)
  return sign + credits.toLocaleString('en', credits >= 9_999.5 ? whole : cents)
}

const whole = { maximumFractionDigits: 0 }
const cents = { minimumFractionDigits: 2, maximumFractionDigits: 2 }

/** Like `tellCredits`, but small amounts have two significant digits: most amounts in lists are small. */
export function tellFine(value: string | null | undefined): string {
  const nanos = readCredits(value)
  const size = nanos < 0n ? -nanos : nanos
  if (!value || size === 0n || size >= 10_000_000n) return tellCredits(value)
  if (size < 1_000n) return '<0.000001'
  const digits = String(size).length
  const scale = 10n ** BigInt(digits - 2)
  return exactCredits(((nanos + (nanos < 0n ? -scale : scale) / 2n) / scale) * scale)
}

/** `312`, `12,480`, `1.24 M` */
export function tellCount(count: number | null | undefined): string {
  if (count === null || count === undefined) return '–'
  return Math.abs(count) >= 100_000 ? tellBig(count) : count.toLocaleString('en', whole)
}

const bigs = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
] as const

function tellBig(count: number): string {
  const size = Math.abs(count)
  const sign = count < 0 ? '−' : ''
  // A value that would round up to a thousand has the next unit.
  const [unit, name] = bigs.find(([unit]) => size >= unit * 0.9995) ?? ([1, ''] as const)
  const value = size / unit
  const digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2
  return `${sign}${value.toFixed(digits)}${name === '' ? '' : nbsp + name}`
}

/** `0`, `840 ms`, `2.1 s`, `3 min 20 s` */
export function tellMs(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–'
  if (ms < 999.5) return `${Math.round(ms)}${nbsp}ms`
  if (ms < 59_950) return `${(ms / 1_000).toFixed(ms < 9_950 ? 2 : 1)}${nbsp}s`
  return tellSpan(ms)
}

/** A longer time in its two largest units: `3 min 20 s`, `2 d 4 h` */
export function tellSpan(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  const units = [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'min'],
    [1, 's'],
  ] as const
  const at = units.findIndex(([unit]) => seconds >= unit)
  if (at < 0) return `0${nbsp}s`
  const [unit, name] = units[at]!
  const first = `${Math.floor(seconds / unit)}${nbsp}${name}`
  const next = units[at + 1]
  const rest = next ? Math.floor((seconds % unit) / next[0]) : 0
  return rest === 0 ? first : `${first} ${rest}${nbsp}${next![1]}`
}

/** A share from 0 to 1: `0 %`, `<0.1 %`, `4.3 %`, `62 %` */
export function tellShare(share: number | null | undefined): string {
  if (share === null || share === undefined || Number.isNaN(share)) return '–'
  const percent = share * 100
  if (percent === 0) return `0${nbsp}%`
  if (Math.abs(percent) < 0.1) return `<0.1${nbsp}%`
  return `${percent.toFixed(Math.abs(percent) < 9.95 ? 1 : 0)}${nbsp}%`
}

/** The relative change since before; undefined if it cannot be computed. */
export function tellChange(now: number, before: number): string | undefined {
  if (!(before > 0)) return undefined
  const change = now / before - 1
  if (Math.abs(change) < 0.005) return `±0${nbsp}%`
  if (change > 9.995) return `×${tellBig(now / before)}`
  return `${change > 0 ? '+' : '−'}${Math.abs(change * 100).toFixed(Math.abs(change) < 0.0995 ? 1 : 0)}${nbsp}%`
}

export function tellBytes(bytes: number): string {
  return bytes < 1_048_576 ? `${Math.ceil(bytes / 1_024)}${nbsp}KiB` : `${Math.round(bytes / 1_048_576)}${nbsp}MiB`
}

/** `14:03:22` for today, else `21 Nov, 14:03`, in the zone. */
export function tellTime(iso: string | null | undefined, nowMs: number, zone: string): string {
  if (!iso) return '–'
  const ms = Date.parse(iso)
  const { year, month, day, hour, minute } = partsIn(zone, ms)
  const now = partsIn(zone, nowMs)
  const clock = `${two(hour)}:${two(minute)}`
  if (year === now.year && month === now.month && day === now.day)
    return `${clock}:${two(new Date(ms).getUTCSeconds())}`
  const told = tellDay(`${year}-${month}-${day}`, now.year)
  return `${told}, ${clock}`
}

/** The whole time with its zone, for tooltips. */
export function exactTime(iso: string, zone: string): string {
  const format = formatIn(zone, { dateStyle: 'medium', timeStyle: 'medium' })
  return `${format.format(Date.parse(iso))} ${zone}\n${iso}`
}

/** `in 3 h`, `2 d ago` */
export function tellAway(iso: string, nowMs: number): string {
  const ms = Date.parse(iso) - nowMs
  const [first = ''] = tellSpan(Math.abs(ms)).split(' ')
  return Math.abs(ms) < 1_500 ? 'now' : ms > 0 ? `in ${first}` : `${first} ago`
}

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

/** Formats nano-credits as an exact decimal. */
export function exactCredits(nanos: bigint): string {
  const size = nanos < 0n ? -nanos : nanos
  const fraction = String(size % nano)
    .padStart(9, '0')
    .replace(/0+$/, '')
  return `${nanos < 0n ? '-' : ''}${size / nano}${fraction === '' ? '' : `.${fraction}`}`
}

/** Formats credits: `1,204.50`, `0.00018`, `1.24 M`. At least two decimals; below 0.1, two significant digits. */
export function tellCredits(value: string | bigint | null | undefined): string {
  if (value === null || value === undefined) return '–'
  const nanos = typeof value === 'bigint' ? value : readCredits(value)
  if (nanos === 0n) return '0'
  const size = nanos < 0n ? -nanos : nanos
  const sign = nanos < 0n ? '−' : ''
  if (size < 100_000_000n) return sign + tellSmall(size)
  const credits = Number(size) / 1e9
  if (credits >= 999_999.5) return sign + tellBig(credits)
  return sign + credits.toLocaleString('en', credits >= 9_999.5 ? whole : cents)
}

/** Formats an amount below 0.1 credits with two significant digits, and at least two decimals. */
function tellSmall(nanos: bigint): string {
  const scale = 10n ** BigInt(Math.max(0, String(nanos).length - 2))
  return padCents(exactCredits(((nanos + scale / 2n) / scale) * scale))
}

function padCents(exact: string): string {
  const [whole, fraction = ''] = exact.split('.')
  return `${whole}.${fraction.padEnd(2, '0')}`
}

/**
 * Formats credits with every digit: `−1,204.50`, `24.99982`. In a statement, amounts and balances must add up.
 * @param decimals the fewest decimals, with zeros at the end
 */
export function tellExact(value: string | null | undefined, decimals = 2): string {
  if (!value) return '–'
  const nanos = readCredits(value)
  const [whole = '', fraction = ''] = exactCredits(nanos < 0n ? -nanos : nanos).split('.')
  return `${nanos < 0n ? '−' : ''}${BigInt(whole).toLocaleString('en')}.${fraction.padEnd(decimals, '0')}`
}

/** Returns a function that formats the amounts of a column like `tellExact`, all with the same number of decimals. */
export function tellColumn(values: readonly string[]): (value: string) => string {
  const decimals = values.reduce((most, value) => Math.max(most, fractionOf(value).length), 2)
  return (value) => tellExact(value, decimals)
}

function fractionOf(value: string): string {
  return exactCredits(readCredits(value)).split('.')[1] ?? ''
}

/**
 * Formats credits of a plot.
 * @param step the distance between two labels of the axis, whose number of decimals all labels get; undefined for a
 *   value that is not on an axis
 */
export function tellPlotted(credits: number, step?: number): string {
  if (step === undefined || credits === 0 || Math.abs(credits) >= 999_999.5)
    return tellCredits(BigInt(Math.round(credits * 1e9)))
  const decimals = decimalsOf(step)
  const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals }
  return (credits < 0 ? '−' : '') + Math.abs(credits).toLocaleString('en', digits)
}

/** Counts the decimals of a step of an axis, such as 0.0025; at most nine. */
function decimalsOf(step: number): number {
  for (let decimals = 0; decimals < 9; decimals++) {
    const scaled = step * 10 ** decimals
    if (Math.abs(scaled - Math.round(scaled)) < 1e-6 * scaled) return decimals
  }
  return 9
}

const whole = { maximumFractionDigits: 0 }
const cents = { minimumFractionDigits: 2, maximumFractionDigits: 2 }

/** Formats a number: `312`, `12,480`, `1.24 M`. */
export function tellCount(count: number | null | undefined): string {
  if (count === null || count === undefined) return '–'
  return Math.abs(count) >= 100_000 ? tellBig(count) : count.toLocaleString('en', whole)
}

export function tellRequests(count: number | undefined): string {
  return `${tellCount(count)} ${count === 1 ? 'request' : 'requests'}`
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

/** Formats a time: `0 ms`, `840 ms`, `2.14 s`, `3 min 20 s`. @param step of an axis, as in `tellPlotted` */
export function tellMs(ms: number | null | undefined, step?: number): string {
  if (ms === null || ms === undefined) return '–'
  if (ms > 0 && ms < 999.5 && step !== undefined) return `${ms.toFixed(decimalsOf(step))}${nbsp}ms`
  if (ms > 0 && ms < 0.5) return `<1${nbsp}ms`
  if (ms < 999.5) return `${Math.round(ms)}${nbsp}ms`
  if (ms < 59_950) return `${(ms / 1_000).toFixed(ms < 9_950 ? 2 : 1)}${nbsp}s`
  return tellSpan(ms)
}

/**
 * Formats a longer time in its two largest units: `3 min 20 s`, `2 d 4 h`, `3 y 40 d`; from a hundred years on, `>100
 * y`.
 */
export function tellSpan(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  if (seconds >= 100 * year) return `>100${nbsp}y`
  const units = [
    [year, 'y'],
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

/** A mean year, in seconds. */
const year = 31_557_600

/** Formats a share from 0 to 1: `0 %`, `<0.1 %`, `4.3 %`, `62 %`. @param step of an axis, as in `tellPlotted` */
export function tellShare(share: number | null | undefined, step?: number): string {
  if (share === null || share === undefined || Number.isNaN(share)) return '–'
  const percent = share * 100
  if (step !== undefined && percent !== 0) return `${percent.toFixed(decimalsOf(step * 100))}${nbsp}%`
  if (percent === 0) return `0${nbsp}%`
  if (Math.abs(percent) < 0.1) return `<0.1${nbsp}%`
  return `${percent.toFixed(Math.abs(percent) < 9.95 ? 1 : 0)}${nbsp}%`
}

/** Formats the relative change since an earlier value; undefined if it cannot be computed. */
export function tellChange(now: number, before: number): string | undefined {
  if (!(before > 0)) return undefined
  const change = now / before - 1
  if (Math.abs(change) < 0.005) return `±0${nbsp}%`
  if (change > 9.995) return `×${tellBig(now / before)}`
  return `${change > 0 ? '+' : '−'}${Math.abs(change * 100).toFixed(Math.abs(change) < 0.0995 ? 1 : 0)}${nbsp}%`
}

/** Formats a time in a zone: `14:03:22` if it is today, else `21 Nov, 14:03`. */
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

/** Replaces the times of a sentence, such as `2026-11-21 14:03 UTC`, by times of a zone. */
export function tellTimesIn(text: string, nowMs: number, zone: string): string {
  return text.replaceAll(/(\d{4}-\d\d-\d\d) (\d\d:\d\d) UTC/g, (_, day: string, clock: string) =>
    tellTime(`${day}T${clock}:00Z`, nowMs, zone),
  )
}

/** Formats the exact time with its zone, for tooltips. */
export function exactTime(iso: string, zone: string): string {
  const format = formatIn(zone, { dateStyle: 'medium', timeStyle: 'medium' })
  return `${format.format(Date.parse(iso))} ${zone}\n${iso}`
}

/** Formats the distance of a time from now: `in 3 h`, `2 d ago`. */
export function tellAway(iso: string, nowMs: number): string {
  const ms = Date.parse(iso) - nowMs
  const [first = ''] = tellSpan(Math.abs(ms)).split(' ')
  return Math.abs(ms) < 1_500 ? 'now' : ms > 0 ? `in ${first}` : `${first} ago`
}

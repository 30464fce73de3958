import type { ToldUsage } from '../operations/usage-shape.ts'
import { formatTable } from './print.ts'

type UsageTotal = ToldUsage['total']
type FirstByteTimes = NonNullable<UsageTotal['first_byte_ms']>

/** Formats a table. It has a line for each bucket of each group, the sum of the groups not listed, and the total. */
export function formatUsage(told: ToldUsage): string {
  const { series, other, total, buckets, time_zone: zone, from, to } = told
  const by = Object.keys(series[0]?.of ?? {})
  const measures = Object.keys(total) as (keyof UsageTotal)[]
  const isOne = buckets.length === 1
  const rows: string[][] = []
  const add = (names: readonly string[], figures: UsageTotal) => {
    for (const [at, bucket] of buckets.entries())
      rows.push([...(isOne ? [] : [bucket]), ...names, ...measures.map((name) => cell(figures[name]!, at))])
  }
  for (const one of series)
    add(
      by.map((name) => nameOf(one, name, series)),
      one,
    )
  const filled = (text: string) => by.map((_, at) => (at === 0 ? text : ''))
  if (other) add(filled(`(${other.count} others)`), other)
  if (by.length === 0) add([], total)
  else add(filled('total'), total)
  const head = [
    ...(isOne ? [] : [told.bucket]),
    ...by,
    ...measures.map((name) => (isTimes(total[name]!) ? `${name} p50/p95/p99` : name)),
  ]
  const of = told.folding && `, of ${sayFolded(told.folding)}`
  return `${from} to ${to}, days of ${zone}${of ?? ''}\n${formatTable(head, rows)}`
}

/** Says which part of the ledger the figures of reports include, such as `61 % of the ledger`. */
export function sayFolded({ folded, entries }: NonNullable<ToldUsage['folding']>): string {
  return `${Math.floor((100 * folded) / entries)} % of the ledger`
}

/** Returns the word for a group. People who have the same name are shown with their ids. */
function nameOf({ of, named }: ToldUsage['series'][number], grouping: string, all: ToldUsage['series']): string {
  const name = grouping as 'person'
  const [called, id] = [named?.[name] ?? null, of[name] ?? null]
  const isShared = called !== null && all.some((one) => one.named?.[name] === called && one.of[name] !== id)
  return isShared ? `${called} (${id})` : (called ?? id ?? '-')
}

function cell(figures: NonNullable<UsageTotal[keyof UsageTotal]>, at: number): string {
  if (!isTimes(figures)) return `${figures[at] ?? '-'}`
  return [figures.p50, figures.p95, figures.p99].map((list) => list[at] ?? '-').join(' / ')
}

function isTimes(figures: NonNullable<UsageTotal[keyof UsageTotal]>): figures is FirstByteTimes {
  return !Array.isArray(figures)
}

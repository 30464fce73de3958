import type { UsageGrouping } from '../accounts/usage/question.ts'
import { formatCsvRow } from './csv.ts'
import { measures, type ToldUsage } from './usage-shape.ts'

const groups = ['account', 'key', 'model', 'wires', 'upstream', 'outcome', 'code'] as const
const percentiles = ['p50', 'p95', 'p99'] as const

type UsageRow = ToldUsage['series'][number] | NonNullable<ToldUsage['other']> | ToldUsage['total']
type Cell = { value: string | number | null; isNumber: boolean }

/**
 * Formats a line for each bucket of each series. The first column marks the lines of `other` and `total`.
 * @param dimensions the groupings that were asked for, which are columns even without figures
 */
export function* formatUsageCsv(told: ToldUsage, dimensions: readonly UsageGrouping[] = []): Iterable<string> {
  const { series, other, total, buckets } = told
  const by = groups.filter((name) => dimensions.includes(name))
  const asked = measures.filter((name) => name in total)
  const columns = asked.flatMap((name) => (name.endsWith('_ms') ? percentiles.map((one) => `${name}_${one}`) : [name]))
  const names = by.filter((name) => name === 'account' || name === 'key')
  const head = ['series', 'bucket', ...by, ...names.map((name) => `${name}_name`), ...columns]
  yield formatCsvRow(head.map(text))
  for (const one of series) {
    const words = [...by.map((name) => one.of[name] ?? ''), ...names.map((name) => one.named?.[name] ?? '')]
    yield* lines('group', words, one)
  }
  const none = [...by, ...names].map(() => '')
  if (other) yield* lines('other', none, other)
  yield* lines('total', none, total)

  function* lines(kind: string, words: readonly string[], figures: UsageRow): Iterable<string> {
    for (const [at, bucket] of buckets.entries()) {
      const cells = asked.flatMap((name): Cell[] => {
        const values = figures[name]!
        const of = (list: readonly (string | number | null)[]) => ({ value: list[at] ?? null, isNumber: true })
        return Array.isArray(values)
          ? [of(values)]
          : percentiles.map((one) => of((values as Record<typeof one, number[]>)[one]))
      })
      yield formatCsvRow([kind, bucket, ...words].map(text).concat(cells))
    }
  }
}

function text(value: string): Cell {
  return { value, isNumber: false }
}

import { counters } from '../inference/usage.ts'
import type { Grouping, Total } from './entries.ts'

/** The field of a total for each grouping. */
const places = { day: 'dayMs', model: 'model', account: 'accountId', key: 'keyId' } as const satisfies Record<
  Grouping,
  keyof Total
>

/** Adds totals of parts of the entries, sorted by the groupings: undefined comes first, texts in the order of their bytes. */
export function addTotals(parts: readonly Total[], by: readonly Grouping[]): Total[] {
  const placeOf = (total: Total) => by.map((grouping) => total[places[grouping]])
  const sums = new Map<string, Total>()
  for (const part of parts) {
    const place = JSON.stringify(placeOf(part).map((value) => value ?? null))
    const sum = sums.get(place)
    sums.set(place, sum ? add(sum, part) : part)
  }
  return [...sums.values()].sort((a, b) => compare(placeOf(a), placeOf(b)))
}

function add(a: Total, b: Total): Total {
  const sum: Total = {
    ...b,
    requests: a.requests + b.requests,
    billedNanos: a.billedNanos + b.billedNanos,
    creditedNanos: a.creditedNanos + b.creditedNanos,
  }
  for (const counter of counters) sum[counter] = a[counter] + b[counter]
  return sum
}

type TotalKey = readonly (string | number | undefined)[]

function compare(a: TotalKey, b: TotalKey): number {
  for (const [at, left] of a.entries()) {
    const right = b[at]
    if (left === right) continue
    if (left === undefined || right === undefined) return left === undefined ? -1 : 1
    if (typeof left === 'number') return left - (right as number)
    return Buffer.compare(Buffer.from(left), Buffer.from(right as string))
  }
  return 0
}

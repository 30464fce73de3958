import type { ChainEnd, EntryRange } from './end.ts'

/** The entries after the numbers that an end has come to. */
export function rangesBehind(tails: readonly ChainEnd[], come: ReadonlyMap<string, number>): EntryRange[] {
  return tails.flatMap(({ accountId, seq }) => {
    const after = come.get(accountId) ?? 0
    return seq > after ? [{ accountId, after, upto: seq }] : []
  })
}

export function countOf(ranges: readonly EntryRange[]): number {
  return ranges.reduce((sum, { after, upto }) => sum + upto - after, 0)
}

/** The same in pieces of at most so many entries. */
export function* sliceRanges(ranges: readonly EntryRange[], entriesMax: number): Iterable<EntryRange[]> {
  let slice: EntryRange[] = []
  let room = entriesMax
  for (const { accountId, after, upto } of ranges) {
    for (let from = after; from < upto; ) {
      const to = Math.min(upto, from + room)
      slice.push({ accountId, after: from, upto: to })
      room -= to - from
      from = to
      if (room > 0) continue
      yield slice
      slice = []
      room = entriesMax
    }
  }
  if (slice.length > 0) yield slice
}

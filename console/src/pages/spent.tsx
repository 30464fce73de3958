import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { useLoad } from '../api/load.ts'
import { readRange } from '../pure/range.ts'
import { sumOfCredits, valuesOf } from '../pure/usage.ts'
import { reportingZone } from '../session.ts'
import type { Usage } from '../shapes.ts'
import { usagePath } from './figures.ts'

export type Spent = { values: readonly (number | null)[]; credits: bigint }

/** The most rows in one query of figures. */
export const rowsAtOnce = 50

type Told = ReadonlyMap<string, Spent>

/**
 * Loads the spending of accounts or keys in thirty days.
 * @returns a function that finds the amounts of an id, and an element that loads them when it is rendered
 */
export function useSpent(
  by: 'account' | 'key',
  ids: readonly string[],
): [of: (id: string) => Spent | undefined, asks: ComponentChildren] {
  const spent = useSignal<Told>(new Map())
  const asks = chunks(ids).map((chunk) => <SpentOf key={chunk[0]} by={by} ids={chunk} into={spent} />)
  return [(id) => spent.value.get(id), asks]
}

function chunks(ids: readonly string[]): string[][] {
  const count = Math.ceil(ids.length / rowsAtOnce)
  return Array.from({ length: count }, (_, at) => ids.slice(at * rowsAtOnce, (at + 1) * rowsAtOnce))
}

function SpentOf({ by, ids, into }: { by: 'account' | 'key'; ids: readonly string[]; into: Signal<Told> }) {
  const range = readRange({ range: '30d' }, Date.now(), reportingZone())
  const only = { [by]: ids.join(',') }
  const { data } = useLoad<Usage>(usagePath({ range, by, measures: ['credits'], top: rowsAtOnce, only }))
  useEffect(() => {
    if (!data) return
    const next = new Map(into.peek())
    for (const id of ids) next.set(id, { values: [], credits: 0n })
    for (const series of data.series)
      next.set(series.of[by] ?? '', { values: valuesOf(series, 'credits'), credits: sumOfCredits(series) })
    into.value = next
  }, [data])
  return null
}

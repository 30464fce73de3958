/** The number of ids that have a colour of their own at once; all others share "other". */
export const colourCount = 6

/**
 * Assigns colours. An id keeps its last colour, whatever is shown beside it. If two ids of one plot last had the same
 * colour, the first of them keeps it.
 * @param memory the last colour of each id in this tab; it is updated
 * @returns for each id a number from 0 to 5
 */
export function assignColours(shown: readonly string[], memory: Map<string, number>): Map<string, number> {
  const assigned = new Map<string, number>()
  const isFree = (colour: number) => ![...assigned.values()].includes(colour)
  for (const id of shown.slice(0, colourCount)) {
    const had = memory.get(id)
    if (had !== undefined && isFree(had)) assigned.set(id, had)
  }
  const counts = Array.from(
    { length: colourCount },
    (_, colour) => [...memory.values()].filter((c) => c === colour).length,
  )
  for (const id of shown.slice(0, colourCount)) {
    if (assigned.has(id)) continue
    const free = counts.map((count, colour) => ({ count, colour })).filter(({ colour }) => isFree(colour))
    const { colour } = free.reduce((least, one) => (one.count < least.count ? one : least))
    assigned.set(id, colour)
    memory.set(id, colour)
  }
  return assigned
}

/** The number of outcomes of requests. Plots by outcome show all of them. */
export const outcomesMax = 10

/** The colour of each outcome of a request, the same in all plots; rare outcomes share the grey of "other". */
export const outcomeColours: Readonly<Record<string, string>> = {
  ok: 's3',
  refused: 's5',
  upstream_error: 's2',
  upstream_cut: 's4',
  upstream_stall: 's6',
  client_abort: 's1',
}

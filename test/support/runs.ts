/*
 * The rule of how many cases a test tries. `npm test` tries a part of the cases of the nightly run, so that it is
 * quick. The part has every kind of input (scripts/nightly.ts finds its files by their import of this module).
 */

/** The number of runs of a property in the nightly run. Undefined in `npm test`. */
const nightlyRuns = process.env['TRIWIRE_RUNS'] === undefined ? undefined : Number(process.env['TRIWIRE_RUNS'])

/** `npm test` does one of this many runs, but never fewer than `fewest`. */
const share = 5
const fewest = 5

/** Whether this is the nightly run, which tries all cases. */
export const isNightly = nightlyRuns !== undefined

/**
 * Returns the number of runs of a property with quick runs.
 * @param usual a sufficient number; the nightly run does TRIWIRE_RUNS instead
 */
export function runsOf(usual: number): number {
  return nightlyRuns ?? shareOf(usual)
}

/** Returns the number of runs of a property with slow runs. @param whole the number in the nightly run */
export function runsUpTo(whole: number): number {
  return isNightly ? whole : shareOf(whole)
}

function shareOf(whole: number): number {
  return Math.min(whole, Math.max(fewest, Math.ceil(whole / share)))
}

/**
 * Returns rows of a table of combinations, in their order. The nightly run gets all of them. `npm test` gets enough
 * that each value of an axis is combined with each value of every other axis.
 * @param axesOf returns the values of a row on all axes
 */
export function chooseRows<Row>(rows: readonly Row[], axesOf: (row: Row) => readonly unknown[]): Row[] {
  return isNightly ? [...rows] : coverPairs(rows, axesOf)
}

/**
 * Returns the rows of one of several tests that share a table in turn. In the nightly run each test gets all rows.
 * @param turn the number of the test, from 0 to `turns` - 1
 */
export function takeTurn<Row>(rows: readonly Row[], turn: number, turns: number): Row[] {
  return rows.filter((_, index) => isNightly || index % turns === turn)
}

/** Chooses rows that cover all pairs of values. The next one is always the first of those with the most new pairs. */
export function coverPairs<Row>(rows: readonly Row[], axesOf: (row: Row) => readonly unknown[]): Row[] {
  const pairsOf = rows.map((row) => [...new Set(listPairs(axesOf(row).map(String)))])
  const rowsOf = new Map<string, number[]>()
  for (const [index, pairs] of pairsOf.entries())
    for (const pair of pairs) rowsOf.set(pair, (rowsOf.get(pair) ?? []).concat(index))
  const gains = pairsOf.map((pairs) => pairs.length)
  const chosen = new Set<number>()
  while (rowsOf.size > 0) {
    const best = gains.indexOf(Math.max(...gains))
    chosen.add(best)
    for (const pair of pairsOf[best]!) {
      for (const index of rowsOf.get(pair) ?? []) gains[index]!--
      rowsOf.delete(pair)
    }
  }
  return rows.filter((_, index) => chosen.has(index))
}

/** Lists all pairs of values with their axes. A single value is a pair by itself. */
function listPairs(values: readonly string[]): string[] {
  if (values.length === 1) return [...values]
  return values.flatMap((one, axis) =>
    values.slice(axis + 1).map((other, more) => JSON.stringify([axis, one, axis + 1 + more, other])),
  )
}

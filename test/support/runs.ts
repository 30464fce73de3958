/*
 * The one rule of how much a test tries. `npm test` tries a share of what the nightly run tries, so that it is quick. Every kind of
 * input is in the share, and the nightly run tries the whole (scripts/nightly.ts finds its files by their import of this module).
 */

/** The runs of each property in the nightly run; undefined in `npm test`. */
const nightlyRuns = process.env['TRIWIRE_RUNS'] === undefined ? undefined : Number(process.env['TRIWIRE_RUNS'])

/** `npm test` does one run of this many, but never fewer than `fewest`. */
const share = 5
const fewest = 5

/** Whether this is the nightly run, which tries the whole. */
export const isNightly = nightlyRuns !== undefined

/**
 * The runs of a property whose runs are cheap.
 * @param usual how many show what there is to show; the nightly run does more, by TRIWIRE_RUNS
 */
export function runsOf(usual: number): number {
  return nightlyRuns ?? shareOf(usual)
}

/** The runs of a property whose runs are dear. @param whole how many the nightly run does */
export function runsUpTo(whole: number): number {
  return isNightly ? whole : shareOf(whole)
}

function shareOf(whole: number): number {
  return Math.min(whole, Math.max(fewest, Math.ceil(whole / share)))
}

/**
 * The rows of a table of combinations. The nightly run tries all of them. `npm test` tries enough of them that each value of an
 * axis meets each value of every other axis. They stay in the order of the table.
 * @param axesOf the values by which a row differs from others
 */
export function chooseRows<Row>(rows: readonly Row[], axesOf: (row: Row) => readonly unknown[]): Row[] {
  return isNightly ? [...rows] : coverPairs(rows, axesOf)
}

/**
 * The rows of a table that several tests share: each of them takes its turn. The nightly run has all rows in each test.
 * @param turn of the test, from 0 to `turns` - 1
 */
export function takeTurn<Row>(rows: readonly Row[], turn: number, turns: number): Row[] {
  return rows.filter((_, index) => isNightly || index % turns === turn)
}

/** The same rows in every run: of those left always the first one with the most pairs that no chosen row has. */
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

/** Every two values with their axes; a single value stands for itself. */
function listPairs(values: readonly string[]): string[] {
  if (values.length === 1) return [...values]
  return values.flatMap((one, axis) =>
    values.slice(axis + 1).map((other, more) => JSON.stringify([axis, one, axis + 1 + more, other])),
  )
}

import {
  type Band,
  type PriceList,
  type PriceRow,
  type PriceSet,
  type PriceStep,
  type Prices,
  type Rates,
  ratesOf,
  type Tier,
} from './model.ts'

/*
 * Chooses one of the sets of prices of a list (ruling C11). The sets are built when the configuration is read. A
 * request only looks up prices, to set credit aside and to compute its bill.
 */

const dayMs = 86_400_000

/**
 * The facts that choose a set of prices. If a row has no prices for the tier or the geography, the base prices apply.
 */
type PriceFacts = {
  /** A moment in Unix milliseconds. */
  at: number
  tier?: string | null | undefined
  geo?: string | null | undefined
}

/**
 * Returns the rates of a request. `version` identifies their price set in the ledger. The other members of the result
 * tell why these rates apply.
 * @param inputTokens the sum of fresh input, cache reads and cache writes; it chooses the step
 * @returns `step`: the number of tokens above which the step begins; null for the base
 */
export function ratesAt(list: PriceList, facts: PriceFacts & { inputTokens: number }) {
  const set = setAt(list, facts)
  const {
    above: step = null,
    inputNanos,
    cacheReadNanos,
    cacheWriteNanos,
    cacheWrite1hNanos,
    outputNanos,
  } = ratesOf(set.prices, facts.inputTokens)
  const rates: Rates = { inputNanos, cacheReadNanos, cacheWriteNanos, cacheWrite1hNanos, outputNanos }
  const { version, row, band, tier, geo } = set
  return { rates, version, row, band, tier, geo, step }
}

/** Returns the set of prices for a moment, a tier and a geography. */
export function setAt({ rows, only }: Pick<PriceList, 'rows' | 'only'>, { at, tier, geo }: PriceFacts): PriceSet {
  if (only) return only
  const row = rowInForce(rows, at, beginOf)
  const sets = row.sets[1 + row.bands.findIndex((band) => isWithin(band, at))]!
  const [servedBy, servedIn] = [sets.has(setKey(tier)) ? tier : null, sets.has(setKey(null, geo)) ? geo : null]
  return sets.get(setKey(servedBy, servedIn))!
}

/** The key of a price set within its band, made of tier and geography. */
export function setKey(tier?: string | null, geo?: string | null): string {
  return `${tier ?? ''} ${geo ?? ''}`
}

/** Returns the base price set of the row that applies now, which is for no band, tier or geography. */
export function baseOf({ rows }: PriceList, nowMs = Date.now()): PriceSet {
  return rowInForce(rows, nowMs, beginOf).sets[0]!.get(setKey())!
}

const beginOf = ({ fromMs }: PriceRow) => fromMs

/**
 * Returns the row of prices that applies at a moment. Before all rows, it is the first.
 * @param atMs Unix milliseconds @param fromOf returns when a row begins, in Unix milliseconds
 */
export function rowInForce<Row>(rows: readonly Row[], atMs: number, fromOf: (row: Row) => number): Row {
  return rows.findLast((row) => fromOf(row) <= atMs) ?? rows[0]!
}

/** Whether a moment is within a band (hours with prices of their own), by the clock of its zone. */
export function isWithin({ offsetAt, weekdays, windows, daysOff }: Band, at: number): boolean {
  const shownMs = at + offsetAt(at)
  const today = Math.floor(shownMs / dayMs)
  // A window that began yesterday may continue.
  for (const day of [today, today - 1]) {
    // 1 January 1970 was a Thursday.
    if (!weekdays[(((day + 4) % 7) + 7) % 7] || daysOff.has(day)) continue
    const ms = shownMs - day * dayMs
    if (windows.some(({ startMs, endMs }) => ms >= startMs && ms < endMs)) return true
  }
  return false
}

/**
 * The largest value of two settings: the time for a whole answer, and the time to read its usage after the client left.
 */
export const longestTimeout = '7d'

/** The longest time of a request, in ms: a day for the body, and 7 days each for the answer and for its usage. */
export const longestRequestMs = dayMs + 2 * 7 * dayMs

/** Whether a request may write to a cache of its provider, and for how long. */
export type CacheWrites = 'none' | 'short' | 'long'

/**
 * Returns the highest prices by which a request may be billed. They cover the current row and later rows that begin
 * within `longestRequestMs`. They also cover all bands and geographies, the base price and the tiers in `served`. All
 * input gets the price of the dearest kind of input.
 * @param served the tiers that may serve the request
 */
export function holdPrices(list: PriceList, at: number, served: readonly Tier[], writes: CacheWrites): Prices {
  const rowAt = (ms: number) => list.rows.findLastIndex(({ fromMs }) => fromMs <= ms)
  const [first, last] = list.only ? [0, 0] : [Math.max(0, rowAt(at)), rowAt(at + longestRequestMs)]
  const key = list.only ? writes : `${first} ${last} ${writes} ${served.join()}`
  const known = list.holds.get(key)
  if (known) return known
  const mayServe = ({ tier }: PriceSet) => tier === null || served.includes(tier)
  const rows: readonly PriceRow[] = list.rows.slice(first, Math.max(first, last) + 1)
  const sets = rows.flatMap((row) => row.sets.flatMap((ofBand) => [...ofBand.values()].filter(mayServe)))
  const found = dearestOf(
    sets.map(({ prices }) => prices),
    writes,
  )
  list.holds.set(key, found)
  return found
}

function dearestOf(all: readonly Prices[], writes: CacheWrites): Prices {
  const above = [...new Set(all.flatMap(({ steps = [] }) => steps.map((step) => step.above)))].sort((a, b) => a - b)
  const ratesFor = (inputTokens: number): Rates => {
    const rates = all.map((prices) => ratesOf(prices, inputTokens))
    const most = (kind: keyof Rates) => rates.reduce((nanos, one) => (one[kind] > nanos ? one[kind] : nanos), 0n)
    const kinds: (keyof Rates)[] = ['inputNanos', 'cacheReadNanos']
    if (writes !== 'none') kinds.push('cacheWriteNanos')
    if (writes === 'long') kinds.push('cacheWrite1hNanos')
    const inputNanos = kinds.map(most).reduce((nanos, one) => (one > nanos ? one : nanos), 0n)
    return {
      inputNanos,
      cacheReadNanos: inputNanos,
      cacheWriteNanos: inputNanos,
      cacheWrite1hNanos: inputNanos,
      outputNanos: most('outputNanos'),
    }
  }
  const steps = above.map((tokens): PriceStep => ({ above: tokens, ...ratesFor(tokens + 1) }))
  const calls: Record<string, bigint> = {}
  for (const prices of all)
    for (const [kind, nanos] of Object.entries(prices.calls ?? {}))
      if (nanos >= (calls[kind] ?? 0n)) calls[kind] = nanos
  return {
    ...ratesFor(0),
    ...(steps.length > 0 && { steps }),
    ...(Object.keys(calls).length > 0 && { calls }),
  }
}

/** How many days ahead to search for moments at which a band changes the prices. */
const searchedDays = 40

/**
 * Returns the next moments at which the prices of a list change, each with the new set of prices. Changes at the edges
 * of a band's hours are found only for the next 40 days.
 * @param most the most changes to return
 */
export function nextChanges(list: PriceList, facts: PriceFacts, most: number): { at: number; set: PriceSet }[] {
  const { at } = facts
  const froms = list.rows.slice(1).map(({ fromMs }) => fromMs)
  const edges = list.rows.flatMap(({ bands }) => bands.flatMap((band) => edgesOf(band, at, searchedDays)))
  const moments = [...new Set([...froms, ...edges])].filter((ms) => ms > at).sort((a, b) => a - b)
  const changes: { at: number; set: PriceSet }[] = []
  let before = setAt(list, facts)
  for (const ms of moments) {
    const set = setAt(list, { ...facts, at: ms })
    if (set === before) continue
    if (changes.length < most) changes.push({ at: ms, set })
    before = set
  }
  return changes
}

/**
 * Returns the moments when windows of the band start or end, and when its zone changes the clocks. The result begins on
 * the day before `at`, and covers at least `days` days.
 */
export function edgesOf({ offsetAt, windows }: Band, at: number, days: number): number[] {
  const first = Math.floor((at + offsetAt(at)) / dayMs) - 1
  return Array.from({ length: days + 2 }, (_, i) => first + i).flatMap((day) => [
    ...clockChange(offsetAt, day * dayMs),
    ...windows.flatMap(({ startMs, endMs }) =>
      [startMs, endMs].flatMap((ms) => {
        const shownMs = day * dayMs + ms
        // When clocks change, a local time may occur twice, or not at all.
        return [...new Set([-dayMs, dayMs].map((aside) => shownMs - offsetAt(shownMs + aside)))]
      }),
    ),
  ])
}

/**
 * Finds the moment at which the clocks change within the day that begins at `startMs`. A band's window may begin or end
 * then.
 */
function clockChange(offsetAt: Band['offsetAt'], startMs: number): number[] {
  let [before, after] = [startMs, startMs + dayMs]
  if (offsetAt(before) === offsetAt(after)) return []
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (offsetAt(middle) === offsetAt(startMs)) before = middle
    else after = middle
  }
  return [after]
}

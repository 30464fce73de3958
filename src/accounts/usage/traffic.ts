import { type Calendar, quarterMs } from '../calendar.ts'
import { addEncoded, type BucketCounts, bucketOf, encodeCounts } from './histogram.ts'
import type { Grain } from './plan.ts'
import { dimensions, hourAndDayOf, pairOf } from './rollup.ts'

/*
 * Figures that are not in the ledger: requests that cost nothing, and the times of all requests. They are counted in
 * memory and written every few seconds. If the process dies, the counts since the last write are lost. They never
 * include money.
 */

/** The facts about an ended request that are counted here. */
export type TrafficRecord = {
  readonly walk?: string | undefined
  readonly status?: number | undefined
  readonly code?: string | undefined
  readonly outcome?: string | undefined
  readonly settled?: string | undefined
  readonly accountId?: string | undefined
  readonly keyId?: string | undefined
  readonly model?: string | undefined
  readonly wire?: string | undefined
  readonly modelWire?: string | undefined
  readonly upstream?: string | undefined
  /** Why the request's conversation moved to another upstream account, if it did. */
  readonly moved?: string | undefined
  readonly firstByteMs?: number | undefined
  readonly endMs?: number | undefined
}

/**
 * The counts of requests with the same values in all dimensions (`place`). @property requests the number of requests
 * without a debit @property moved the number of conversations that moved
 */
export type TrafficCell = {
  place: Readonly<Record<string, string | number>>
  requests: number
  moved: number
  first_byte: Uint8Array
  total: Uint8Array
}

/** The table for each grain. Rows of `traffic_q` are by hour. Earlier releases wrote rows by quarter hour there. */
export const trafficTableOf = { h: 'traffic_q', d: 'traffic_d', t: 'traffic_t' } as const

/** For each table, the columns that identify a row, in the order of the table's key. */
export const trafficTables = {
  traffic_q: ['quarter', ...dimensions, 'code'],
  traffic_d: ['account', 'key', 'day', 'model', 'wires', 'upstream', 'outcome', 'code'],
  traffic_t: ['day', 'model', 'wires', 'upstream', 'outcome', 'code'],
} as const satisfies Record<(typeof trafficTableOf)[Grain], readonly string[]>

/** The columns of counts, which follow the columns that identify a row. */
export const countedColumns = ['requests', 'moved', 'first_byte', 'total'] as const

export type TrafficTable = keyof typeof trafficTables

type TrafficCount = {
  words: readonly string[]
  quarter: number
  requests: number
  moved: number
  firstBytes: BucketCounts
  totals: BucketCounts
}

/**
 * The most rows of counts between two writes. Requests that would need further rows are counted together. No real
 * service uses so many keys within ten seconds.
 */
const cellsMax = 20_000

const columns = [...dimensions, 'code'] as const

/** Creates the counters of this process. @param nowMs the current time in Unix milliseconds */
export function createTraffic(nowMs: () => number) {
  let cells = new Map<string, TrafficCount>()
  return { note, take }

  /** Counts an inference request. Other requests never cost anything, so they are not counted. */
  function note(record: TrafficRecord): void {
    if (record.walk !== 'infer') return
    const { settled, outcome = 'ok', firstByteMs, endMs } = record
    const isBilled = settled === 'posted' || settled === 'spooled' || settled === 'waiting'
    const isAnswered = record.status === 200
    if (isBilled && !isAnswered && !record.moved) return
    const quarter = Math.floor(nowMs() / quarterMs)
    const { accountId = '', keyId = '', model = '', wire = '', modelWire = '', upstream = '' } = record
    const code = isBilled ? '' : (record.code ?? '')
    const key = `${keyId}\n${model}\n${outcome}\n${wire}\n${modelWire}\n${upstream}\n${code}\n${accountId}\n${quarter}`
    const cell =
      cells.get(key) ?? open(key, [accountId, keyId, model, pairOf(wire, modelWire), upstream, outcome, code], quarter)
    if (!isBilled) cell.requests++
    if (record.moved) cell.moved++
    if (!isAnswered) return
    if (firstByteMs !== undefined) count(cell.firstBytes, firstByteMs)
    if (endMs !== undefined) count(cell.totals, endMs)
  }

  function open(key: string, words: readonly string[], quarter: number): TrafficCount {
    const isFull = cells.size >= cellsMax
    const [place, meant] = isFull ? [`${quarter}`, columns.map(() => '')] : [key, words]
    const found = cells.get(place) ?? { words: meant, quarter, requests: 0, moved: 0, firstBytes: [], totals: [] }
    cells.set(place, found)
    return found
  }

  /** Returns the counts since the last call. */
  function take(): TrafficCell[] {
    const taken = cells
    cells = new Map()
    return Array.from(taken.values(), ({ words, quarter, requests, moved, firstBytes, totals }) => ({
      place: { quarter, ...Object.fromEntries(columns.map((column, at) => [column, words[at]!])) },
      requests,
      moved,
      first_byte: encodeCounts(firstBytes),
      total: encodeCounts(totals),
    }))
  }
}

function count(counts: BucketCounts, ms: number): void {
  const bucket = bucketOf(ms)
  for (let at = counts.length; at <= bucket; at++) counts.push(0)
  counts[bucket]!++
}

/** Sums the counts of quarter hours into the rows of each table. A table has rows by hour or by day. */
export function spreadTraffic(
  cells: readonly TrafficCell[],
  calendar: Pick<Calendar, 'periodOf'>,
): Record<TrafficTable, TrafficCell[]> {
  const dated = cells.map((cell) => {
    const { hour, day } = hourAndDayOf(Number(cell.place['quarter']), calendar)
    return { ...cell, place: { ...cell.place, quarter: hour, day } }
  })
  const tables = Object.entries(trafficTables).map(([name, columns]) => [name, joinCells(dated, columns)])
  return Object.fromEntries(tables) as Record<TrafficTable, TrafficCell[]>
}

/** Joins the cells that are equal in these columns. */
export function joinCells(cells: Iterable<TrafficCell>, columns: readonly string[]): TrafficCell[] {
  const joined = new Map<
    string,
    { place: Record<string, string | number>; requests: number; moved: number; times: [BucketCounts, BucketCounts] }
  >()
  for (const { place, requests, moved, first_byte, total } of cells) {
    const key = columns.map((column) => place[column]).join('\n')
    const own = Object.fromEntries(columns.map((column) => [column, place[column]!]))
    const found = joined.get(key) ?? { place: own, requests: 0, moved: 0, times: [[], []] }
    joined.set(key, found)
    found.requests += requests
    found.moved += moved
    addEncoded(found.times[0], first_byte)
    addEncoded(found.times[1], total)
  }
  return Array.from(joined.values(), ({ place, requests, moved, times }) => ({
    ...{ place, requests, moved },
    ...{ first_byte: encodeCounts(times[0]), total: encodeCounts(times[1]) },
  }))
}

/** Adds two encoded lists of counts. */
export function joinCounts(a: Uint8Array, b: Uint8Array): Uint8Array {
  const sum: BucketCounts = []
  addEncoded(sum, a)
  addEncoded(sum, b)
  return encodeCounts(sum)
}

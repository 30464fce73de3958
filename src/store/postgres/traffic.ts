import {
  joinCounts,
  spreadTraffic,
  type TrafficCell,
  type TrafficTable,
  trafficTables,
} from '../../accounts/usage/traffic.ts'
import type { Database, Transaction } from './database.ts'
import { lockState } from './usage-keep.ts'
import type { WordNumbers } from './usage-words.ts'

/** Keeps counters of what costs nothing, of all servers together. */
export function createTrafficWriting(database: Database, words: WordNumbers) {
  return { writeTraffic }

  /** Adds what was counted, in one commit. */
  async function writeTraffic(cells: readonly TrafficCell[]): Promise<void> {
    await database.transact(async (transaction) => {
      const { calendar } = await lockState(transaction, 'SHARE')
      const tables = spreadTraffic(cells, calendar)
      for (const [name, rows] of Object.entries(tables)) await addTraffic(transaction, name as TrafficTable, rows)
    })
  }

  /** Rows are made empty, locked in their order, and get what comes to them. */
  async function addTraffic({ query }: Transaction, name: TrafficTable, rows: readonly TrafficCell[]): Promise<void> {
    if (rows.length === 0) return
    const columns = trafficTables[name]
    const places = await words.placesOf({ query }, rows, columns)
    const typed = `(SELECT r.*, row_number() OVER () AS at FROM json_to_recordset($1) AS r(${columns.map((column) => `${column} integer`).join(', ')})) r`
    const list = columns.join(', ')
    const asked = [JSON.stringify(places)]
    await query(
      `INSERT INTO triwire.${name} (${list}, requests, first_byte, total) SELECT ${list}, 0, ''::bytea, ''::bytea FROM ${typed} ON CONFLICT DO NOTHING`,
      asked,
    )
    const there = await query(
      `SELECT r.at, t.requests, t.first_byte, t.total FROM ${typed} JOIN triwire.${name} t USING (${list}) ORDER BY r.at FOR UPDATE OF t`,
      asked,
    )
    const byPlace = new Map(there.map((row) => [Number(row['at']) - 1, row]))
    const joined = rows.map(({ requests, first_byte, total }, at) => {
      const row = byPlace.get(at)!
      const base64 = (column: 'first_byte' | 'total', more: Uint8Array) =>
        Buffer.from(joinCounts(row[column] as Uint8Array, more)).toString('base64')
      return {
        ...places[at],
        requests: `${(row['requests'] as bigint) + BigInt(requests)}`,
        ...{ first_byte: base64('first_byte', first_byte), total: base64('total', total) },
      }
    })
    await query(
      `UPDATE triwire.${name} t SET requests = r.requests, first_byte = decode(r.first_byte, 'base64'), total = decode(r.total, 'base64')
       FROM json_to_recordset($1) AS r(${columns.map((column) => `${column} integer`).join(', ')}, requests bigint, first_byte text, total text)
       WHERE (${columns.map((column) => `t.${column}`).join(', ')}) = (${columns.map((column) => `r.${column}`).join(', ')})`,
      [JSON.stringify(joined)],
    )
  }
}

import { createCalendar } from '../../accounts/calendar.ts'
import { spreadTraffic, type TrafficCell, type TrafficTable } from '../../accounts/usage/traffic.ts'
import { readUsageState } from '../sql/usage-keep.ts'
import { addTraffic } from '../sql/usage-write.ts'
import type { Database } from './database.ts'
import { dialect, run } from './run.ts'
import type { WordNumbers } from './usage-words.ts'

/** Keeps counters of what costs nothing, of all servers together. */
export function createTrafficWriting(database: Database, words: WordNumbers) {
  return { writeTraffic }

  /** Adds what was counted, in one commit. */
  async function writeTraffic(cells: readonly TrafficCell[]): Promise<void> {
    await database.transact(async ({ query }) => {
      const connections = { query, lane: words.lane }
      const tables = spreadTraffic(cells, createCalendar(await run(connections, readUsageState(dialect, 'SHARE'))))
      for (const [name, rows] of Object.entries(tables))
        await run(connections, addTraffic(dialect, words, name as TrafficTable, rows))
    })
  }
}

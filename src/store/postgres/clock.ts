import type { Transaction } from './database.ts'

/** Unix milliseconds by the clock of the database: those of servers may differ. */
export async function readNowMs({ query }: Transaction): Promise<number> {
  const [clock] = await query('SELECT triwire.now_ms() AS now')
  return Number(clock!['now'])
}

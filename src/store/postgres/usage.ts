import { spellZone, type Zone } from '../../accounts/calendar.ts'
import { countsBreakHex } from '../../accounts/usage/histogram.ts'
import { type FoundRow, planUsage, type RowReading, type UsageRead } from '../../accounts/usage/plan.ts'
import type { UsageAnswer, UsageQuestion, UsageState } from '../../accounts/usage/question.ts'
import type { SummedEntries } from '../../accounts/usage/rollup.ts'
import { findRows, selectRows, selectSpent, selectSummed, timeColumn, wordsOfReading } from '../sql/usage.ts'
import type { Database, Transaction } from './database.ts'
import { dialect } from './slices.ts'
import { isText } from './texts.ts'
import { createWords } from './usage-words.ts'

/** Entries above the marks of their accounts: one look into the index for each, whatever the planner knows of the table. */
const behind = `(SELECT b.account_id, coalesce(m.seq, 0) AS mark, b.seq FROM triwire.balances b
    LEFT JOIN triwire.usage_marks m ON m.account_id = b.account_id WHERE b.seq > coalesce(m.seq, 0)) p
  CROSS JOIN LATERAL (SELECT * FROM triwire.entries e WHERE e.account_id = p.account_id AND e.seq > p.mark AND e.seq <= p.seq
    ORDER BY e.seq LIMIT p.seq - p.mark) e`

/** A row for each bucket and group leaves the database, and not one for each that is in it. */
const joined = (column: string) => `string_agg(${column}, '\\x${countsBreakHex}'::bytea)`

/** Figures for reports, read as exact as the ledger. */
export function createUsageReading(database: Database) {
  const words = createWords(database)
  return { readUsage, readUsageState: () => readUsageState(database), readSpent, listModels }

  /** In one snapshot. */
  async function readUsage(question: UsageQuestion): Promise<UsageAnswer> {
    return database.transact(async (transaction) => {
      await transaction.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY')
      const plan = planUsage(question)
      let step = plan.next()
      while (!step.done) step = plan.next(await read(transaction, step.value))
      return step.value
    })
  }

  async function read(transaction: Transaction, reading: UsageRead): Promise<unknown> {
    if (reading.kind === 'state') return readUsageState(transaction)
    return reading.kind === 'tail' ? readTail(transaction, reading) : readRows(transaction, reading)
  }

  async function readTail(
    { query }: Transaction,
    { from, to }: { from: number; to: number },
  ): Promise<SummedEntries[]> {
    const text = selectSummed(behind, 'e.posted_ms >= $1::bigint * 900000 AND e.posted_ms < $2::bigint * 900000')
    return query(text, [from, to])
  }

  async function readRows({ query }: Transaction, reading: RowReading): Promise<FoundRow[]> {
    const { bounds, by, grain, table } = reading
    const bucketing = {
      from: `triwire.${table}_${grain} u`,
      bucket: `width_bucket(u.${timeColumn(grain)}, $1::int[]) - 1`,
      values: [`{${bounds.join()}}`],
      isRanged: false,
      isInOrder: false,
    }
    const ids = await words.findIds({ query }, wordsOfReading(reading))
    const { text, values } = selectRows(dialect, reading, ids, bucketing, joined)
    const rows = await query(text, values)
    const known = await words.readWords(
      { query },
      rows.flatMap((row) => by.map((_, at) => row[`d${at}`] as number)),
    )
    return findRows(reading, rows, (_, id) => known.get(id)!)
  }

  /** What a key has cost in all, in nano-credits, less what was given back. */
  async function readSpent(accountId: string, keyId: string): Promise<bigint> {
    if (!isText(accountId) || !isText(keyId)) return 0n
    const { text, values } = selectSpent(dialect, accountId, keyId)
    const [row] = await database.query(text, values)
    return BigInt(row!['spent'] as bigint | string)
  }

  /** All that the ledger has entries of. */
  async function listModels(): Promise<string[]> {
    const rows = await database.query(
      `SELECT word AS model FROM triwire.usage_words WHERE kind = 'model'
       UNION SELECT e.model FROM ${behind} WHERE e.model IS NOT NULL ORDER BY 1`,
    )
    return rows.map(({ model }) => model as string)
  }
}

export async function readUsageState({ query }: Pick<Database, 'query'>): Promise<UsageState> {
  const [row] = await query('SELECT time_zone, week_starts, kept_from FROM triwire.usage_state')
  return {
    timeZone: spellZone((row?.['time_zone'] ?? 'UTC') as string),
    weekStarts: (row?.['week_starts'] ?? 'monday') as Zone['weekStarts'],
    keptFrom: Number(row?.['kept_from'] ?? 0),
  }
}

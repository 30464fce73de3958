import { type FoundRow, planUsage, type RowReading, type UsageRead } from '../../accounts/usage/plan.ts'
import type { UsageAnswer, UsageQuestion } from '../../accounts/usage/question.ts'
import { type Dialect, statement } from './dialect.ts'
import { inSnapshot, rowOf, rowsOf, type StoreStep } from './step.ts'
import { findRows, selectRows, selectSpent, selectTail, type UsageDialect, wordsOfReading } from './usage.ts'
import { readUsageState } from './usage-keep.ts'
import { createWords } from './words.ts'

/** Figures for reports, as exact as the ledger. */
export function createUsageReading(dialect: Dialect, usage: UsageDialect) {
  const { schema } = dialect
  const words = createWords(dialect)
  return {
    readUsage: (question: UsageQuestion) => inSnapshot(readUsage(question)),
    readUsageState: () => readUsageState(dialect),
    readSpent,
    listModels,
  }

  function* readUsage(question: UsageQuestion): StoreStep<UsageAnswer> {
    const plan = planUsage(question)
    let turn = plan.next()
    while (!turn.done) turn = plan.next(yield* read(turn.value))
    return turn.value
  }

  function* read(reading: UsageRead): StoreStep<unknown> {
    if (reading.kind === 'state') return yield* readUsageState(dialect)
    return yield* reading.kind === 'tail' ? rowsOf(selectTail(dialect, usage.tail, reading)) : readRows(reading)
  }

  function* readRows(reading: RowReading): StoreStep<FoundRow[]> {
    const ids = yield* words.findIds(wordsOfReading(reading))
    const rows = yield* rowsOf(selectRows(dialect, reading, ids, usage.bucketing(reading), usage.joined))
    const known = yield* words.readWords(rows.flatMap((row) => reading.by.map((_, at) => Number(row[`d${at}`]))))
    return findRows(reading, rows, (_, id) => known.get(id)!)
  }

  /** The whole cost of a key, in nano-credits, less what was given back. */
  function* readSpent(accountId: string, keyId: string): StoreStep<bigint> {
    const row = yield* rowOf(selectSpent(dialect, accountId, keyId))
    return BigInt((row?.['spent'] as bigint | string | undefined) ?? 0)
  }

  /** All that the ledger has entries of. */
  function* listModels(): StoreStep<string[]> {
    const { from, where } = usage.tail
    const select = statement(
      dialect,
      () => `SELECT word AS model FROM ${schema}.usage_words WHERE kind = 'model'
        UNION SELECT e.model FROM ${from} WHERE ${where} AND e.model IS NOT NULL ORDER BY 1`,
    )
    return (yield* rowsOf(select)).map(({ model }) => model as string)
  }
}

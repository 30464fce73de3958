import type { Dialect } from '../sql/dialect.ts'
import type { StoreStep } from '../sql/step.ts'

/** A store whose months are archived, of either engine. */
export type ArchiveStore = {
  /** The place as it may be shown (ruling X13). */
  shown: string
  dialect: Dialect
  /** The path of a month's file, unless another one is named. */
  fileOf(month: string): string
  /** Runs a step, whose transactions are durable when this resolves. */
  run<T>(step: StoreStep<T>): Promise<T>
  /** Lets only a triwire use the store that knows archives, and makes the guards of a ledger that has them. It may be repeated. */
  begin(): Promise<void>
  /** A statement that keeps other operators away until a transaction ends, if they write at the same time. */
  lock: string | undefined
  /** The id of an entry in the index, by the columns of its row. */
  idOf(row: Readonly<Record<string, unknown>>): string
  /** Gives the space of removed entries back, as far as that hinders nobody. */
  tidy(): Promise<void>
  close(): Promise<void>
}

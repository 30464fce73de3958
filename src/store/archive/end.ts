import type { Dialect } from '../sql/dialect.ts'
import type { StoreStep } from '../sql/step.ts'

/** A store of either engine, with what the archive commands need from it. */
export type ArchiveStore = {
  /** The name of the store as it may be shown to people (ruling X13). */
  shown: string
  dialect: Dialect
  /** Returns the default path for the archive file of a month. */
  fileOf(month: string): string
  /** Runs a step: a query of the store, or a change. Its transactions are durable when the promise resolves. */
  run<T>(step: StoreStep<T>): Promise<T>
  /** Adds the triggers that guard archived entries, and locks out older versions of triwire. Repeating does no harm. */
  begin(): Promise<void>
  /** A statement that makes other operators' writes wait until the transaction ends. Undefined for SQLite. */
  lock: string | undefined
  /** Makes the id of an entry in the index of archived entries, from the columns of its row. */
  idOf(row: Readonly<Record<string, unknown>>): string
  /** Frees the space of removed entries, if that blocks no other work. */
  tidy(): Promise<void>
  close(): Promise<void>
}

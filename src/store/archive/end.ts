import type { Dialect } from '../sql/dialect.ts'
import type { StoreStep } from '../sql/step.ts'

/** A store of either engine, as the commands see it that archive its months. */
export type ArchiveStore = {
  /** The name of the store as it may be shown to people (ruling X13). */
  shown: string
  dialect: Dialect
  /** The default path of a month's file. */
  fileOf(month: string): string
  /** Runs a step. Its transactions are durable when the promise resolves. */
  run<T>(step: StoreStep<T>): Promise<T>
  /** Adds the guards of archives, and refuses versions of triwire that do not know archives. Repeatable. */
  begin(): Promise<void>
  /**
   * A statement that makes other operators' writes wait until the transaction ends. Undefined if the engine needs none.
   */
  lock: string | undefined
  /** The id of an entry in the index, from the columns of its row. */
  idOf(row: Readonly<Record<string, unknown>>): string
  /** Frees the space of removed entries, if that blocks no other work. */
  tidy(): Promise<void>
  close(): Promise<void>
}

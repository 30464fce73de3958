/** What differs in the texts of statements that both of our databases understand. */
export type Dialect = {
  /** Where the tables are. */
  schema: string
  /** How the n-th value is named, from 1 on. */
  parameter(n: number): string
  /** Columns of an entry, behind its time, that make the order of entries one. */
  order: readonly string[]
}

export type Value = string | number | bigint

export type Statement = { text: string; values: readonly Value[] }

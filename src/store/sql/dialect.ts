/** What differs in the texts of statements that both of our databases understand. */
export type Dialect = {
  /** Where the tables are. */
  schema: string
  /** How the n-th value is named, from 1 on. */
  parameter(n: number): string
  /** Columns of an entry, behind its time, that make the order of entries one. */
  order: readonly string[]
}

export type SqlValue = string | number | bigint

export type Statement = { text: string; values: readonly SqlValue[] }

/** Puts a value in, and says how it is named. */
export type Put = (value: SqlValue | null) => string

export function statement({ parameter }: Dialect, write: (put: Put) => string): Statement {
  const values: (SqlValue | null)[] = []
  const text = write((value) => parameter(values.push(value)))
  return { text, values: values as SqlValue[] }
}

export function insert(dialect: Dialect, table: string, row: Readonly<Record<string, SqlValue | null>>): Statement {
  return statement(dialect, (put) => {
    const places = Object.values(row).map(put).join(', ')
    return `INSERT INTO ${dialect.schema}.${table} (${Object.keys(row).join(', ')}) VALUES (${places})`
  })
}

export function update(
  dialect: Dialect,
  table: string,
  row: Readonly<Record<string, SqlValue | null>>,
  where: Readonly<Record<string, SqlValue>>,
): Statement {
  return statement(dialect, (put) => {
    const sets = Object.entries(row).map(([column, value]) => `${column} = ${put(value)}`)
    const which = Object.entries(where).map(([column, value]) => `${column} = ${put(value)}`)
    return `UPDATE ${dialect.schema}.${table} SET ${sets.join(', ')} WHERE ${which.join(' AND ')}`
  })
}

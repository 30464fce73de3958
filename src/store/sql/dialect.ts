/** The parts of statements that differ between our databases. */
export type Dialect = {
  /** The schema of the tables. */
  schema: string
  /**
   * Whether several servers may use the store. If so, rows are locked, and the store keeps the holds (reserved credit).
   */
  isShared: boolean
  /** The placeholder of the n-th value, counted from 1. */
  parameter(n: number): string
  /**
   * A SELECT of the accounts with their balances, to which a WHERE can be added. Its table of accounts is `a`.
   * @param accounts the table, or a SELECT of the wanted accounts in parentheses
   */
  accounts(accounts?: string): string
  /** A table with the last entry of each account: `account_id`, `balance`, `seq`. */
  ends: string
  /** The table of credits by their references. */
  credits: string
  /**
   * SQL to put after FROM to find a credit `e` by its reference. It ends with the column of the reference, so that a
   * comparison can follow.
   */
  creditEntry: string
  /** Like `creditEntry`, but for archived credits. It finds the row `a` in the index of archived entries. */
  archivedCredit: string
  /** The condition that finds the debit `e` of a request. */
  isOfRequest(put: Put, requestId: string): string
  /** The id of a request's debit in the index of archived entries. */
  archivedId(requestId: string): string
  /** SQL: the time of the store, in Unix milliseconds. */
  now(put: Put): string
  /** The most rows in one INSERT. */
  rowsMax: number
  /**
   * Statements that take the lock of heads (digests of all entries) until the transaction ends. Posts take `shared`, so
   * no head is made meanwhile. A transaction that makes a head takes `alone`, so nothing is posted meanwhile. Undefined
   * in SQLite.
   */
  headLock?: { shared: string; alone: string }
  /** A SELECT of the servers that use the store now. Undefined in SQLite. */
  livingReplicas?: string
}

/** Whether both databases can store the string. PostgreSQL refuses strings with NUL. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && !value.includes('\0')
}

export type SqlValue = string | number | bigint | Uint8Array

/**
 * A statement with its values.
 * @property isApart whether to commit the statement outside the open transaction, if there is a connection for that
 */
export type Statement = { text: string; values: readonly SqlValue[]; isApart?: boolean }

/** Adds a value to a statement. @returns its placeholder */
export type Put = (value: SqlValue | null) => string

export function isOneOf(put: Put, column: string, ids: readonly string[]): string {
  return ids.length === 0 ? 'FALSE' : `${column} IN (${ids.map((id) => put(id)).join(', ')})`
}

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

/** Inserts rows, in several statements if there are many. @param rest the text after the values of each statement */
export function* insertAll(
  dialect: Dialect,
  table: string,
  columns: readonly string[],
  rows: readonly (readonly SqlValue[])[],
  rest = '',
): Iterable<Statement> {
  const { schema, rowsMax } = dialect
  const write = (some: typeof rows) =>
    statement(dialect, (put) => {
      const values = some.map((row) => `(${row.map(put).join(', ')})`)
      return `INSERT INTO ${schema}.${table} AS t (${columns.join(', ')}) VALUES ${values.join(', ')} ${rest}`
    })
  // The text is long, and the same for each full statement, so it is made once.
  const { text } = write(rows.slice(0, rowsMax))
  for (let at = 0; at < rows.length; at += rowsMax) {
    const some = rows.slice(at, at + rowsMax)
    yield some.length === rowsMax ? { text, values: ([] as SqlValue[]).concat(...some) } : write(some)
  }
}

import type { Row, Transaction } from './database.ts'

/** Whether the database has such a text: none of its texts has NUL in it. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && !value.includes('\0')
}

/** Rows that fit values which somebody may have typed: no row fits what no text can be. */
export async function ask(
  query: Transaction['query'],
  text: string,
  values: readonly (string | number | bigint)[],
): Promise<Row[]> {
  if (values.some((value) => typeof value === 'string' && !isText(value))) return []
  return query(text, values)
}

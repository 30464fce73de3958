/**
 * The beginning of a text that a spreadsheet may take for a formula, full-width characters included. Blanks or invisible
 * characters may precede it, because many programs remove them first. Characters that separate cells count as well.
 */
const formula = /^(?:[\t\r\n]|[\p{Z}\p{C}]*[=+\-@＝＋－＠])/u

/**
 * Formats one line of comma-separated values. A spreadsheet runs formulas when it opens a file, so a text that may be one gets
 * an apostrophe before it. Numbers are our own and stay as they are.
 */
export function formatCsvRow(cells: readonly { value: string | number | null; isNumber: boolean }[]): string {
  const texts = cells.map(({ value, isNumber }) => {
    const text = String(value ?? '')
    const safe = !isNumber && formula.test(text) ? `'${text}` : text
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
  })
  return `${texts.join(',')}\r\n`
}

/** The media type of rows of JSON, one on each line. */
export const jsonLines = 'application/jsonl'

/** Writes a row of JSON on each line. */
export async function* formatJsonLines(rows: AsyncIterable<object>): AsyncIterable<string> {
  for await (const row of rows) yield `${JSON.stringify(row)}\n`
}

/**
 * Writes a table as comma-separated values, with its head.
 * @param amounts the columns whose texts are decimals, and so are numbers there
 */
export async function* formatCsvTable<Row extends Readonly<Record<string, string | number | null | undefined>>>(
  columns: readonly (keyof Row & string)[],
  amounts: readonly (keyof Row & string)[],
  rows: AsyncIterable<Row> | Iterable<Row>,
): AsyncIterable<string> {
  yield formatCsvRow(columns.map((value) => ({ value, isNumber: false })))
  for await (const row of rows)
    yield formatCsvRow(
      columns.map((name) => ({
        value: row[name] ?? null,
        isNumber: typeof row[name] === 'number' || amounts.includes(name),
      })),
    )
}

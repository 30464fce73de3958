/**
 * Matches a text that a spreadsheet may run as a formula. Blanks or invisible characters can precede the formula's
 * sign, because many programs remove them. Full-width signs count too, and so do characters that separate cells.
 */
const formula = /^(?:[\t\r\n]|[\p{Z}\p{C}]*[=+\-@＝＋－＠])/u

/**
 * Formats one line of comma-separated values. A spreadsheet runs formulas when it opens a file, so a text that may be a
 * formula gets a leading apostrophe. Numbers cannot be formulas and are not changed.
 */
export function formatCsvRow(cells: readonly { value: string | number | null; isNumber: boolean }[]): string {
  const texts = cells.map(({ value, isNumber }) => {
    const text = String(value ?? '')
    const safe = !isNumber && formula.test(text) ? `'${text}` : text
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
  })
  return `${texts.join(',')}\r\n`
}

/** The media type of JSON lines. */
export const jsonLines = 'application/jsonl'

/** Formats each row as a line of JSON. */
export async function* formatJsonLines(rows: AsyncIterable<object>): AsyncIterable<string> {
  for await (const row of rows) yield `${JSON.stringify(row)}\n`
}

/**
 * Formats a table as comma-separated values, with a header line.
 * @param amounts the columns whose texts are decimals; they are written as numbers
 */
export async function* formatCsvTable<Row extends Readonly<Record<string, string | number | null | undefined>>>(
  columns: readonly (keyof Row & string)[],
  amounts: readonly (keyof Row & string)[],
  rows: AsyncIterable<Row> | Iterable<Row>,
): AsyncIterable<string> {
  // The first row is read before anything is sent, so that an error of the reading can still be reported.
  let head = formatCsvRow(columns.map((value) => ({ value, isNumber: false })))
  for await (const row of rows) {
    const cells = columns.map((name) => ({
      value: row[name] ?? null,
      isNumber: typeof row[name] === 'number' || amounts.includes(name),
    }))
    yield head + formatCsvRow(cells)
    head = ''
  }
  if (head !== '') yield head
}

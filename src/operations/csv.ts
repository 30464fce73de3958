/**
 * Beginnings of a text that a spreadsheet may take for a formula, also in their full width. Blanks or invisible characters may
 * stand before them, since many programs remove those first. Characters that separate cells count as well.
 */
const formula = /^(?:[\t\r\n]|[\p{Z}\p{C}]*[=+\-@＝＋－＠])/u

/**
 * One line of comma-separated values. A spreadsheet runs formulas when a file is opened, so text that may be one gets an
 * apostrophe before it. Numbers are ours, and left alone.
 */
export function formatCsvRow(cells: readonly { value: string | number | null; isNumber: boolean }[]): string {
  const texts = cells.map(({ value, isNumber }) => {
    const text = String(value ?? '')
    const safe = !isNumber && formula.test(text) ? `'${text}` : text
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
  })
  return `${texts.join(',')}\r\n`
}

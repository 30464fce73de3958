/**
 * What a spreadsheet may take for a formula: the characters that one begins with, also in their full width and behind
 * blanks or what nobody sees, which many programs take away first; and what tells one cell from the next.
 */
const formula = /^(?:[\t\r\n]|[\p{Z}\p{C}]*[=+\-@＝＋－＠])/u

/**
 * One line of comma-separated values. A spreadsheet runs a formula for whoever opens the file: text that may be one gets an
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

import type { Command } from 'commander'
import type { GlobalOptions } from './store.ts'

/** Data for programs with `--json`, else for people. */
export function print(command: Command, data: unknown, text: () => string): void {
  const { json } = command.optsWithGlobals<GlobalOptions>()
  console.log(json ? JSON.stringify(data) : text())
}

/** Columns under their names, as wide as they must be. */
export function formatTable(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = columns.map((name, at) => Math.max(name.length, ...rows.map((row) => row[at]!.length)))
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, at) => cell.padEnd(widths[at]!))
      .join('  ')
      .trimEnd()
  return [columns, ...rows].map(line).join('\n')
}

/** Name and value, one to a line. */
export function formatFields(fields: Record<string, unknown>): string {
  const width = Math.max(...Object.keys(fields).map((name) => name.length))
  return Object.entries(fields)
    .map(([name, value]) => `${name.padEnd(width)}  ${typeof value === 'object' ? JSON.stringify(value) : value}`)
    .join('\n')
}

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

/** A time of the store for people and programs: ISO 8601 in UTC, null for never. */
export function formatTime(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString()
}

import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import { withoutKeys } from '../accounts/keys.ts'
import type { ConfigProblem } from '../config/problem.ts'
import type { GlobalOptions } from './options.ts'

export { formatTime } from '../accounts/calendar.ts'

/** A text to add to the error if the last output cannot be written. */
let ifLost = ''

/**
 * Prints data: JSON for programs with `--json`, or else a text for people.
 * @param unwritten advice in the error if the data cannot be written; for data that is shown only once
 */
export function print(command: Command, data: unknown, text: () => string, unwritten = ''): void {
  ifLost = unwritten
  console.log(isJson(command) ? JSON.stringify(data) : text())
}

/** Prints pieces of text one after the other, and waits whenever stdout is full. */
export async function printPieces(pieces: AsyncIterable<string> | Iterable<string>): Promise<void> {
  await pipeline(Readable.from(pieces), process.stdout, { end: false })
}

export function isJson(command: Command): boolean {
  return command.optsWithGlobals<GlobalOptions>().json === true
}

/** Returns the error message for a failed write to stdout. */
export function explainLoss({ code, message }: NodeJS.ErrnoException): string {
  const why = code === 'ENOSPC' ? 'the disk is full' : message
  return `what was asked for cannot be written (${why}); what the command has done stays done. ${ifLost}`.trim()
}

/** Prints an additional note on stderr, as JSON with `--json`. */
export function note(command: Command, text: string): void {
  console.error(isJson(command) ? JSON.stringify({ note: text }) : `note: ${text}`)
}

/** Removes secrets that a person may have typed: keys of triwire and providers (ruling U5), passwords in URLs (X13). */
export function withoutSecrets(text: string): string {
  return withoutKeys(text)
    .replace(/\b(sk-(?!tri-)|gsk_|xai-|AIza|hf_)[A-Za-z0-9_-]{12,}/g, '$1…')
    .replace(/\b(postgres(?:ql)?:\/{1,2}[^\s:@/]*):\S*@/gi, '$1:…@')
    .replace(/\b([a-z][a-z0-9+.-]{1,20}:\/{1,2}[^\s:@/]*):[^\s@/]*@/gi, '$1:…@')
}

export function withoutSecretsIn(problem: ConfigProblem): ConfigProblem {
  return { ...problem, message: withoutSecrets(problem.message) }
}

/** Prints an error on stderr, as text or as a line of JSON, without secrets. */
export function printError(error: CommandFailure, isJson: boolean): void {
  const { code } = error
  const message = withoutSecrets(error.message)
  const problems = error.problems?.map(withoutSecretsIn)
  console.error(
    isJson ? JSON.stringify({ ok: false, error: { code, message, ...(problems && { problems }) } }) : message,
  )
}

type CommandFailure = {
  /** `usage`: the options or arguments are wrong. `failed`: any other failure. */
  code: 'failed' | 'usage'
  message: string
  problems?: readonly ConfigProblem[]
}

/** Formats rows as a table with a heading. Columns are aligned. */
export function formatTable(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = columns.map((name, at) => rows.reduce((most, row) => Math.max(most, row[at]!.length), name.length))
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, at) => cell.padEnd(widths[at]!))
      .join('  ')
      .trimEnd()
  return [columns, ...rows].map(line).join('\n')
}

/** Formats objects as a table of the named fields. A dash stands for a missing value. */
export function formatRows(columns: readonly string[], rows: readonly object[]): string {
  const cells = rows.map((row) => columns.map((name) => `${(row as Record<string, unknown>)[name] ?? '-'}`))
  return formatTable(columns, cells)
}

/** Formats fields as lines with a name and a value. A dash stands for a missing value. */
export function formatFields(fields: Record<string, unknown>): string {
  const width = Math.max(...Object.keys(fields).map((name) => name.length))
  return Object.entries(fields)
    .map(([name, value]) => `${name.padEnd(width)}  ${formatValue(value)}`)
    .join('\n')
}

/** Formats a value as `--labels` and `--models` take it, such as `team=core,project=apollo`. */
function formatValue(value: unknown): string {
  if (typeof value !== 'object' || value === null) return `${value ?? '-'}`
  const inner = (one: unknown) => (typeof one === 'object' && one !== null ? `(${formatValue(one)})` : formatValue(one))
  const parts = Array.isArray(value)
    ? value.map(inner)
    : Object.entries(value).map(([name, one]) => `${name}=${inner(one)}`)
  return parts.join(',') || '-'
}

/** Shows progress in one line if stderr is a terminal. */
export function showProgress(words: string): void {
  if (!isWatched()) return
  // Some terminals report a width of 0.
  const width = process.stderr.columns || 80
  process.stderr.write(`\r\u001b[2K${words.slice(0, width - 1)}`)
}

export function clearProgress(): void {
  if (isWatched()) process.stderr.write('\r\u001b[2K')
}

function isWatched(): boolean {
  return process.stderr.isTTY && !process.argv.includes('--json')
}

/**
 * Reads a file as text, without a byte order mark, which programs of Windows write.
 * @param cure see `unreadable` @throws Error with a message for people
 */
export function readText(file: string, cure: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/^\ufeff/, '')
  } catch (error) {
    throw unreadable(file, error, cure)
  }
}

/**
 * Returns the error for a file that could not be read.
 * @param cure what the person can do, such as `name the file of the export`
 * @returns `error` itself if the file system did not cause it
 */
export function unreadable(file: string, error: unknown, cure: string): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException
  return syscall === undefined ? error : new Error(`cannot read ${file} (${code}): ${cure}`)
}

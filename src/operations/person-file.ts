import type { z } from 'zod'
import type { PersonLine } from '../accounts/person-rules.ts'
import { budget, rate } from './fields.ts'

/** The columns of a CSV list of people, each with the field of a person that it sets. */
const columns = {
  name: 'name',
  external_id: 'externalId',
  email: 'email',
  account: 'account',
  budget: 'budget',
  rpm: 'requestsPerMinute',
} as const satisfies Record<string, keyof PersonLine>

type ColumnName = keyof typeof columns

/**
 * The columns that set a budget or a rate. An empty cell leaves the bound unchanged, and the word `none` removes it.
 */
const bounds = { budget, rpm: rate } as const

/** The most people in a list. The whole list is one transaction, which blocks other changes of the books. */
const linesMax = 10_000

const mistakesMax = 5

/** Reads a list of people as CSV (RFC 4180). Each mistake is added to `context` with its line. */
export function readPersonLines(text: string, context: z.RefinementCtx): PersonLine[] {
  const mistakes: string[] = []
  const [head, ...rows] = cutRows(text.replace(/^\ufeff/, ''), mistakes)
  const names = (head?.cells ?? []).map((cell) => cell.trim().toLowerCase())
  for (const [at, name] of names.entries()) {
    if (!Object.hasOwn(columns, name)) mistakes.push(`line ${head!.line}: no column is called ${JSON.stringify(name)}`)
    else if (names.indexOf(name) < at) mistakes.push(`line ${head!.line}: the column ${name} is there twice`)
  }
  if (head === undefined) mistakes.push('the file is empty')
  if (mistakes.length > 0)
    mistakes.push(`the first line names columns, with commas between them: any of ${Object.keys(columns).join(', ')}`)
  else if (rows.length > linesMax)
    mistakes.push(`a list has ${linesMax} people at most: bring them in by several files`)
  else
    for (const { cells, line } of rows)
      if (cells.length !== names.length)
        mistakes.push(`line ${line}: has ${cells.length} cells, and the first line names ${names.length} columns`)
  const lines = mistakes.length > 0 ? [] : rows.map((row) => personOf(names as ColumnName[], row, mistakes))
  if (mistakes.length === 0) return lines
  const more = mistakes.length - mistakesMax
  const told = mistakes.slice(0, mistakesMax).join('; ')
  context.addIssue({ code: 'custom', message: more > 0 ? `${told}; and ${more} more` : told })
  return []
}

/** Reads a person from a row. Empty cells are left out. */
function personOf(names: readonly ColumnName[], { cells, line }: CsvLine, mistakes: string[]): PersonLine {
  const person: Record<string, unknown> = {}
  for (const [at, name] of names.entries()) {
    const cell = cells[at]!.trim()
    if (cell === '') continue
    const read = name === 'budget' || name === 'rpm' ? bounds[name].safeParse(cell) : { data: cell, error: undefined }
    if (read.error) mistakes.push(`line ${line}: ${name} ${read.error.issues[0]!.message}`)
    else person[columns[name]] = read.data
  }
  return { ...person, line }
}

type CsvLine = { cells: string[]; line: number }

/**
 * Splits comma-separated values (RFC 4180) into rows, and adds mistakes to the list.
 * @returns the rows that are not empty, each with the number of its first line, from 1 on
 */
export function cutRows(text: string, mistakes: string[]): CsvLine[] {
  const rows: CsvLine[] = []
  const cell = /(?:"([^"]*(?:""[^"]*)*)"|([^",\r\n]*))(,|\r?\n|\r|$)/y
  let row: CsvLine = { cells: [], line: 1 }
  let line = 1
  while (cell.lastIndex < text.length || row.cells.length > 0) {
    const match = cell.exec(text)
    if (!match) {
      mistakes.push(`line ${line}: a quote stands where none can, or is not closed`)
      return rows
    }
    const [all, quoted, bare, end] = match
    row.cells.push(quoted?.replaceAll('""', '"') ?? bare!)
    line += all.split(/\r\n|\r|\n/).length - 1
    if (end === ',') continue
    if (row.cells.some((one) => one.trim() !== '')) rows.push(row)
    row = { cells: [], line }
  }
  return rows
}

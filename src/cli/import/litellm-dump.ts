import { asObject } from '../../bytes/json.ts'
import { cutRows } from '../../operations/person-file.ts'

export type DumpRow = Readonly<Record<string, unknown>>

/** Keys and teams of LiteLLM, as its answers or the rows of its tables have them. */
export type LitellmDump = { keys: readonly DumpRow[]; teams: readonly DumpRow[] }

/**
 * Reads answers of LiteLLM's `/key/list` and `/team/list`, or its tables `LiteLLM_VerificationToken` and `LiteLLM_TeamTable` as CSV.
 * A text may hold several answers, one after the other, as pages come. A row that comes twice counts once.
 * The fields are those of litellm 1.110.2 (schema.prisma, November 2026).
 * @param texts the contents of the files
 * @throws Error in words for the person
 */
export function readLitellmDump(texts: readonly string[]): LitellmDump {
  const keys = new Map<unknown, DumpRow>()
  const teams = new Map<unknown, DumpRow>()
  const take = (value: unknown): void => {
    if (Array.isArray(value)) {
      for (const one of value) take(one)
      return
    }
    const row = asObject(value)
    if (!row) return
    if (Array.isArray(row['keys']) && row['keys'].some((one) => typeof one === 'string'))
      throw new Error('it lists digests alone: ask /key/list?return_full_object=true&size=100 for each page')
    if (typeof row['token'] === 'string') keys.set(row['token'], row)
    else if (typeof row['team_id'] === 'string') teams.set(row['team_id'], row)
    for (const [name, inner] of Object.entries(row))
      if (Array.isArray(inner) || ['key_list', 'team_list', '/key/list', '/team/list'].includes(name)) take(inner)
  }
  for (const text of texts) for (const value of valuesOf(text)) take(value)
  if (keys.size === 0)
    throw new Error('it has no key: name the answers of /key/list and /team/list, or both tables as CSV')
  return { keys: [...keys.values()], teams: [...teams.values()] }
}

/** Whether a value is true, in the words of PostgreSQL, of JSON, of a number, and of tools that write CSV. */
export function isTrue(value: unknown): boolean {
  return /^(t|true|1|y|yes)$/i.test(String(value).trim())
}

function valuesOf(text: string): unknown[] {
  const bare = text.replace(/^\ufeff/, '').trim()
  if (!/^[[{]/.test(bare)) return rowsOfCsv(bare)
  try {
    return [JSON.parse(bare)]
  } catch {
    // Pages that were appended to one file: each begins where a line begins.
    const parts = bare.split(/\n(?=[[{])/)
    try {
      return parts.map((part) => JSON.parse(part))
    } catch {
      throw new Error('it is neither JSON nor CSV')
    }
  }
}

function rowsOfCsv(text: string): DumpRow[] {
  const mistakes: string[] = []
  const [head, ...rows] = cutRows(text, mistakes)
  const names = head?.cells.map((cell) => cell.trim()) ?? []
  const short = rows.find(({ cells }) => cells.length !== names.length)
  if (short)
    mistakes.push(
      `line ${short.line}: has ${short.cells.length} cells, and the first line names ${names.length} columns`,
    )
  if (!names.includes('token') && !names.includes('team_id'))
    mistakes.push('the first line names neither `token` nor `team_id`')
  if (mistakes.length > 0) throw new Error(mistakes[0])
  return rows.map(({ cells }) =>
    Object.fromEntries(
      names.map((name, at) => [name, readCell(cells[at]!)]).filter(([, value]) => value !== undefined),
    ),
  )
}

/** A cell as JSON has it. PostgreSQL writes arrays as `{a,"b c"}`, and nothing as an empty cell. */
function readCell(cell: string): unknown {
  if (cell === '' || cell === '\\N' || cell === 'NULL') return undefined
  if (/^[[{]/.test(cell))
    try {
      return JSON.parse(cell)
    } catch {
      if (cell.startsWith('[')) return cell
      const words = cell.slice(1, -1).match(/"(?:[^"\\]|\\.)*"|[^,]+/g)
      return words?.map((word) => word.replace(/^"|"$/g, '').replace(/\\(.)/g, '$1')) ?? []
    }
  return cell
}

import { asObject } from '../../bytes/json.ts'
import { cutRows } from '../../operations/person-file.ts'

export type DumpRow = Readonly<Record<string, unknown>>

/**
 * Keys, teams and users of LiteLLM, with fields as in its API or its tables.
 * @property members limits of users within teams, from `team_memberships` of `/team/list`
 * @property missing sentences about pages of lists that LiteLLM has and the dump lacks
 */
export type LitellmDump = Readonly<Record<'keys' | 'teams' | 'users' | 'members', readonly DumpRow[]>> & {
  missing: readonly string[]
}

/**
 * Members of a row that can contain a single row, without a list around it. In other members, only lists are searched
 * for rows.
 */
const wrappers = new Set(['user', 'user_info', 'team_info'])

/** Columns that rows of users have, and rows of team members do not have. */
const userFields = ['user_role', 'user_alias', 'teams', 'max_budget']

/**
 * Reads responses of LiteLLM's `/key/list`, `/team/list` and `/user/list`, or the tables `LiteLLM_VerificationToken`,
 * `LiteLLM_TeamTable` and `LiteLLM_UserTable` as CSV. A text may contain several pages of responses, one after the
 * other. If rows have the same id, the last one counts. The fields are those of litellm 1.110.2 (schema.prisma,
 * November 2026).
 * @param texts the contents of the files
 * @throws Error with a message for people
 */
export function readLitellmDump(texts: readonly string[]): LitellmDump {
  const keys = new Map<unknown, DumpRow>()
  const teams = new Map<unknown, DumpRow>()
  const users = new Map<unknown, DumpRow>()
  const members = new Map<unknown, DumpRow>()
  /** For each kind of list: the numbers of the pages in the dump, and the number of pages that LiteLLM has. */
  const pages = new Map<string, { read: Set<unknown>; total: number }>()
  const take = (value: unknown): void => {
    if (Array.isArray(value)) {
      for (const one of value) take(one)
      return
    }
    const row = asObject(value)
    if (!row) return
    if (Array.isArray(row['keys']) && row['keys'].some((one) => typeof one === 'string'))
      throw new Error('it lists digests alone: ask /key/list?return_full_object=true&size=100 for each page')
    for (const kind of ['keys', 'users'])
      if (Array.isArray(row[kind]) && typeof row['total_pages'] === 'number') {
        const { read, total } = pages.get(kind) ?? { read: new Set(), total: 0 }
        pages.set(kind, {
          read: read.add(row['current_page'] ?? row['page']),
          total: Math.max(total, row['total_pages']),
        })
      }
    const { token, team_id: team, user_id: user } = row
    const isUser = userFields.some((name) => name in row)
    if (typeof token === 'string') keys.set(token, row)
    else if (typeof user === 'string' && isUser && !('user_info' in row)) users.set(user, row)
    else if (typeof user === 'string' && typeof team === 'string') members.set(memberOf(user, team), row)
    else if (typeof team === 'string' && user === undefined && !('team_info' in row)) teams.set(team, row)
    // A file may hold several responses in one object, under any names, such as `{ keys: …, teams: … }`.
    const isRow = [token, team, user].some((id) => id !== undefined)
    for (const [name, inner] of Object.entries(row))
      if (!isRow || (Array.isArray(inner) && name !== 'organization_memberships') || wrappers.has(name)) take(inner)
  }
  for (const text of texts) for (const value of valuesOf(text)) take(value)
  if (keys.size === 0)
    throw new Error('it has no key: name the answers of /key/list and /team/list, or both tables as CSV')
  const [ofKeys, ofTeams, ofUsers, ofMembers] = [keys, teams, users, members].map((rows) => [...rows.values()])
  const missing = [...pages].flatMap(([kind, { read, total }]) =>
    read.size < total
      ? `the dump has ${read.size} of ${total} pages of the ${kind}: export the others too, and name each file with --keys`
      : [],
  )
  return { keys: ofKeys!, teams: ofTeams!, users: ofUsers!, members: ofMembers!, missing }
}

/** Makes the map key by which the membership of a user in a team is found. */
export function memberOf(user: string, team: string): string {
  return JSON.stringify([user, team])
}

/** Whether a value means true. PostgreSQL, JSON and programs that write CSV express this in different ways. */
export function isTrue(value: unknown): boolean {
  return /^(t|true|1|y|yes)$/i.test(String(value).trim())
}

function valuesOf(text: string): unknown[] {
  const bare = text.trim()
  if (!/^[[{]/.test(bare)) return rowsOfCsv(bare)
  try {
    return [JSON.parse(bare)]
  } catch {
    // A file may contain several pages, one after the other. Each page begins at the beginning of a line.
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
  if (!['token', 'team_id', 'user_id'].some((name) => names.includes(name)))
    mistakes.push('the first line names neither `token` nor `team_id` nor `user_id`')
  if (mistakes.length > 0) throw new Error(mistakes[0])
  return rows.map(({ cells }) =>
    Object.fromEntries(
      names.map((name, at) => [name, readCell(cells[at]!)]).filter(([, value]) => value !== undefined),
    ),
  )
}

/** Reads a cell of CSV. PostgreSQL writes an array as `{a,"b c"}`, and null as an empty cell. */
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

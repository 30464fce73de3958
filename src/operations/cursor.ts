import { sha256Base62 } from '../ids.ts'
import { ProblemError } from './problem.ts'

/*
 * A cursor is the place where a page ended: the sort key and the id of the page's last row. So the next page is right
 * even if rows were added or removed. A digest of the query shows if a cursor belongs to another list.
 */

type CursorKey = readonly (string | number)[]

const digestChars = 10

/** Makes a cursor. @param asked all fields of the query except `limit` and `cursor` */
export function formatCursor(operation: string, asked: object, place: CursorKey): string {
  return Buffer.from(JSON.stringify([digestOf(operation, asked), ...place])).toString('base64url')
}

/** Reads the place in a cursor. @throws ProblemError if the cursor is invalid or belongs to another list */
export function readCursor(operation: string, asked: object, cursor: string): CursorKey {
  let read: unknown
  try {
    read = JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    read = undefined
  }
  const isPlace =
    Array.isArray(read) && read.length > 1 && read.every((one) => typeof one === 'string' || Number.isSafeInteger(one))
  if (!isPlace || cursor.length > 1_000) throw noCursor()
  const [digest, ...place] = read as [string, ...CursorKey]
  if (digest !== digestOf(operation, asked))
    throw new ProblemError('cursor_invalid', 'The cursor is of a list with other filters: begin anew without it.')
  return place
}

export function noCursor(): ProblemError {
  return new ProblemError('cursor_invalid', 'This is no cursor.')
}

type Kinds = { number: number; string: string }

/**
 * Checks the types of the values in a cursor, because the store relies on them. The digest in a cursor is not a
 * signature, so a client can send any values.
 * @throws ProblemError for values of other types
 */
export function readPlace<const Shape extends readonly (keyof Kinds)[]>(
  place: CursorKey | undefined,
  kinds: Shape,
): { [At in keyof Shape]: Kinds[Shape[At]] } | undefined {
  if (place === undefined) return undefined
  const isMeant = (one: unknown, at: number) =>
    typeof one === kinds[at] && !(typeof one === 'string' && one.includes('\0'))
  if (place.length !== kinds.length || !place.every(isMeant)) throw noCursor()
  return place as unknown as { [At in keyof Shape]: Kinds[Shape[At]] }
}

function digestOf(operation: string, asked: object): string {
  const fields = Object.entries(asked).filter(
    ([name, value]) => value !== undefined && !['cursor', 'limit'].includes(name),
  )
  return sha256Base62(JSON.stringify([operation, fields.sort(([a], [b]) => (a < b ? -1 : 1))]), digestChars)
}

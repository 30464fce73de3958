import type { z } from 'zod'
import type { Books, Principal } from '../accounts/books.ts'
import type { ProblemName } from './problem.ts'
import type { Explanation, ModelRow, UpstreamState } from './shapes.ts'

/**
 * An act of an operator: one entry, from which the command line, the HTTP routes, the OpenAPI document and the reference are
 * made. `run` is the one function that does it, over the books and what is known of the running gateway.
 *
 * A list's `run` answers one page and says where it ends; HTTP wraps it as `{items, next}`, the command line prints rows.
 */
export type Operation<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodType = z.ZodType> = {
  /** Its name, in the audit and as `operationId`: `account.create`. */
  id: string
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below /api/v1; `{name}` is the field of that name. */
  path: string
  role: Role
  /** `creates`: 201 for what is new, and `Idempotency-Key` is heard. `edits`: `If-Match` is needed. */
  kind: 'one' | 'list' | 'creates' | 'edits'
  /** All fields by their names: those of the path, then of the query (GET) or the body. Each takes a text. */
  input: Input
  /** What is answered; of a list, one of its items. */
  output: Output
  /** Beside those that any operation may answer. */
  problems: readonly ProblemName[]
  /** What it does, in one sentence; on the command line its help. */
  text: string
  cli: readonly Face[]
  /** A list that is also told as comma-separated values, from the first row to the last. */
  csv?(context: Context, input: z.output<Input>): AsyncIterable<string>
  /** What answers at the command line; `store` where it is left out. */
  asks?: 'server' | 'configuration'
  run(context: Context, input: z.output<Input>): Promise<Outcome<z.output<Output>>>
}

/** `owner`: whoever shows a key of an account, for what is his own. `anyone` has shown nothing. */
export const roles = ['anyone', 'owner', 'viewer', 'admin'] as const

export type Role = (typeof roles)[number]

/** One way in which the command line asks for an operation. */
export type Face = {
  /** Such as `account credit`. */
  command: string
  /** Fields that stand behind it, in this order; `name?` may be left out. */
  arguments?: readonly string[]
  /** Fields that are options, with the flag of each: `--reference <text>`. */
  options?: Readonly<Record<string, string>>
  /** Fields that the command itself has said. */
  fixed?: Readonly<Record<string, unknown>>
  /** What it does, where that is not the operation's text. */
  text?: string
  /** Fields whose text means something else when it is typed. @throws RangeError with a text for who typed it */
  reads?: Readonly<Record<string, (text: string) => string>>
  /** How many rows of a list are printed, where nobody says. */
  rows?: 'all' | number
}

export type Context = {
  /** Bound to whoever asks. */
  books: Books
  running: Running
  who: Principal | undefined
  nowMs: number
  /** Of triwire. */
  version: string
  /** The digest of the cookie that was shown. */
  cookie?: string | undefined
  /** Where the page before ended. */
  beyond?: readonly (string | number)[] | undefined
}

/** What is known of the running gateway. */
export type Running = {
  explain(requestId: string): Promise<Explanation | 'unknown' | 'silent'>
  listUpstreams(): readonly UpstreamState[] | Promise<readonly UpstreamState[]>
  listModels(): readonly ModelRow[]
}

export type Outcome<T> =
  /** @property isNew of a creation: not booked before. @property version of what can be edited */
  | { body: T; isNew?: boolean; version?: string; session?: Session }
  /** @property next place behind which the next page begins, if there is one */
  | { items: readonly T[]; next?: readonly (string | number)[] | undefined }

/** What becomes of the cookie. */
export type Session = { token: string; expiresMs: number } | 'ended'

/** Keeps the types of an entry together. */
export function operation<Input extends z.ZodObject, Output extends z.ZodType>(
  entry: Operation<Input, Output>,
): Operation {
  return entry as unknown as Operation
}

/** One page of rows that were asked for with one more than the page has. */
export function page<Row, T>(
  rows: readonly Row[],
  limit: number,
  tell: (row: Row) => T,
  placeOf: (row: Row) => readonly (string | number)[],
): { items: T[]; next: readonly (string | number)[] | undefined } {
  const shown = rows.slice(0, limit)
  return { items: shown.map(tell), next: rows.length > limit ? placeOf(shown.at(-1)!) : undefined }
}

import type { z } from 'zod'
import type { Books, Principal } from '../accounts/books.ts'
import type { Calendar } from '../accounts/calendar.ts'
import type { WireName } from '../catalog/model.ts'
import type { ClientRow, RequestRow, Setup, Status, TranslationTold } from './live-shapes.ts'
import type { ProblemName } from './problem.ts'
import type { Holds, RequestFilter, RequestPlace, SteeringWord, UpstreamPlace } from './request-order.ts'
import type { Explanation, ModelRow, UpstreamState, WebhookState } from './shapes.ts'

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
  /** The answer; of a list, one of its items. */
  output: Output
  /** Beside those that any operation may answer. */
  problems: readonly ProblemName[]
  /** The operation in one sentence; on the command line its help. */
  text: string
  cli: readonly Face[]
  /** The media types of its answer, if that is no JSON of `output`. A wire's errors are its own. */
  media?: readonly string[]
  /** Its body is as large as a request of a client may be. */
  isLarge?: boolean
  /** For a list that is also returned as comma-separated values, from the first row to the last. */
  csv?(context: Context, input: z.output<Input>): AsyncIterable<string>
  /** The most that run at once for one operator; others are asked to come again. */
  atOnce?: number
  /** The part that answers at the command line, by default the store. A server needs its store for those alone. */
  asks?: 'server' | 'configuration'
  run(context: Context, input: z.output<Input>): Promise<OperationResult<z.output<Output>>>
}

/** `owner`: a client that shows a key of an account, for its own data. `anyone` has shown nothing. */
const roles = ['anyone', 'owner', 'viewer', 'admin'] as const

export type Role = (typeof roles)[number]

/** One way in which the command line asks for an operation. */
export type Face = {
  /** Such as `account credit`. */
  command: string
  /** Fields that stand after it, in this order; `name?` may be left out. */
  arguments?: readonly string[]
  /** Fields that are options, with the flag of each: `--reference <text>`. */
  options?: Readonly<Record<string, string>>
  /** Defaults of fields, if they differ from those of the operation. */
  usual?: Readonly<Record<string, string>>
  /** Fields that the command itself has said. */
  fixed?: Readonly<Record<string, unknown>>
  /** The command in one sentence, if that differs from the operation's text. */
  text?: string
  /** Fields whose text means something else when it is typed. @throws RangeError with a text for who typed it */
  reads?: Readonly<Record<string, (text: string) => string>>
  /** How many rows of a list are printed, where nobody says. */
  rows?: 'all' | number
}

export type Context = {
  /** Bound to the principal who asks. */
  books: Books
  /** Of an operation that the server answers, and that wants them for a part of it. @throws StoreSilent */
  openBooks(): Promise<Books>
  running: Running
  who: Principal | undefined
  /** The id of this very request, as its answer tells it. */
  requestId: string
  /** The last event that a reader had before it left. */
  lastEventId?: string | undefined
  nowMs: number
  /** Of the reporting zone. */
  calendar: Calendar
  /** Of triwire. */
  version: string
  /** The digest of the cookie that was shown. */
  cookie?: string | undefined
  /** The place where the page before ended. */
  beyond?: readonly (string | number)[] | undefined
}

/** The questions that the running gateway answers, and the orders that it takes. */
export type Running = {
  explain(requestId: string): Promise<Explanation | 'unknown' | 'silent'>
  listUpstreams(): Promise<readonly UpstreamState[]>
  listModels(): readonly ModelRow[]
  listWebhooks(): Promise<readonly WebhookState[]>
  /** The sum that running requests hold of a key's budget, as far as this process knows; in nano-credits. */
  heldOf(keyDigest: string): bigint
  /** No other server has its store: what its memory has last is what the ledger has last. */
  isAlone: boolean
  /** No request that was billed later is missing in memory, as far as it was this server's; in Unix milliseconds. */
  rememberedSinceMs(): number
  /** The last requests in memory after a place, in the order of `compareRows`. */
  listRequests(which: RequestFilter, limit: number, beyond?: RequestPlace): Promise<RequestRow[]>
  /** Which of these are in memory. */
  findRequests(ids: readonly string[]): Promise<ReadonlySet<string>>
  /** Events as they are sent, until it is ended. @param lastEventId the last one that was read before */
  watch(lastEventId: string | undefined): AsyncIterable<string>
  readStatus(): Promise<Status>
  readHolds(): Promise<Holds>
  /**
   * Has what was counted of requests that cost nothing, and of times, written into the store; as far as that goes soon.
   * @returns whether all of this server's is in it
   */
  writeTraffic(): Promise<boolean>
  /** @returns how those are then that were meant; none where nothing has these names */
  steer(steering: SteeringWord, place: UpstreamPlace): Promise<readonly UpstreamState[]>
  translate(asked: TranslationAsked): Promise<TranslationTold>
  listClients(): Promise<readonly ClientRow[]>
  /** @throws ProblemError for a client or model that there is not */
  setUp(client: string, asked: SetupAsked): Promise<Setup>
}

export type TranslationAsked = {
  from: WireName
  model: string | undefined
  upstream: string | undefined
  /** JSON. */
  body: string | undefined
  answer: string | undefined
}

export type SetupAsked = {
  model: string | undefined
  wire: WireName | undefined
  url: string | undefined
  /** An owner does not see which wire a model speaks (ruling X14). */
  isOwner: boolean
}

/** A request that the gateway shall serve for an account, though nobody has shown a key of it. */
export type Play = {
  account: { id: string; name: string; state: 'active' | 'suspended' }
  wire: WireName
  /** JSON. */
  body: string
}

export type OperationResult<T> =
  /** @property isNew of a creation: not booked before. @property version of what can be edited */
  | { body: T; isNew?: boolean; version?: string; session?: SessionCookie }
  /** @property next the place after which the next page begins, if there is one */
  | { items: readonly T[]; next?: readonly (string | number)[] | undefined }
  /** A stream that goes on until it is ended. */
  | { events: AsyncIterable<string> }
  /** A request that the gateway answers as it answers a client. */
  | { play: Play }

/** The change of the cookie. */
export type SessionCookie = { token: string; expiresMs: number } | 'ended'

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

import { z } from 'zod'
import { findAway } from '../accounts/archive.ts'
import type { Books, Principal } from '../accounts/books.ts'
import type { Calendar } from '../accounts/calendar.ts'
import type { DeclaredLabels } from '../accounts/labels.ts'
import type { OperatorRole, OwnerRole } from '../accounts/operators.ts'
import type { CreditWords } from '../accounts/statement.ts'
import type { ClientWire } from '../catalog/wire-names.ts'
import type { ClientRow, DemoDesk, RequestRow, Setup, Status, TranslationTold } from './live-shapes.ts'
import type { Need } from './needs.ts'
import type { ProblemName } from './problem.ts'
import type { Holds, RequestFilter, RequestPlace, SteeringWord, UpstreamPlace } from './rows.ts'
import type { Explanation, ModelRow, UpstreamState, WebhookState } from './shapes.ts'

/**
 * One thing that an operator can do. The command line, the HTTP routes, the OpenAPI document and the reference are made from
 * this entry. `run` does the work, with the books and the state of the running gateway.
 *
 * For a list, `run` returns one page and the place where it ends. HTTP wraps it as `{items, next}`; the command line prints rows.
 */
export type Operation<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodType = z.ZodType> = {
  /** The name, in the audit and as `operationId`: `account.create`. */
  id: string
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below /api/v1; `{name}` is the field of that name. */
  path: string
  role: Role
  /** `creates`: returns 201 for a new object, and honours `Idempotency-Key`. `edits`: requires `If-Match`. */
  kind: 'one' | 'list' | 'creates' | 'edits'
  /** Of a creation: the path below which the new object is shown, such as `/accounts`. The answer names it in `Location`. */
  madeAt?: string
  /** All fields by name: those of the path, then of the query (GET) or the body. Each accepts a text. */
  input: Input
  /** The answer, or an item of it if it is a list. */
  output: Output
  /** Problems besides those that any operation may return. */
  problems: readonly ProblemName[]
  /** The operation in one sentence, which is also its help on the command line. */
  text: string
  cli: readonly Face[]
  /** The media types of the answer, if it is not the JSON of `output`. A wire also has errors of its own. */
  media?: readonly string[]
  /** Whether its body may contain a client's request, and be as large. */
  isLarge?: boolean
  /** Forms of the answer beside JSON, as media types. */
  texts?: readonly string[]
  /** Returns the whole list as comma-separated values, if it exists in that form. */
  csv?(context: Context, input: z.output<Input>): AsyncIterable<string>
  /** The most runs at the same time for one operator. Further ones are refused. */
  atOnce?: number
  /** The source of the answer if it is not the store. Such operations do not need the store of a server. */
  asks?: 'server' | 'configuration'
  /** Answered for all servers of the store that can be reached. The answer names the others in a header. */
  isOfAll?: true
  run(context: Context, input: z.output<Input>): Promise<OperationResult<z.output<Output>>>
}

/**
 * Callers that an operation serves (Y22). `anyone`: shows nothing. `owner`: a client that shows a key of an account, for its
 * own data. `own`: nobody else, because operators have the same of everybody. `lead`: a lead, for the people of their account.
 * `reader`: all operators. `viewer`: viewers and admins. `finance`: finance and admins.
 */
type Role = 'anyone' | 'owner' | 'own' | 'lead' | 'reader' | 'viewer' | 'finance' | 'admin'

/** The operations that each caller may use. */
const served = {
  nobody: ['anyone'],
  owner: ['anyone', 'owner', 'own'],
  member: ['anyone', 'owner', 'own'],
  lead: ['anyone', 'owner', 'own', 'lead'],
  viewer: ['anyone', 'owner', 'reader', 'viewer'],
  finance: ['anyone', 'owner', 'reader', 'finance'],
  admin: ['anyone', 'owner', 'reader', 'viewer', 'finance', 'admin'],
} as const satisfies Record<OperatorRole | OwnerRole | 'owner' | 'nobody', readonly Role[]>

/** The roles of operations that exist for owners of keys. */
export const ownRoles: ReadonlySet<Role> = new Set(served.lead)

/** Whether an operation of a role serves a caller. */
export function serves(role: Role, who: Principal | undefined): boolean {
  const caller = who === undefined ? 'nobody' : (who.role ?? 'owner')
  return served[caller].some((one) => one === role)
}

/** One way in which the command line offers an operation. */
export type Face = {
  /** The command, such as `account credit`. */
  command: string
  /** Whether the last word of the command may be left out. */
  isDefault?: true
  /** Fields that are arguments, in this order; `name?` may be left out. */
  arguments?: readonly string[]
  /** Fields that are options, each with its flag: `--reference <text>`. */
  options?: Readonly<Record<string, string>>
  /** Defaults of fields, if they differ from those of the operation. */
  usual?: Readonly<Record<string, string>>
  /** Values of the field `form`, each with a flag of its own. */
  forms?: Readonly<Record<string, string>>
  /** Fields that the command itself determines. */
  fixed?: Readonly<Record<string, unknown>>
  /** The command in one sentence, if that differs from the operation's text. */
  text?: string
  /** Converts the typed text of fields. @throws RangeError with a text for the person */
  reads?: Readonly<Record<string, (text: string) => string>>
  /** Arguments that name a file: its text is the field. */
  files?: readonly string[]
  /** The number of rows of a list that are printed by default. */
  rows?: 'all' | number
}

export type Context = {
  /** Bound to the caller, for the audit. */
  books: Books
  /** Opens the books, for an operation that needs them only in some cases. @throws StoreSilent */
  openBooks(): Promise<Books>
  running: Running
  who: Principal | undefined
  /** The id of this request, as in its answer. */
  requestId: string
  /** The last event that the reader of a stream had before. */
  lastEventId?: string | undefined
  nowMs: number
  /** The calendar of the reporting zone. */
  calendar: Calendar
  /** The version of triwire. */
  version: string
  /** Whether it was asked on the listener of clients, where no operator signs in. */
  isForOwners?: boolean | undefined
  /** The digest of the cookie that was shown. */
  cookie?: string | undefined
  /** The place where the page before ended. */
  beyond?: readonly (string | number)[] | undefined
}

/** The questions that the running gateway answers, and the commands that it takes. */
export type Running = {
  explain(requestId: string): Promise<Explanation | 'unknown' | 'silent'>
  listUpstreams(): Promise<readonly UpstreamState[]>
  listModels(): readonly ModelRow[]
  /** The labels of the configuration. */
  declaredLabels(): DeclaredLabels
  /** How long a session of a person lives that nobody refreshes, in ms. */
  sessionIdleMs(): number
  /** The names of its plans. */
  declaredPlans(): readonly string[]
  /** How credits are called on statements. */
  readCreditWords(): Promise<CreditWords>
  listWebhooks(): Promise<readonly WebhookState[]>
  listNeeds(): Promise<readonly Need[]>
  /** The demo of the console. */
  demo: DemoDesk
  /** The nano-credits of a key's budget that running requests hold, as far as this process knows; or of its person's. */
  heldOf(keyDigest: string, whose?: 'bounds' | 'personBounds'): bigint
  /** The same of people, by their ids; those of whom nothing is held may be missing. */
  heldByPeople(): ReadonlyMap<string, bigint>
  /** Whether the store has keys of another gateway, as far as this process knows. */
  hasForeignKeys(): boolean
  /** Whether no other server uses the store, so that its own memory has the last requests. */
  isAlone: boolean
  /** Since this time, in Unix milliseconds, memory has all billed requests of this server. */
  rememberedSinceMs(): number
  /** Returns the last requests in memory after a place, in the order of `compareRows`. */
  listRequests(which: RequestFilter, limit: number, beyond?: RequestPlace): Promise<RequestRow[]>
  /** Returns the ids that are in memory. */
  findRequests(ids: readonly string[]): Promise<ReadonlySet<string>>
  /** Yields events as they occur, until it is ended. @param lastEventId the last one that was read before */
  watch(lastEventId: string | undefined): AsyncIterable<string>
  readStatus(): Promise<Status>
  readHolds(): Promise<Holds>
  /** The names of other servers of the store that could not be asked when operators last asked all of them. */
  listUnreached(): readonly string[]
  /**
   * Writes counters of free requests, and measured times, into the store, if that is quickly possible.
   * @returns whether the store now has all figures of this server
   */
  writeTraffic(): Promise<boolean>
  /** @returns the state of the selected accounts afterwards; an empty list if nothing matches */
  steer(steering: SteeringWord, place: UpstreamPlace): Promise<readonly UpstreamState[]>
  translate(asked: TranslationAsked): Promise<TranslationTold>
  listClients(): Promise<readonly ClientRow[]>
  /** @throws ProblemError for an unknown client or model */
  setUp(client: string, asked: SetupAsked): Promise<Setup>
}

type TranslationAsked = {
  from: ClientWire
  model: string | undefined
  upstream: string | undefined
  /** JSON. */
  body: string | undefined
  answer: string | undefined
}

export type SetupAsked = {
  model: string | undefined
  wire: ClientWire | undefined
  url: string | undefined
  /** An owner of a key does not see which wire a model speaks (ruling X14). */
  isOwner: boolean
}

/**
 * A request that the gateway serves for an account, although no key of it was shown to its wire.
 * @property keyDigest the key whose limits apply and which is billed; undefined: none
 */
export type Play = {
  account: { id: string; name: string; state: 'active' | 'suspended' }
  keyDigest?: string
  wire: ClientWire
  /** JSON. */
  body: string
}

export type OperationResult<T> =
  /** @property isNew for a creation: it is not a repetition. @property version of an object that can be edited */
  | { body: T; isNew?: boolean; version?: string; session?: SessionCookie }
  /**
   * @property next the place after which the next page begins, if there is one
   * @property away of a last page: months that were detached, whose rows would follow
   */
  | { items: readonly T[]; next?: readonly (string | number)[] | undefined; away?: readonly string[] | undefined }
  /** A text of its own form. @property name of a file for it */
  | { text: string; type: string; name: string }
  /** All rows of a table, sent as JSON lines. */
  | { rows: AsyncIterable<object> }
  /** A stream that goes on until it is ended. */
  | { events: AsyncIterable<string> }
  /** A request that the gateway answers like a client's. */
  | { play: Play }

/** The change of the cookie. */
type SessionCookie = { token: string; expiresMs: number } | 'ended'

type Method = Operation['method']

/** The members that an entry of the table leaves out if they have these values. */
const usual = { kind: 'one', input: z.strictObject({}), problems: [], cli: [] } as const satisfies Partial<Operation>

type OperationEntry<Input extends z.ZodObject, Output extends z.ZodType> = Omit<
  Operation<Input, Output>,
  'method' | 'path' | keyof typeof usual
> &
  Partial<Pick<Operation<Input, Output>, keyof typeof usual>> & {
    /** The method and the path, such as `GET /accounts`. */
    http: `${Method} /${string}`
  }

/** Makes an operation of an entry of the table, and checks that the types of the entry belong together. */
export function operation<Input extends z.ZodObject = typeof usual.input, Output extends z.ZodType = z.ZodType>({
  http,
  ...entry
}: OperationEntry<Input, Output>): Operation {
  const [method, path] = http.split(' ') as [Method, string]
  return { ...usual, ...entry, method, path } as unknown as Operation
}

/** Names the detached months whose entries a list of a span would go on with, for its last page. Undefined if there are none. */
export async function awayOf(
  books: Pick<Books, 'listArchives'>,
  { sinceMs, untilMs }: { sinceMs?: number | undefined; untilMs?: number | undefined },
): Promise<string[] | undefined> {
  const away = findAway(await books.listArchives(), sinceMs, untilMs)
  return away.length > 0 ? away.map(({ month }) => month) : undefined
}

/** Makes a page of rows. The caller must have read one row more than the page has. */
export function page<Row, T>(
  rows: readonly Row[],
  limit: number,
  tell: (row: Row) => T,
  placeOf: (row: Row) => readonly (string | number)[],
): { items: T[]; next: readonly (string | number)[] | undefined } {
  const shown = rows.slice(0, limit)
  return { items: shown.map(tell), next: rows.length > limit ? placeOf(shown.at(-1)!) : undefined }
}

import { z } from 'zod'
import type { AccessReader } from '../accounts/account.ts'
import { findAway } from '../accounts/archive.ts'
import type { Books } from '../accounts/books.ts'
import type { Calendar } from '../accounts/calendar.ts'
import type { DeclaredLabels } from '../accounts/labels.ts'
import type { OperatorRole, OwnerRole } from '../accounts/operators.ts'
import type { Principal } from '../accounts/principals.ts'
import type { CreditWords } from '../accounts/statement.ts'
import type { ClientWire } from '../catalog/wire-names.ts'
import type { ClientRow, DemoDesk, RequestRow, Setup, Status, TranslationTold } from './live-shapes.ts'
import type { Need } from './needs.ts'
import type { ProblemName } from './problem.ts'
import type { Holds, RequestFilter, RequestPlace, SteeringWord, UpstreamPlace } from './rows.ts'
import type { Explanation, ModelRow, UpstreamState, WebhookState } from './shapes.ts'

/**
 * An action that operators or owners of keys can take. Its command, HTTP route, OpenAPI document and reference are made
 * from this entry. `run` does the work, with the books and the state of the running gateway.
 *
 * For a list, `run` returns a page and the place where it ends. HTTP returns `{items, next}`; the command line prints
 * rows.
 */
export type Operation<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodType = z.ZodType> = {
  /** The name in the audit, and the `operationId`, such as `account.create`. */
  id: string
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** The path below /api/v1. `{name}` stands for the field of that name. */
  path: string
  role: Role
  /** `creates`: returns 201 for a new object, and honours `Idempotency-Key`. `edits`: requires `If-Match`. */
  kind: 'one' | 'list' | 'creates' | 'edits'
  /** Set if the operation creates an object: the path to which its id is added for `Location`, such as `/accounts`. */
  madeAt?: string
  /** The fields of a request, in the path, the query (GET) or the body. Each field accepts its value as a text. */
  input: Input
  /** The answer, or one item of a list. */
  output: Output
  /** Problems besides those that any operation may return. */
  problems: readonly ProblemName[]
  /** One sentence about the operation. The command line shows it as help. */
  text: string
  cli: readonly Face[]
  /**
   * The media types of the answer, if it is not the JSON of `output`. If the answer has the format of a client's wire,
   * the errors have that format too.
   */
  media?: readonly string[]
  /** Whether the body may be as large as the request of a client, because it may contain such a request. */
  isLarge?: boolean
  /** The media types of other forms in which a caller can get the answer. */
  texts?: readonly string[]
  /** Returns the whole list as comma-separated values, if the operation has that form. */
  csv?(context: Context, input: z.output<Input>): AsyncIterable<string>
  /** The most concurrent runs for one operator. Further runs are refused. */
  atOnce?: number
  /**
   * The source of the answer, if it is not the store. Operations with such a source work while the store does not
   * respond.
   */
  asks?: 'server' | 'configuration'
  /**
   * The answer combines the answers of all servers that share the store. A header names the servers that did not
   * respond.
   */
  isOfAll?: true
  run(context: Context, input: z.output<Input>): Promise<OperationResult<z.output<Output>>>
}

/**
 * The callers that may use an operation (Y22):
 * - `anyone`: all callers, even without a token
 * - `owner`: operators, and owners of a key for their own data
 * - `own`: only owners of a key, because operators have operations for all keys
 * - `lead`: leads, for the people of their account
 * - `reader`: all operators
 * - `viewer`, `finance`, `admin`: operators with this role, and admins
 */
type Role = 'anyone' | 'owner' | 'own' | 'lead' | 'reader' | 'viewer' | 'finance' | 'admin'

/** For each kind of caller: the roles of the operations that this caller may use. */
const served = {
  nobody: ['anyone'],
  owner: ['anyone', 'owner', 'own'],
  member: ['anyone', 'owner', 'own'],
  lead: ['anyone', 'owner', 'own', 'lead'],
  viewer: ['anyone', 'owner', 'reader', 'viewer'],
  finance: ['anyone', 'owner', 'reader', 'finance'],
  admin: ['anyone', 'owner', 'reader', 'viewer', 'finance', 'admin'],
} as const satisfies Record<OperatorRole | OwnerRole | 'owner' | 'nobody', readonly Role[]>

/** The roles of all operations that owners of keys, including leads, may use. */
export const ownRoles: ReadonlySet<Role> = new Set(served.lead)

/** Whether a caller may use the operations that have this role. @param who undefined for a caller without a token */
export function serves(role: Role, who: Principal | undefined): boolean {
  const caller = who === undefined ? 'nobody' : (who.role ?? 'owner')
  return served[caller].some((one) => one === role)
}

/** A command for an operation. */
export type Face = {
  /** The command, such as `account credit`. */
  command: string
  /** Whether the last word of the command may be left out. */
  isDefault?: true
  /** Fields that are arguments, in this order. `name?` is optional. */
  arguments?: readonly string[]
  /** Fields that are options, each with its flag, such as `--reference <text>`. */
  options?: Readonly<Record<string, string>>
  /** Defaults of fields, if they differ from those of the operation. */
  usual?: Readonly<Record<string, string>>
  /** Values of the field `form`, each with its help. Each value is also the name of a flag, such as `--csv`. */
  forms?: Readonly<Record<string, string>>
  /** Fields whose values the command sets. */
  fixed?: Readonly<Record<string, unknown>>
  /** The help of the command, if it differs from `text` of the operation. */
  text?: string
  /**
   * For each field, a function that converts the text typed for the field.
   * @throws RangeError with a message for people
   */
  reads?: Readonly<Record<string, (text: string) => string>>
  /** Arguments that are paths of files. The text of the file becomes the value of the field. */
  files?: readonly string[]
  /** The number of rows of a list that are printed by default. */
  rows?: 'all' | number
}

export type Context = {
  /** The books, which record the caller in the audit. */
  books: Books
  /** Opens the books, for an operation that does not always need them. @throws StoreSilent */
  openBooks(): Promise<Books>
  running: Running
  who: Principal | undefined
  /** The id of this request, which is also in the answer. */
  requestId: string
  /** The id of the last event that the reader of a stream received before it connected again. */
  lastEventId?: string | undefined
  nowMs: number
  /** The calendar of the reporting zone. */
  calendar: Calendar
  /** The version of triwire. */
  version: string
  /** Whether the request came to the clients' listener, where operators cannot sign in. */
  isForOwners?: boolean | undefined
  /** Reads the access token of a person's session (ruling Y20). */
  readAccess?: AccessReader | undefined
  /** The digest of the cookie in the request. */
  cookie?: string | undefined
  /** The place where the previous page ended. */
  beyond?: readonly (string | number)[] | undefined
}

/** The state of the running gateway that operations can read, and the commands that they can give. */
export type Running = {
  explain(requestId: string): Promise<Explanation | 'unknown' | 'silent'>
  listUpstreams(): Promise<readonly UpstreamState[]>
  listModels(): readonly ModelRow[]
  /** The labels that the configuration declares. */
  declaredLabels(): DeclaredLabels
  /** How long a person's session lasts without a refresh, in ms. */
  sessionIdleMs(): number
  /** The names of the plans that the configuration declares. */
  declaredPlans(): readonly string[]
  /** The name of credits on statements. */
  readCreditWords(): Promise<CreditWords>
  listWebhooks(): Promise<readonly WebhookState[]>
  listNeeds(): Promise<readonly Need[]>
  /** The demo of the console. */
  demo: DemoDesk
  /**
   * Returns how much of a budget is held by running requests, in nano-credits, as far as this process knows.
   * @param whose `personBounds` for the budget of the key's person; by default the key's own budget
   */
  heldOf(keyDigest: string, whose?: 'bounds' | 'personBounds'): bigint
  /**
   * Returns how much of each person's budget is held by running requests, in nano-credits by person id. People without
   * holds may be missing.
   */
  heldByPeople(): ReadonlyMap<string, bigint>
  /** Whether the store has keys of another gateway, as far as this process knows. */
  hasForeignKeys(): boolean
  /** Whether no other server uses the store. If so, the newest requests are all in the memory of this server. */
  isAlone: boolean
  /** The time from which memory has all billed requests of this server, in Unix milliseconds. */
  rememberedSinceMs(): number
  /** Returns the time from which memory has all requests without a bill, in Unix milliseconds. */
  readUnbilledSinceMs(): Promise<number>
  /** Lists requests in memory in the order of `compareRows`. The list begins after the place `beyond`, if it is set. */
  listRequests(which: RequestFilter, limit: number, beyond?: RequestPlace): Promise<RequestRow[]>
  /** Returns the given ids, but only those whose requests are in memory. */
  findRequests(ids: readonly string[]): Promise<ReadonlySet<string>>
  /**
   * Yields events as they occur, until the reader stops. @param lastEventId the last event that the reader got before
   */
  watch(lastEventId: string | undefined): AsyncIterable<string>
  readStatus(): Promise<Status>
  readHolds(): Promise<Holds>
  /** The names of this store's servers that did not respond when all servers were last asked. */
  listUnreached(): readonly string[]
  /**
   * Stores those figures of this server that are in no ledger entry: counts of requests that cost nothing, and measured
   * times. Gives up if the store does not respond quickly.
   * @returns whether the store now has all figures of this server
   */
  writeTraffic(): Promise<boolean>
  /**
   * Applies a command to the selected upstream accounts. @returns their new states; an empty list if no account matches
   */
  steer(steering: SteeringWord, place: UpstreamPlace): Promise<readonly UpstreamState[]>
  translate(asked: TranslationAsked): Promise<TranslationTold>
  listClients(): Promise<readonly ClientRow[]>
  /** Returns the settings of a client. @throws ProblemError for an unknown client or model */
  setUp(client: string, asked: SetupAsked): Promise<Setup>
}

type TranslationAsked = {
  from: ClientWire
  model: string | undefined
  upstream: string | undefined
  /** The body of the request, a JSON text. */
  body: string | undefined
  answer: string | undefined
}

export type SetupAsked = {
  model: string | undefined
  wire: ClientWire | undefined
  url: string | undefined
  /** Whether the caller is an owner of a key. Owners may not see the wire of a model (ruling X14). */
  isOwner: boolean
  /** The models that the owner's key may name; undefined if it may name every model. */
  models: readonly string[] | undefined
}

/**
 * A request that the gateway serves for an account, although the request has no key.
 * @property keyDigest the key that is billed and whose limits apply; undefined if there is no such key
 */
export type Play = {
  account: { id: string; name: string; state: 'active' | 'suspended' }
  keyDigest?: string
  wire: ClientWire
  /** The body of the request, a JSON text. */
  body: string
}

export type OperationResult<T> =
  /**
   * `isNew` is false if a creation repeats an earlier one. `version` is the version of the object, if it can be edited.
   */
  | { body: T; isNew?: boolean; version?: string; session?: SessionCookie }
  /**
   * @property next the place after which the next page begins; undefined on the last page
   * @property away only on the last page: the months whose rows would follow, but which are now in archive files
   * @property unbilledSince only on the last page of requests: the time since which requests without a bill are listed
   */
  | {
      items: readonly T[]
      next?: readonly (string | number)[] | undefined
      away?: readonly string[] | undefined
      unbilledSince?: string | undefined
    }
  /** A text that is not JSON. @property name a file name for it */
  | { text: string; type: string; name: string }
  /** All rows of a table. HTTP sends them as JSON lines. */
  | { rows: AsyncIterable<object> }
  /** A stream of events without an end. */
  | { events: AsyncIterable<string> }
  /** A request that the gateway serves like the request of a client. */
  | { play: Play }

/** A cookie to set, or to remove. */
type SessionCookie = { token: string; expiresMs: number } | 'ended'

type Method = Operation['method']

/** The defaults of the members that an entry in the table of operations can leave out. */
const usual = { kind: 'one', input: z.strictObject({}), problems: [], cli: [] } as const satisfies Partial<Operation>

type OperationEntry<Input extends z.ZodObject, Output extends z.ZodType> = Omit<
  Operation<Input, Output>,
  'method' | 'path' | keyof typeof usual
> &
  Partial<Pick<Operation<Input, Output>, keyof typeof usual>> & {
    /** The method and the path, such as `GET /accounts`. */
    http: `${Method} /${string}`
  }

/** Makes an operation from an entry of the table. The types of input and output make the compiler check the entry. */
export function operation<Input extends z.ZodObject = typeof usual.input, Output extends z.ZodType = z.ZodType>({
  http,
  ...entry
}: OperationEntry<Input, Output>): Operation {
  const [method, path] = http.split(' ') as [Method, string]
  return { ...usual, ...entry, method, path } as unknown as Operation
}

/** Returns those months of a time span that are only in archive files. Undefined if there are none. */
export async function awayOf(
  books: Pick<Books, 'listArchives'>,
  { sinceMs, untilMs }: { sinceMs?: number | undefined; untilMs?: number | undefined },
): Promise<string[] | undefined> {
  const away = findAway(await books.listArchives(), sinceMs, untilMs)
  return away.length > 0 ? away.map(({ month }) => month) : undefined
}

/** Makes a page. If there is a next page, `rows` must have at least one row more than `limit`. */
export function page<Row, T>(
  rows: readonly Row[],
  limit: number,
  tell: (row: Row) => T,
  placeOf: (row: Row) => readonly (string | number)[],
): { items: T[]; next: readonly (string | number)[] | undefined } {
  const shown = rows.slice(0, limit)
  return { items: shown.map(tell), next: rows.length > limit ? placeOf(shown.at(-1)!) : undefined }
}

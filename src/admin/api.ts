import type { Books } from '../accounts/books.ts'
import type { Calendar } from '../accounts/calendar.ts'
import type { Principal } from '../accounts/principals.ts'
import type { Bodies, BodyShare } from '../gateway/fairness/places.ts'
import type { Turns } from '../gateway/fairness/turns.ts'
import type { HttpExchange } from '../http/http-exchange.ts'
import { sha256Hex } from '../ids.ts'
import { problemOf } from '../operations/book-words.ts'
import { formatJsonLines, jsonLines } from '../operations/csv.ts'
import { formatCursor, readCursor } from '../operations/cursor.ts'
import { allOperations } from '../operations/openapi.ts'
import type { Context, Operation, OperationResult, Play, Running } from '../operations/operation.ts'
import { invalidFields, ProblemError, sayIssue } from '../operations/problem.ts'
import { digestOfCookie } from '../operations/session.ts'
import { type AdminHandler, type AdminRequest, type ApiAnswer, formatJson, guard, tellProblem } from './answer.ts'
import {
  cookieName,
  formatCookie,
  guardHeaders,
  isCrossSite,
  isOurHost,
  type KnownSite,
  readCookie,
  type Site,
  siteOf,
} from './guard.ts'
import { createIdentity, type IdentityParts, permit, tooMany } from './identity.ts'
import { adminRoutes, type Matched, matchOperation, ownRoutes, readFields } from './request.ts'
import { createUnderWay } from './under-way.ts'

export type ApiParts = IdentityParts & {
  running: Running
  /** Opens the demo's books (accounts, keys, ledger), read-only. Operators are found in `books` even in the demo. */
  demoBooks?: (() => Promise<Books>) | undefined
  /** Logs a bug of the gateway. */
  reportBug(bug: Error): void
  /** The time that the store's clock should show (see `Act`). Undefined if this process does not watch the clock. */
  expectedMs?: (() => number | undefined) | undefined
  /** Returns the address of a client, even if a trusted proxy forwards its requests. */
  peerOf(peer: string, forwarded: string | undefined): string
  /** The calendar of the reporting zone. */
  calendar: Calendar
  version: string
  /** The names of this listener, besides loopback names. */
  site?: KnownSite
  play: PlayRequest
  /** The memory that the bodies of all requests share (ruling R18). */
  bodies: Pick<Bodies, 'enter'>
  /** Decides which request begins when not all can begin at once (decision 20). */
  turns: Turns
  /** The largest request of a client, in bytes. */
  bodyBytesMax(): number
}

/**
 * Serves a request that an operator sends on behalf of an account, as if a client of the account had sent it.
 * @param asked.requestId the id of the operator's request, which the served request has too
 * @param asked.ip the operator's address
 * @param share counts the memory of the body until the served request counts it itself
 */
export type PlayRequest = (
  exchange: HttpExchange,
  play: Play,
  asked: { requestId: string; ip: string },
  share?: BodyShare,
) => void

/**
 * Creates the API of operators, or the API of the owners of keys. Checks run in this order: host name (421), token
 * (401, 429), operation (404, 405), role (403), fields (400 and others).
 */
export function createApi(parts: ApiParts): AdminHandler {
  const { identify, failed } = createIdentity(parts)
  const { enter, openStream, exportRows } = createUnderWay(parts.nowMs)
  return async (request) => {
    try {
      const answer = await judge(request)
      return answer && guard(answer, request.id)
    } catch (error) {
      return guard(tellProblem(asProblem(error, parts.reportBug), request.id), request.id)
    }
  }

  async function judge(request: AdminRequest): Promise<ApiAnswer | undefined> {
    const { exchange } = request
    const site = siteOf(exchange, parts.site)
    if (!isOurHost(exchange.header('host'), site))
      throw new ProblemError('misdirected', 'Ask by the address of this listener.')
    const matched = matchOperation(parts.isForOwners ? ownRoutes : adminRoutes, exchange.method, request.path)
    const isOpen = matched && 'operation' in matched && matched.operation.role === 'anyone'
    const address = parts.peerOf(exchange.socket.remoteAddress ?? '', exchange.header('x-forwarded-for'))
    const shown = isOpen ? nobody : await identify(request, site, address)
    const operation = permit(matched, shown.who)
    if (operation.operation.method !== 'GET' && shown.isCookie && isCrossSite(exchange, site))
      throw new ProblemError('cross_site', 'This comes from a page of another site.')
    if (parts.demoBooks) refuseInDemo(operation.operation)
    // Sign-ins are limited, because each successful sign-in commits to the store.
    const place = isOpen ? parts.ownerRates.take(address) : undefined
    if (place && !place.ok) throw tooMany('Your address asks too often.', place.retryAfterSeconds)
    const leave = enter(operation.operation, shown.who)
    try {
      return await answerOperation(request, operation, shown, { site, address })
    } catch (error) {
      // The body of a sign-in contains a token. A wrong token counts as a failed authentication.
      if (isOpen && isGuess(error)) throw failed(address)
      throw error
    } finally {
      leave()
    }
  }

  async function answerOperation(
    request: AdminRequest,
    { operation, inPath }: Extract<Matched, { operation: unknown }>,
    { who, isStillGood }: ShownCredential,
    { site, address }: { site: Site; address: string },
  ): Promise<ApiAnswer | undefined> {
    const { exchange, id: requestId } = request
    const actor = actorOf(who)
    // All keys and people of an account share its part of the memory and of the event loop (ruling R18).
    const payer = who?.kind === 'owner' ? who.account.id : actor
    const share = operation.isLarge ? parts.bodies.enter(payer) : undefined
    const large = share && { room: share, begin: (bytes: number) => parts.turns.take(payer, bytes) }
    const sent = await readFields(request, { operation, inPath }, { bytesMax: parts.bodyBytesMax, large }).catch(
      (error: unknown) => {
        share?.release()
        throw error
      },
    )
    // The answer may be as large as the body. It stays in memory until the client has read it.
    if (share) exchange.whenOver(() => share.release())
    const read = operation.input.safeParse(sent, { error: sayIssue })
    if (!read.success) throw invalidFields(read.error.issues)
    const cookie = readCookie(exchange, cookieName(site))
    const act = {
      actor,
      address,
      once: onceOf(exchange, operation, sent),
      version: versionOf(exchange, operation),
      expectedMs: parts.expectedMs?.(),
    }
    const openBooks = async () => (await (parts.demoBooks ?? parts.books)()).as(act)
    const context: Context = {
      // An operation that does not need the store gets no books, so it works even if the store does not respond.
      books: operation.asks === undefined ? await openBooks() : (undefined as never),
      openBooks,
      running: parts.running,
      who,
      requestId,
      ...{ nowMs: parts.nowMs(), calendar: parts.calendar },
      ...{ version: parts.version, isForOwners: parts.isForOwners, readAccess: parts.readAccess },
      cookie: cookie === undefined ? undefined : digestOfCookie(cookie),
      lastEventId: exchange.header('last-event-id'),
    }
    const isCsv = /\btext\/csv\b/.test(exchange.header('accept') ?? '')
    const rows = isCsv ? operation.csv?.(context, read.data) : undefined
    if (rows) return nameUnreached(await exportRows(rows, csvHeaders(operation), actor), operation, parts)
    const { cursor } = read.data as { cursor?: string }
    const beyond = cursor === undefined ? undefined : readCursor(operation.id, sent, cursor)
    const outcome = await operation.run({ ...context, beyond }, read.data).catch(async (error: unknown) => {
      throw await withCurrent(problemOf(error), operation, context, inPath)
    })
    if ('rows' in outcome) return await exportRows(formatJsonLines(outcome.rows), { 'content-type': jsonLines }, actor)
    if ('text' in outcome) return tellText(outcome)
    if ('play' in outcome) {
      parts.play(exchange, outcome.play, { requestId, ip: address }, share)
      return undefined
    }
    const answer =
      'events' in outcome
        ? openStream(outcome.events, act.actor, isStillGood)
        : tellOutcome(operation, outcome, sent, site)
    return nameUnreached(answer, operation, parts)
  }

  function tellOutcome(operation: Operation, outcome: WholeOutcome, sent: object, site: Site): ApiAnswer {
    if ('items' in outcome) {
      const next = outcome.next ? formatCursor(operation.id, sent, outcome.next) : null
      const { items, away, unbilledSince: unbilled_since } = outcome
      const body = { items, next, ...(away && { away }), ...(unbilled_since && { unbilled_since }) }
      return { status: 200, headers: {}, body: formatJson(body) }
    }
    const { body, isNew, version, session } = outcome
    const headers: Record<string, string> = version === undefined ? {} : { etag: `"${version}"` }
    // Only our cookie is removed. `clear-site-data` would remove all cookies of the registrable domain.
    if (session === 'ended') return { status: 204, headers: { ...headers, 'set-cookie': formatCookie(site, '', 0) } }
    if (isNew && operation.madeAt) headers['location'] = `/api/v1${operation.madeAt}/${(body as { id: string }).id}`
    if (session) headers['set-cookie'] = formatCookie(site, session.token, (session.expiresMs - parts.nowMs()) / 1_000)
    return { status: isNew ? 201 : 200, headers, body: formatJson(body) }
  }
}

function isGuess(error: unknown): boolean {
  return error instanceof ProblemError && error.problem === 'unauthenticated' && error.isGuess
}

/** Returns the name of a caller for the audit: an operator, or the owner of a key. */
function actorOf(who: Principal | undefined): string {
  if (who === undefined) return 'nobody'
  if (who.kind === 'operator') return who.actor
  const { id, bounds } = who.key
  return bounds.person === undefined ? `key:${id}` : `person:${bounds.person}`
}

function asProblem(error: unknown, reportBug: ApiParts['reportBug']): ProblemError {
  const problem = problemOf(error)
  if (problem instanceof ProblemError) return problem
  reportBug(error as Error)
  return new ProblemError('internal', 'A bug of ours: the log has it.')
}

/** Allows only reading in the demo: no changes, events or sign-ins. @throws ProblemError */
function refuseInDemo({ method, role, id }: Operation): void {
  if (method !== 'GET' || role === 'anyone' || id === 'events')
    throw new ProblemError('forbidden', 'This is the demo, which is only read. Leave it to change something.')
}

type ShownCredential = { who: Principal | undefined; isCookie: boolean; isStillGood: () => Promise<boolean> }

/**
 * A caller without a token. The checks for requests with a cookie apply, because a page of another site may have sent
 * the request.
 */
const nobody: ShownCredential = { who: undefined, isCookie: true, isStillGood: async () => true }

/** Adds a header with the names of the servers whose part of the answer is missing. A header can contain only ASCII. */
function nameUnreached(answer: ApiAnswer, { isOfAll }: Operation, { running }: Pick<ApiParts, 'running'>): ApiAnswer {
  const names = isOfAll ? running.listUnreached() : []
  if (names.length === 0) return answer
  const named = names.join(', ').replace(/[^ -~]/g, '?')
  return { ...answer, headers: { ...answer.headers, 'x-triwire-unreached': named } }
}

type WholeOutcome = Extract<OperationResult<unknown>, { body: unknown } | { items: unknown }>

function onceOf(exchange: HttpExchange, { id, kind }: Operation, sent: object) {
  const key = exchange.header('idempotency-key')
  if (kind !== 'creates' || key === undefined) return undefined
  if (!/^[!-~]{1,255}$/.test(key))
    throw new ProblemError('invalid_request', 'An Idempotency-Key has 1 to 255 visible characters.')
  const fields = Object.entries(sent).sort(([a], [b]) => (a < b ? -1 : 1))
  return { key, asked: sha256Hex(JSON.stringify([id, fields])) }
}

/** Returns the version in `If-Match`. @throws ProblemError if an edit does not name one */
function versionOf(exchange: HttpExchange, { kind }: Operation): string | undefined {
  if (kind !== 'edits') return undefined
  const match = exchange.header('if-match')
  if (match === undefined)
    throw new ProblemError(
      'precondition_required',
      'Say in If-Match which version is edited: the ETag it was read with.',
    )
  if (match.trim() === '*') return undefined
  // The gateway sends only single strong tags. So a weak tag or a list of tags matches no version.
  return /^"([\w-]+)"$/.exec(match.trim())?.[1] ?? match
}

/** Adds the current version to the refusal of an edit that was based on an older version. */
async function withCurrent(
  problem: unknown,
  operation: Operation,
  context: Context,
  inPath: Record<string, string>,
): Promise<unknown> {
  if (!(problem instanceof ProblemError) || problem.problem !== 'precondition_failed') return problem
  const show = allOperations.find(({ path, method }) => path === operation.path && method === 'GET')
  const now = await show?.run(context, inPath)
  const headers: Record<string, string> = now && 'version' in now ? { etag: `"${now.version}"` } : {}
  return new ProblemError('precondition_failed', problem.message, {
    current: now && 'body' in now ? now.body : undefined,
    headers,
  })
}

/** Makes an answer from a page or a file. A page may contain styles, but no scripts. */
function tellText({ text, type, name }: Extract<OperationResult<unknown>, { text: string }>): ApiAnswer {
  const headers = {
    'content-type': type,
    'content-disposition': `inline; filename="${name}"`,
    'content-security-policy': `${guardHeaders['content-security-policy']}; style-src 'unsafe-inline'`,
  }
  return { status: 200, headers, body: text }
}

function csvHeaders({ id }: Operation): Record<string, string> {
  const name = id.split('.')[0]
  return { 'content-type': 'text/csv; charset=utf-8', 'content-disposition': `attachment; filename="${name}.csv"` }
}

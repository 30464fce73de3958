import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Principal } from '../accounts/books.ts'
import type { Calendar } from '../accounts/calendar.ts'
import type { Bodies, BodyShare } from '../gateway/fairness/bodies.ts'
import { pathOf } from '../http/paths.ts'
import { sha256Hex } from '../ids/digest.ts'
import { newRequestId } from '../ids/request-id.ts'
import { problemOf } from '../operations/book-words.ts'
import { formatCursor, readCursor } from '../operations/cursor.ts'
import { invalidFields, sayIssue } from '../operations/mistakes.ts'
import { allOperations } from '../operations/openapi.ts'
import type { Context, Operation, Outcome, Play, Running } from '../operations/operation.ts'
import { ProblemError } from '../operations/problem.ts'
import { digestOfCookie } from '../operations/session.ts'
import { type Answer, send, tellProblem } from './answer.ts'
import { createBusy } from './busy.ts'
import { createEventStreams } from './event-stream.ts'
import { createExports } from './exports.ts'
import { cookieName, formatCookie, isCrossSite, isOurHost, readCookie, type Site } from './guard.ts'
import { createIdentity, type IdentityParts, permit, tooMany } from './identity.ts'
import { type Matched, matchOperation, readFields } from './request.ts'

export type ApiParts = IdentityParts & {
  running: Running
  /** Logs a bug of ours. */
  reportBug(bug: Error): void
  /** Unix milliseconds. */
  nowMs(): number
  /** Whether the clock that dates entries is right (ruling Y15); undefined where nobody here judges it. */
  isClockRight?: (() => boolean) | undefined
  /** Who asks, where a proxy may stand between. */
  peerOf(peer: string, forwarded: string | undefined): string
  /** Of the reporting zone. */
  calendar: Calendar
  version: string
  /** Whom this listener answers to beside loopback names. */
  site?: Pick<Site, 'publicUrl' | 'names'>
  /** Answers as a client is answered. @param ip of the operator who asks @param share what his body holds: given back by who plays */
  play(response: ServerResponse, play: Play, asked: { requestId: string; ip: string }, share?: BodyShare): void
  /** What all bodies of the process may hold (ruling R18). */
  bodies: Pick<Bodies, 'enter'>
  /** How large a request of a client may be, in bytes. */
  bodyBytesMax(): number
}

/**
 * The admin API: what is refused is refused in this order: another name of this address (421), who it is (401, 429), what he
 * may (403), what there is (404, 405), and then what was asked (400 and the like).
 */
export function createApi(parts: ApiParts): (request: IncomingMessage, response: ServerResponse) => void {
  const { identify, failed } = createIdentity(parts)
  const openStream = createEventStreams(parts.nowMs)
  const enter = createBusy()
  const exportRows = createExports()
  return (request, response) => void handle(request, response)

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = newRequestId()
    // Who has left hears nothing.
    response.on('error', () => {})
    let answer: Answer
    const held: HeldBody = {}
    try {
      const judged = await judge(request, id, held)
      if ('play' in judged) {
        parts.play(response, judged.play, judged.asked, held.share)
        return
      }
      answer = judged
    } catch (error) {
      answer = tellProblem(asProblem(error), id)
    }
    try {
      await send(request, response, answer, id)
    } catch {
      response.destroy()
    }
    if (held.share) releaseBehind(response, held.share)
  }

  function asProblem(error: unknown): ProblemError {
    const problem = problemOf(error)
    if (problem instanceof ProblemError) return problem
    parts.reportBug(error as Error)
    return new ProblemError('internal', 'A bug of ours: the log has it.')
  }

  async function judge(request: IncomingMessage, requestId: string, held: HeldBody): Promise<Answer | Played> {
    const { headers, method = '', socket } = request
    const site: Site = { port: socket.localPort ?? 0, isSecure: 'encrypted' in socket, ...parts.site }
    if (!isOurHost(headers.host, site)) throw new ProblemError('misdirected', 'Ask by the address of this listener.')
    const matched = matchOperation(method, pathOf(request.url))
    const isOpen = matched && 'operation' in matched && matched.operation.role === 'anyone'
    const address = parts.peerOf(socket.remoteAddress ?? '', oneOf(headers['x-forwarded-for']))
    const shown = isOpen ? nobody : await identify(headers, site, address)
    const operation = permit(matched, shown.who)
    const isSafe = operation.operation.method === 'GET'
    if (!isSafe && shown.isCookie && isCrossSite(headers, site))
      throw new ProblemError('cross_site', 'This comes from a page of another site.')
    // Each that succeeds is a commit.
    const place = isOpen ? parts.ownerRates.take(address) : undefined
    if (place && !place.ok) throw tooMany('Your address asks too often.', place.retryAfterSeconds)
    const leave = enter(operation.operation, shown.who)
    try {
      return await answerOperation(request, operation, shown, { site, address, requestId, held })
    } catch (error) {
      // Signing in is showing a token too.
      if (isOpen && error instanceof ProblemError && error.problem === 'unauthenticated') throw failed(address)
      throw error
    } finally {
      leave()
    }
  }

  async function answerOperation(
    request: IncomingMessage,
    { operation, inPath }: Extract<Matched, { operation: unknown }>,
    { who, isStillGood }: Shown,
    { site, address, requestId, held }: { site: Site; address: string; requestId: string; held: HeldBody },
  ): Promise<Answer | Played> {
    const actor = who?.kind === 'operator' ? who.actor : 'nobody'
    if (operation.isLarge) held.share = parts.bodies.enter(actor)
    const sent = await readFields(request, { operation, inPath }, { bytesMax: parts.bodyBytesMax, share: held.share })
    const read = operation.input.safeParse(sent, { error: sayIssue })
    if (!read.success) throw invalidFields(read.error.issues)
    const cookie = readCookie(request.headers, cookieName(site))
    const act = {
      actor,
      address,
      once: onceOf(request, operation, sent),
      version: versionOf(request, operation),
      isClockRight: parts.isClockRight?.(),
    }
    const openBooks = async () => (await parts.books()).as(act)
    const context: Context = {
      books: needsBooks(operation) ? await openBooks() : (undefined as never),
      openBooks,
      running: parts.running,
      who,
      requestId,
      ...{ nowMs: parts.nowMs(), calendar: parts.calendar },
      version: parts.version,
      cookie: cookie === undefined ? undefined : digestOfCookie(cookie),
      lastEventId: oneOf(request.headers['last-event-id']),
    }
    if (operation.csv && /\btext\/csv\b/.test(request.headers.accept ?? ''))
      return exportRows(operation.csv(context, read.data), csvHeaders(operation))
    const { cursor } = read.data as { cursor?: string }
    const beyond = cursor === undefined ? undefined : readCursor(operation.id, sent, cursor)
    const outcome = await operation.run({ ...context, beyond }, read.data).catch(async (error: unknown) => {
      throw await withCurrent(problemOf(error), operation, context, inPath)
    })
    if ('play' in outcome) return { play: outcome.play, asked: { requestId, ip: address } }
    if ('events' in outcome) return openStream(outcome.events, act.actor, isStillGood)
    return tellOutcome(operation, outcome, sent, site)
  }

  function tellOutcome(operation: Operation, outcome: Told, sent: object, site: Site): Answer {
    if ('items' in outcome) {
      const next = outcome.next ? formatCursor(operation.id, sent, outcome.next) : null
      return { status: 200, body: { items: outcome.items, next } }
    }
    const { body, isNew, version, session } = outcome
    const headers: Record<string, string> = version === undefined ? {} : { etag: `"${version}"` }
    if (session === 'ended') {
      const gone = { 'set-cookie': formatCookie(site, '', 0), 'clear-site-data': '"cookies", "storage"' }
      return { status: 204, headers: { ...headers, ...gone } }
    }
    if (session) headers['set-cookie'] = formatCookie(site, session.token, (session.expiresMs - parts.nowMs()) / 1_000)
    return { status: isNew ? 201 : 200, headers, body }
  }
}

type Shown = { who: Principal | undefined; isCookie: boolean; isStillGood: () => Promise<boolean> }

/** What is asked by anybody. A browser may have been made to. */
const nobody: Shown = { who: undefined, isCookie: true, isStillGood: async () => true }

/** What a large body has taken of what the process may hold. */
type HeldBody = { share?: BodyShare }

/** What is told of a body is as large as it, and is there until its reader has it. */
function releaseBehind(response: ServerResponse, share: BodyShare): void {
  if (response.destroyed) share.release()
  else response.once('close', () => share.release())
}

type Told = Extract<Outcome<unknown>, { body: unknown } | { items: unknown }>

/** The gateway answers it. */
type Played = { play: Play; asked: { requestId: string; ip: string } }

/** What memory alone can tell is told though the store is silent. */
function needsBooks({ asks }: Operation): boolean {
  return asks === undefined
}

function onceOf({ headers }: IncomingMessage, { id, kind }: Operation, sent: object) {
  const key = oneOf(headers['idempotency-key'])
  if (kind !== 'creates' || key === undefined) return undefined
  if (!/^[!-~]{1,255}$/.test(key))
    throw new ProblemError('invalid_request', 'An Idempotency-Key has 1 to 255 visible characters.')
  const fields = Object.entries(sent).sort(([a], [b]) => (a < b ? -1 : 1))
  return { key, asked: sha256Hex(JSON.stringify([id, fields])) }
}

/** @throws ProblemError where an edit says nothing of what it has seen. */
function versionOf({ headers }: IncomingMessage, { kind }: Operation): string | undefined {
  if (kind !== 'edits') return undefined
  const { 'if-match': match } = headers
  if (match === undefined)
    throw new ProblemError(
      'precondition_required',
      'Say in If-Match which version is edited: the ETag it was read with.',
    )
  if (match.trim() === '*') return undefined
  // One that is weak, or several, is none that was ever told.
  return /^"([\w-]+)"$/.exec(match.trim())?.[1] ?? match
}

/** Who has edited something old is shown what is there now. */
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

function csvHeaders({ id }: Operation): Record<string, string> {
  const name = id.split('.')[0]
  return { 'content-type': 'text/csv; charset=utf-8', 'content-disposition': `attachment; filename="${name}.csv"` }
}

function oneOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value
}

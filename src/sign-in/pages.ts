import { BookError } from '../accounts/book-error.ts'
import type { Books } from '../accounts/books.ts'
import type { AdminRequest, ApiAnswer } from '../admin/answer.ts'
import type { KnownSite } from '../admin/guard.ts'
import type { SignInSettings } from '../config/config.ts'
import { problemOf } from '../operations/book-words.ts'
import { ProblemError } from '../operations/problem.ts'
import { answerAuthorize, answerDevice, answerUri, askPerson, denyProgram, onlyMethods } from './approval.ts'
import { type Attempts, baseOf, createAttempts, type Place } from './attempts.ts'
import { closeBrowserSession, openBrowserSession } from './browser-session.ts'
import type { SignInLimits } from './limits.ts'
import { addLink, redirect } from './page.ts'
import type { Provider } from './provider.ts'
import { ProviderError } from './provider-client.ts'
import { type NoteName, notePage, problemPage, signedOutPage } from './texts.ts'
import type { Tickets } from './tickets.ts'

export type SignInPagesParts = {
  settings(): SignInSettings
  provider: Provider
  tickets: Tickets
  /** Opens the books (accounts and sessions) for a person. @param address the address that the audit records */
  books(address: string): Promise<Books>
  /** The listener of the pages. A program can be approved only on the public listener. */
  place: Place
  site: KnownSite
  addressOf(request: AdminRequest): string
  limits: Pick<SignInLimits, 'guess'>
  nowMs(): number
  /** Writes an event to the log. */
  note(event: string, fields: Record<string, unknown>): void
}

type FinishedAttempt = Exclude<ReturnType<Attempts['finish']>, string>

type PageHandler = (request: AdminRequest) => Promise<ApiAnswer>

/** Makes the pages of sign-in, by path. */
export function createSignInPages(own: SignInPagesParts): ReadonlyMap<string, PageHandler> {
  const attempts = createAttempts(own.provider, own.tickets, own.place)
  const parts = { ...own, attempts }
  const pages: Record<string, (request: AdminRequest, base: string) => Promise<ApiAnswer>> = {
    'sign-in': beginSession,
    'sign-out': (request, base) => (isOf('POST', request) ? closeBrowserSession(parts, request, base) : refuse('POST')),
    'signed-out': async () => signedOutPage(),
    callback,
    ...(own.place === 'public' && {
      device: (request, base) => answerDevice(parts, request, base),
      authorize: (request, base) => answerAuthorize(parts, request, base),
    }),
  }
  return new Map(Object.entries(pages).map(([name, answer]) => [`/console/${name}`, guarded(answer)]))

  async function beginSession(request: AdminRequest, base: string): Promise<ApiAnswer> {
    if (!isOf('GET', request)) return refuse('GET')
    const { address, header } = await attempts.begin({ for: 'console' }, base)
    return redirect(address.href, header)
  }

  /** Handles the return of the browser from the provider. */
  async function callback(request: AdminRequest, base: string): Promise<ApiAnswer> {
    if (!isOf('GET', request)) return refuse('GET')
    const attempt = attempts.finish(request.exchange, request.query, base)
    if (typeof attempt === 'string') return notePage(attempt)
    const { purpose } = attempt
    const page = await answerAttempt(request, attempt).catch((error: unknown) => pageOf(error, request))
    if (purpose.for !== 'code' || page.status < 400) return page
    // The redirect to the waiting program is a link, so that the person can read this page first.
    const back = answerUri(purpose.redirectUri, base, purpose.state, { error: 'access_denied' })
    return addLink(page, back, 'Go back to your program')
  }

  /** Reads the person's identity. Codes that the provider refuses are limited, as each causes a request to it. */
  async function answerAttempt(request: AdminRequest, { purpose, read }: FinishedAttempt): Promise<ApiAnswer> {
    const place = own.limits.guess(own.addressOf(request))
    if (!place.ok) return notePage('throttled', undefined, { 'retry-after': `${place.retryAfterSeconds}` })
    const identity = await read().catch(async (error: unknown) => {
      const problem = error instanceof ProviderError ? error.problem : undefined
      if (problem !== 'refused') place.giveBack()
      if (problem === 'refused' || problem === 'invalid') await denyProgram(parts, request, purpose)
      throw error
    })
    place.giveBack()
    if (purpose.for === 'console') return openBrowserSession(parts, request, identity)
    return askPerson(parts, request, purpose, identity)
  }

  /** Serves a page only if `Host` is ours. Errors of the provider or of the books become pages. */
  function guarded(answer: (request: AdminRequest, base: string) => Promise<ApiAnswer>): PageHandler {
    return async (request) => {
      const base = baseOf(request.exchange, own.site)
      if (base === undefined) return notePage('misdirected')
      try {
        return await answer(request, base)
      } catch (error) {
        return pageOf(error, request)
      }
    }
  }

  /** Makes the page of an error. @throws the error if it is a bug of ours */
  function pageOf(error: unknown, request: AdminRequest): ApiAnswer {
    const where = { id: request.id, ip: own.addressOf(request) }
    if (error instanceof ProviderError) {
      const { problem, message } = error
      own.note('sign_in_failed', { ...where, problem, cause: message })
      return notePage(problem === 'refused' ? 'invalid' : problem)
    }
    const note = error instanceof BookError ? bookNotes[error.code] : undefined
    if (note) return notePage(note)
    const problem = problemOf(error)
    if (!(problem instanceof ProblemError)) throw error
    own.note('sign_in_failed', { ...where, problem: problem.problem, cause: problem.message })
    return problemPage(problem.status, problem.message)
  }
}

/** The page to show if the books (accounts and sessions) refuse a sign-in that a person can start again. */
const bookNotes: Readonly<Partial<Record<BookError['code'], NoteName>>> = { no_grant: 'late', grant_decided: 'used' }

function isOf(method: string, { exchange }: AdminRequest): boolean {
  return exchange.method === method
}

async function refuse(allow: string): Promise<ApiAnswer> {
  return onlyMethods(allow)
}

import { createHash } from 'node:crypto'
import type { Books } from '../accounts/books.ts'
import { operatorRoles, sessionIdleMs } from '../accounts/operators.ts'
import type { SignedIn } from '../accounts/sign-in/rows.ts'
import type { AdminRequest, ApiAnswer } from '../admin/answer.ts'
import { cookieName, formatCookie, type KnownSite, readCookie, siteOf } from '../admin/guard.ts'
import type { SignInSettings } from '../config/config.ts'
import { randomText } from '../ids.ts'
import { digestOfCookie } from '../operations/session.ts'
import { nameOf, sayUnpaid } from './approval.ts'
import { isOwnPage, type Place } from './attempts.ts'
import { redirect } from './page.ts'
import type { PersonIdentity, Provider } from './provider.ts'
import { isPaid, type RuledPerson, signInBy } from './signed-in.ts'
import { notePage, refusalPage, signedOutPage } from './texts.ts'
import type { Tickets } from './tickets.ts'

/* Sign-in to a console and sign-out, on both listeners. The browser's session is a cookie. */

type BrowserSessionParts = {
  settings(): SignInSettings
  provider: Provider
  tickets: Tickets
  books(address: string): Promise<Books>
  addressOf(request: AdminRequest): string
  place: Place
  site: KnownSite
  nowMs(): number
}

/** The lifetimes of a browser's session. All three equal the lifetime of the cookie. */
const lives = { accessMs: sessionIdleMs, idleMs: sessionIdleMs, absoluteMs: sessionIdleMs }

/**
 * Gives a session to the browser of a person who has signed in. The session is always new, which prevents session
 * fixation.
 */
export async function openBrowserSession(
  parts: BrowserSessionParts,
  request: AdminRequest,
  identity: PersonIdentity,
): Promise<ApiAnswer> {
  const { tickets, place } = parts
  const person = signInBy(parts.settings(), identity, tickets)
  const who = nameOf(identity)
  if (typeof person === 'string') return refusalPage(person, who)
  const address = parts.addressOf(request)
  const books = await parts.books(address)
  const whose = place === 'admin' ? await openOperator(books, person) : await openOwner(books, person, address)
  if (typeof whose === 'string') return refusalPage(whose, who)
  const sealed = identity.idToken && tickets.seal('id_token', identity.idToken)
  const { token, session } = await books.signInPerson({ ...whose, sealed })
  const lifeSeconds = (session.expiresMs - parts.nowMs()) / 1_000
  const site = siteOf(request.exchange, parts.site)
  // The location is relative, because a proxy may add a path that is not known here.
  return redirect('./?signed-in=1', { 'set-cookie': formatCookie(site, token, lifeSeconds) })
}

async function openOperator(books: Books, person: RuledPerson) {
  const role = operatorRoles.find((one) => one === person.role)
  if (!role)
    return `Your role (${person.role}) is not a role of operators. Your own pages are at the address that your programs use.`
  return { role, personId: (await books.identifyOperator(person)).personId }
}

/** Signs in the owner of a key through a grant, as a program does. This makes a key, whose secret is discarded. */
async function openOwner(books: Books, person: RuledPerson, address: string) {
  if (!isPaid(person)) return sayUnpaid(person)
  const verifier = randomText(43)
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const redirectUri = 'console'
  const { id, code } = await books.beginGrant({ kind: 'code', agent: 'console', address, challenge, redirectUri })
  await books.decideGrant(id, { ...person, sealed: undefined } satisfies SignedIn)
  const issued = await books.redeemCode(code, { verifier, redirectUri }, lives)
  if ('error' in issued) return 'The sign-in took too long. Start again.'
  const { personId, keyId } = issued.session
  return { role: person.role === 'lead' ? ('lead' as const) : ('member' as const), personId, keyId }
}

/** Ends the session at the gateway, and offers to end the session at the provider too. */
export async function closeBrowserSession(
  parts: BrowserSessionParts,
  request: AdminRequest,
  base: string,
): Promise<ApiAnswer> {
  const { exchange } = request
  if (!isOwnPage(exchange, base)) return notePage('cross_site')
  const site = siteOf(exchange, parts.site)
  const cookie = readCookie(exchange, cookieName(site))
  const digest = cookie === undefined ? undefined : digestOfCookie(cookie)
  const ended = digest === undefined ? undefined : await (await parts.books(parts.addressOf(request))).signOut(digest)
  const idToken = parts.tickets.open<string>('id_token', ended?.sealed)
  // The session at the gateway has ended even if the provider does not respond.
  const there =
    idToken === undefined
      ? undefined
      : await parts.provider.endSessionUrl(idToken, `${base}/console/signed-out`).catch(() => undefined)
  return signedOutPage(there?.href, { 'set-cookie': formatCookie(site, '', 0) })
}

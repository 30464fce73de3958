import type { Books } from '../accounts/books.ts'
import type { AdminRequest, ApiAnswer } from '../admin/answer.ts'
import type { SignInSettings } from '../config/config.ts'
import { type Attempts, attemptMs, bindBrowser, isOwnPage, isSameBrowser, type Purpose } from './attempts.ts'
import type { SignInLimits } from './limits.ts'
import { redirect } from './page.ts'
import type { PersonIdentity } from './provider.ts'
import { isPaid, type RuledPerson, signInBy } from './signed-in.ts'
import { approvePage, askPage, codePage, type NoteName, notePage, refusalPage } from './texts.ts'
import type { Tickets } from './tickets.ts'

type ApprovalParts = {
  settings(): SignInSettings
  tickets: Tickets
  attempts: Attempts
  /**
   * Opens the books (accounts and sessions).
   * @param address the address of the person's browser, for the audit trail
   */
  books(address: string): Promise<Books>
  addressOf(request: AdminRequest): string
  /** Counts the invalid codes of each address. */
  limits: Pick<SignInLimits, 'guess'>
  nowMs(): number
  note(event: string, fields: Record<string, unknown>): void
}

/** The purpose of a sign-in that a program has begun. */
type ProgramPurpose = Exclude<Purpose, { for: 'console' }>

/** A person who has signed in and must still approve or deny. @property browser the digest of the browser's cookie */
type HeldPerson = { browser: string; identity: PersonIdentity; userCode?: string; state?: string }

/** The largest form, in bytes. A form has a few short fields and a ticket (sealed data of ours). */
const formBytesMax = 16_384

const userCodeForm = /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/

/*
 * The pages on which a person allows a program to use the gateway in their name. The program gets a code (RFC 8628), or
 * a redirect on its own machine (RFC 8252). Before that, a page shows who will be signed in. The person must click
 * there, in the browser in which they signed in.
 */

/** Serves `/console/device`: the page for entering a code, and the decisions that forms send. */
export async function answerDevice(parts: ApprovalParts, request: AdminRequest, base: string): Promise<ApiAnswer> {
  const { exchange, query } = request
  if (exchange.method === 'POST') return decide(parts, request, base)
  if (exchange.method !== 'GET' && exchange.method !== 'HEAD') return onlyMethods('GET, HEAD, POST')
  const asked = new URLSearchParams(query)
  const found = await findByCode(parts, request, asked.get('user_code'))
  if ('status' in found) return found
  const { grant, code } = found
  // A link from another site may lead here, so the person sees the code before the sign-in begins.
  const isAnothers = /^(cross|same)-site$/.test(exchange.header('sec-fetch-site') ?? '')
  if (asked.get('continue') !== 'yes' || isAnothers)
    return askPage({ ...grant, code }, parts.nowMs(), new URL(parts.settings().issuer).origin)
  const { address, header } = await parts.attempts.begin({ for: 'device', grantId: grant.id, userCode: code }, base)
  return redirect(address.href, header)
}

/** Serves `/console/authorize`, with which a program on the person's machine begins a sign-in. */
export async function answerAuthorize(parts: ApprovalParts, request: AdminRequest, base: string): Promise<ApiAnswer> {
  if (request.exchange.method !== 'GET') return onlyMethods('GET')
  const read = readAuthorization(new URLSearchParams(request.query))
  if ('note' in read) return notePage(read.note)
  if ('error' in read) return redirect(answerUri(read.redirectUri, base, read.state, { error: read.error }))
  const { address, header } = await parts.attempts.begin(read, base)
  return redirect(address.href, header)
}

/** Denies a program's code if the provider has refused the person, so that the program stops waiting. */
export async function denyProgram(parts: ApprovalParts, request: AdminRequest, purpose: Purpose): Promise<void> {
  if (purpose.for !== 'device') return
  const books = await parts.books(parts.addressOf(request))
  await books.decideGrant(purpose.grantId, 'denied')
}

/** Asks a person who has signed in for approval. The program's request (the grant) keeps their identity, sealed. */
export async function askPerson(
  parts: ApprovalParts,
  request: AdminRequest,
  purpose: ProgramPurpose,
  identity: PersonIdentity,
): Promise<ApiAnswer> {
  const { tickets, nowMs } = parts
  const signedIn = signInBy(parts.settings(), identity, tickets)
  const who = nameOf(identity)
  if (typeof signedIn === 'string') return refusalPage(signedIn, who)
  if (!isPaid(signedIn)) return refusalPage(sayUnpaid(signedIn), who)
  const { account } = signedIn
  const address = parts.addressOf(request)
  const books = await parts.books(address)
  const { browser, header } = bindBrowser()
  const held: HeldPerson = { browser, identity: { ...identity, idToken: undefined } }
  const hidden: Record<string, string> = {}
  if (purpose.for === 'device') {
    hidden['grant'] = purpose.grantId
    held.userCode = purpose.userCode
  } else {
    const { challenge, redirectUri, agent } = purpose
    const { id, code } = await books.beginGrant({ kind: 'code', agent, address, challenge, redirectUri })
    hidden['grant'] = id
    hidden['code'] = tickets.seal('code', code, attemptMs)
    held.state = purpose.state
  }
  const grant = await books.findGrant({ id: hidden['grant'] })
  if (grant?.state !== 'pending') return notePage('used')
  await books.holdGrant(grant.id, tickets.seal('held', held, attemptMs))
  const formTargets = purpose.for === 'code' ? [targetOf(purpose.redirectUri)] : []
  const approval = { who, account, hidden, formTargets }
  return approvePage({ ...grant, code: held.userCode }, nowMs(), approval, header)
}

/** Handles a click on Approve or on Deny. */
async function decide(parts: ApprovalParts, request: AdminRequest, base: string): Promise<ApiAnswer> {
  const { exchange } = request
  const { tickets } = parts
  if (!isOwnPage(exchange, base)) return notePage('cross_site')
  const form = new URLSearchParams((await request.readBody(formBytesMax)).toString('utf8'))
  const action = form.get('action')
  if (action !== 'approve' && action !== 'deny') return notePage('form')
  const id = form.get('grant')
  if (id === null) return denyByCode(parts, request, action, form.get('user_code'))
  const books = await parts.books(parts.addressOf(request))
  const grant = await books.findGrant({ id })
  const held = tickets.open<HeldPerson>('held', grant?.sealed)
  if (grant && grant.state !== 'pending') return notePage('used')
  if (!grant || !held) return notePage('late')
  if (!isSameBrowser(exchange, held.browser)) return notePage('other_browser')
  // The operator's rules for sign-ins are applied again, because they may have changed since the page was shown.
  const signedIn = signInBy(parts.settings(), held.identity, tickets)
  if (typeof signedIn === 'string') return refusalPage(signedIn, nameOf(held.identity))
  if (!isPaid(signedIn)) return refusalPage(sayUnpaid(signedIn), nameOf(held.identity))
  const code = tickets.open<string>('code', form.get('code'))
  if (grant.kind === 'code' && code === undefined) return notePage('late')
  await books.decideGrant(id, action === 'approve' ? signedIn : 'denied')
  if (code === undefined || grant.redirectUri === undefined)
    return notePage(action === 'approve' ? 'approved' : 'denied')
  const outcome: Record<string, string> = action === 'approve' ? { code } : { error: 'access_denied' }
  return redirect(answerUri(grant.redirectUri, base, held.state ?? '', outcome))
}

export function sayUnpaid({ role }: RuledPerson): string {
  return `Your role (${role}) opens the operators' console, and has no account that pays for requests.`
}

/** Denies a code for a person who has not signed in. Such a person cannot approve a code. */
async function denyByCode(parts: ApprovalParts, request: AdminRequest, action: string, typed: string | null) {
  if (action === 'approve') return notePage('form')
  const found = await findByCode(parts, request, typed)
  if ('status' in found) return found
  const books = await parts.books(parts.addressOf(request))
  await books.decideGrant(found.grant.id, 'denied')
  return notePage('denied')
}

/**
 * Finds the grant (a program's request) by a typed code. @returns the grant with the formatted code, or the page to
 * show
 */
async function findByCode(parts: ApprovalParts, request: AdminRequest, typed: string | null) {
  const address = parts.addressOf(request)
  if (typed === null || typed.trim() === '') return codePage()
  const place = parts.limits.guess(address)
  if (!place.ok) return notePage('throttled', undefined, { 'retry-after': `${place.retryAfterSeconds}` })
  const letters = typed.toUpperCase().replace(/[^A-Z0-9]/g, '')
  const find = async () =>
    userCodeForm.test(letters) ? await (await parts.books(address)).findGrant(letters) : undefined
  const grant = await find().catch((error: unknown) => {
    // The store did not respond, so this attempt does not count as a wrong code.
    place.giveBack()
    throw error
  })
  if (!grant) {
    parts.note('sign_in_code_wrong', { id: request.id, ip: address })
    return codePage(typed.slice(0, 20))
  }
  place.giveBack()
  if (grant.state !== 'pending') return notePage('used')
  return { grant, code: `${letters.slice(0, 4)}-${letters.slice(4)}` }
}

export function onlyMethods(allow: string): ApiAnswer {
  const page = notePage('form')
  return { ...page, status: 405, headers: { ...page.headers, allow } }
}

/** Reads the authorization request of a program on the person's machine (RFC 6749 §4.1.1, RFC 7636, RFC 8252 §7.3). */
function readAuthorization(
  asked: URLSearchParams,
): Extract<Purpose, { for: 'code' }> | { error: string; state: string; redirectUri: string } | { note: NoteName } {
  const one = (name: string) => (asked.getAll(name).length > 1 ? '' : (asked.get(name) ?? ''))
  const redirectUri = one('redirect_uri')
  if (!isLoopbackUri(redirectUri)) return { note: 'redirect' }
  const [state, challenge, agent] = [one('state'), one('code_challenge'), one('surface')]
  const isWhole = /^[\w-]{43}$/.test(challenge) && one('code_challenge_method') === 'S256' && state.length <= 500
  if (!isWhole) return { error: 'invalid_request', state: state.slice(0, 500), redirectUri }
  if (one('response_type') !== 'code') return { error: 'unsupported_response_type', state, redirectUri }
  return { for: 'code', redirectUri, challenge, state, agent: /^[\w.-]{1,40}$/.test(agent) ? agent : undefined }
}

/** Whether a URL is on the browser's machine. Host names are refused, as they may resolve to another machine. */
function isLoopbackUri(text: string): boolean {
  return (
    text.length <= 300 && /^http:\/\/(127\.0\.0\.1|\[::1\]):[1-9]\d{0,4}\/[\w./-]*$/.test(text) && URL.canParse(text)
  )
}

/**
 * Returns the source for `form-action` in the content security policy. An IPv6 address is not allowed there (CSP 3
 * §2.3.1), so only its scheme is returned.
 */
function targetOf(redirectUri: string): string {
  const { origin, hostname } = new URL(redirectUri)
  return hostname.startsWith('[') ? 'http:' : origin
}

/** Returns the redirect URI of a program, with the outcome added (RFC 6749 §4.1.2, RFC 9207). */
export function answerUri(redirectUri: string, iss: string, state: string, outcome: Record<string, string>): string {
  return `${redirectUri}?${new URLSearchParams({ ...outcome, state, iss })}`
}

export function nameOf({ name, email, subject }: PersonIdentity): string {
  if (name !== undefined && email !== undefined) return `${name} (${email})`
  return name ?? email ?? subject
}

import { isOurHost, type KnownSite, readCookie, siteOf } from '../admin/guard.ts'
import type { HttpExchange } from '../http/http-exchange.ts'
import { randomText, sha256Hex } from '../ids.ts'
import type { PersonIdentity, Provider } from './provider.ts'
import type { Tickets } from './tickets.ts'

/*
 * Attempts to sign in at the provider. They are not stored. Each attempt is sealed in `state`, which the provider
 * returns. The attempt contains the digest of a cookie, so that only the browser that began the attempt can complete
 * it.
 */

/** The purpose of a sign-in: to approve a program, or to open the console. */
export type Purpose =
  | { for: 'device'; grantId: string; userCode: string }
  | { for: 'code'; redirectUri: string; challenge: string; state: string; agent: string | undefined }
  | { for: 'console' }

/** The listener on which an attempt to sign in began. Operators use `admin`, and clients use `public`. */
export type Place = 'admin' | 'public'

type AttemptTicket = { purpose: Purpose; place: Place; browser: string; nonce: string; verifier: string }

export type Attempts = ReturnType<typeof createAttempts>

/** How long an attempt to sign in is valid, in ms. */
export const attemptMs = 600_000

/** Because of `__Host-`, other hosts of the domain cannot set this cookie. It needs TLS, except on loopback. */
const cookie = '__Host-triwire-sign-in'

/** Makes the functions that begin and finish a sign-in. @param place the listener that the person signs in at */
export function createAttempts(provider: Provider, tickets: Tickets, place: Place) {
  return { begin, finish }

  /** Begins an attempt. @returns the provider's URL, and the header with the browser's cookie @throws ProviderError */
  async function begin(purpose: Purpose, base: string) {
    const { browser, header } = bindBrowser()
    const [nonce, verifier] = [randomText(43), randomText(64)]
    const ticket: AttemptTicket = { purpose, place, browser, nonce, verifier }
    const state = tickets.seal('attempt', ticket, attemptMs)
    return { address: await provider.begin({ state, nonce, verifier }, callbackOf(base)), header }
  }

  /**
   * Checks the response that the browser brings from the provider. A `state` that is not ours counts as `late`.
   * @returns the purpose, and a function that reads the identity or throws ProviderError; or the name of an error page
   */
  function finish(exchange: HttpExchange, query: string, base: string) {
    const parameters = new URLSearchParams(query)
    const state = parameters.get('state') ?? ''
    const ticket = tickets.open<AttemptTicket>('attempt', state)
    if (ticket?.place !== place) return 'late' as const
    if (!isSameBrowser(exchange, ticket.browser)) return 'other_browser' as const
    const { purpose, nonce, verifier } = ticket
    const read = (): Promise<PersonIdentity> =>
      provider.finish({ state, nonce, verifier }, new URL(`${callbackOf(base)}?${parameters}`))
    return { purpose, read }
  }
}

function callbackOf(base: string): string {
  return `${base}/console/callback`
}

/** Makes a random mark for the browser. @returns the mark's digest, and the header that sets the mark as a cookie */
export function bindBrowser(): { browser: string; header: Record<string, string> } {
  const mark = randomText(43)
  const value = `${cookie}=${mark}; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=${attemptMs / 1_000}`
  return { browser: sha256Hex(mark), header: { 'set-cookie': value } }
}

/** Whether a request comes from the browser that has this mark in its cookie. @param browser the digest of the mark */
export function isSameBrowser(exchange: HttpExchange, browser: string): boolean {
  return sha256Hex(readCookie(exchange, cookie) ?? '') === browser
}

/** Returns the listener's URL as a browser sees it, without a final slash. Undefined if `Host` names another site. */
export function baseOf(exchange: HttpExchange, known: KnownSite): string | undefined {
  const site = siteOf(exchange, known)
  const host = exchange.header('host')
  if (!isOurHost(host, site)) return undefined
  if (site.publicUrl) return site.publicUrl.href.replace(/\/$/, '')
  return `${site.isSecure ? 'https' : 'http'}://${host}`
}

/** Whether a request that changes something comes from one of our pages (CSRF). False if the browser does not say. */
export function isOwnPage(exchange: HttpExchange, base: string): boolean {
  const site = exchange.header('sec-fetch-site')
  return site === undefined
    ? exchange.header('origin') === new URL(base).origin
    : site === 'same-origin' || site === 'none'
}

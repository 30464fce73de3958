import { isOurHost, type KnownSite, readCookie, siteOf } from '../admin/guard.ts'
import type { HttpExchange } from '../http/http-exchange.ts'
import { randomText } from '../ids/base62.ts'
import { sha256Hex } from '../ids/digest.ts'
import type { PersonIdentity, Provider } from './provider.ts'
import type { Tickets } from './tickets.ts'

/*
 * Attempts to sign in at the provider. Nothing of one is stored: all of it is sealed in `state`, which the provider brings back. The
 * digest of a cookie is in there too, so that an answer is only taken from the browser that began.
 */

/** The reason of an attempt. */
export type Purpose =
  | { for: 'device'; grantId: string; userCode: string }
  | { for: 'code'; redirectUri: string; challenge: string; state: string; agent: string | undefined }
  | { for: 'console' }

/** The listener on which an attempt began. */
export type Place = 'admin' | 'public'

type AttemptTicket = { purpose: Purpose; place: Place; browser: string; nonce: string; verifier: string }

export type Attempts = ReturnType<typeof createAttempts>

/** How long a person has to sign in, in ms. */
export const attemptMs = 600_000

/** Hosts of the same domain cannot set it, and it needs TLS everywhere but on loopback. */
const cookie = '__Host-triwire-sign-in'

/** @param place the listener on which they begin and end */
export function createAttempts(provider: Provider, tickets: Tickets, place: Place) {
  return { begin, finish }

  /** @returns the address at the provider, and the header that binds the attempt to the browser. @throws ProviderError */
  async function begin(purpose: Purpose, base: string) {
    const { browser, header } = bindBrowser()
    const [nonce, verifier] = [randomText(43), randomText(64)]
    const ticket: AttemptTicket = { purpose, place, browser, nonce, verifier }
    const state = tickets.seal('attempt', ticket, attemptMs)
    return { address: await provider.begin({ state, nonce, verifier }, callbackOf(base)), header }
  }

  /**
   * Takes the answer that the browser brings. `late` is also any `state` that is not ours.
   * @returns the purpose, and a function that reads the provider's answer. That one throws ProviderError
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

/** Makes a mark for the browser. @returns the mark's digest, and the header that sets it */
export function bindBrowser(): { browser: string; header: Record<string, string> } {
  const mark = randomText(43)
  const value = `${cookie}=${mark}; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=${attemptMs / 1_000}`
  return { browser: sha256Hex(mark), header: { 'set-cookie': value } }
}

/** @param browser the digest of a mark */
export function isSameBrowser(exchange: HttpExchange, browser: string): boolean {
  return sha256Hex(readCookie(exchange, cookie) ?? '') === browser
}

/** The address under which a browser reaches the listener, without a slash at the end; undefined if `Host` is not ours. */
export function baseOf(exchange: HttpExchange, known: KnownSite): string | undefined {
  const site = siteOf(exchange, known)
  const host = exchange.header('host')
  if (!isOurHost(host, site)) return undefined
  if (site.publicUrl) return site.publicUrl.href.replace(/\/$/, '')
  return `${site.isSecure ? 'https' : 'http'}://${host}`
}

/** Whether a changing request comes from a page of ours (CSRF). A browser that says nothing of it is refused. */
export function isOwnPage(exchange: HttpExchange, base: string): boolean {
  const site = exchange.header('sec-fetch-site')
  return site === undefined
    ? exchange.header('origin') === new URL(base).origin
    : site === 'same-origin' || site === 'none'
}

import { isIP } from 'node:net'
import type { HttpExchange } from '../http/http-exchange.ts'

/*
 * Protects against requests that a page of another site makes a browser send. The page may post a form to this
 * listener, and the browser adds the user's cookie. Or the name of the other site may resolve to this address, so that
 * the browser lets the page read our answers.
 */

/** The facts about a listener that the configuration gives. */
export type KnownSite = {
  /** The URL under which people reach the listener through a proxy. */
  publicUrl?: URL | undefined
  /**
   * True for the clients' listener. Its cookie has its own name, because browsers send a cookie to all ports of a host.
   */
  isForOwners?: boolean
  /** Whether people can sign in to this listener at an identity provider (ruling Y19). */
  hasSignIn?: boolean
  /**
   * Whether the certificate covers a host. So a host name of an attacker that resolves to our address is recognized.
   */
  names?: ((host: string) => boolean) | undefined
}

/** The address at which a request reaches a listener. @property port the port of the connection */
export type Site = KnownSite & { port: number; isSecure: boolean }

/** Returns the known facts of a listener, with the port of the request's connection, and whether it uses TLS. */
export function siteOf({ socket }: HttpExchange, known: KnownSite = {}): Site {
  return { ...known, port: socket.localPort ?? 0, isSecure: 'encrypted' in socket }
}

/** Whether `Host` names this listener: the public URL, or a loopback or certificate name with the listener's port. */
export function isOurHost(host: string | undefined, { port, isSecure, publicUrl, names }: Site): boolean {
  const [, bracketed, plain, said] = /^(?:\[([\da-f:.]+)\]|([\w.-]+))(?::(\d{1,5}))?$/i.exec(host ?? '') ?? []
  const name = (bracketed ?? plain)?.toLowerCase()
  if (name === undefined) return false
  if (publicUrl && [publicUrl.host, withPort(publicUrl)].includes(host!.toLowerCase())) return true
  const isLoopback = name === 'localhost' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'))
  const isNamed = isLoopback || (isSecure && names?.(name) === true)
  return isNamed && Number(said ?? (isSecure ? 443 : 80)) === port
}

/** Returns the host of a URL with its port, which some proxies write into `Host` although it is the usual one. */
function withPort({ protocol, hostname, port }: URL): string {
  return `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`
}

/**
 * Whether a request that changes something comes from another site's page. Only browsers send the headers that show
 * this.
 */
export function isCrossSite(request: HttpExchange, { isSecure, publicUrl }: Site): boolean {
  const site = request.header('sec-fetch-site')
  if (site !== undefined) return site !== 'same-origin'
  const origin = request.header('origin')
  if (origin === undefined) return false
  return origin !== `${isSecure ? 'https' : 'http'}://${request.header('host')}` && origin !== publicUrl?.origin
}

/**
 * Returns the name of the cookie. Other hosts of the domain cannot set a cookie whose name begins with `__Host-`.
 * Browsers accept that prefix only over TLS or on loopback.
 */
export function cookieName({ isSecure, publicUrl, isForOwners }: Site): string {
  if (isForOwners) return '__Host-triwire-own'
  return isSecure || publicUrl?.protocol === 'https:' ? '__Host-triwire' : 'triwire'
}

export function readCookie({ fields }: HttpExchange, name: string): string | undefined {
  for (const part of fields.all('cookie').join(';').split(';')) {
    const at = part.indexOf('=')
    if (part.slice(0, at).trim() === name) return part.slice(at + 1).trim()
  }
  return undefined
}

/** Formats a `set-cookie` value. @param maxAgeSeconds 0 removes the cookie */
export function formatCookie(site: Site, value: string, maxAgeSeconds: number): string {
  const name = cookieName(site)
  const secure = name.startsWith('__Host-') ? '; Secure' : ''
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${Math.max(0, Math.floor(maxAgeSeconds))}${secure}`
}

/** Headers of every answer of the API. An answer is not a page, and must not be cached or framed. */
export const guardHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const

import type { IncomingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'

/*
 * What a browser can be made to do by a page of somebody else. No token is asked here: a page that gives its own name this
 * address, or sends a form, has the cookies of whoever looks at it.
 */

/** Where people reach the admin listener. */
export type Site = {
  /** The port that was asked. */
  port: number
  isSecure: boolean
  /** Behind a proxy. */
  publicUrl?: URL | undefined
  /** Whether its certificate is for a name or address: who gives his own name this address has none for it. */
  names?: ((host: string) => boolean) | undefined
}

/**
 * Whether `Host` names this listener: a loopback name or one of its certificate, with its port, or where the operator says
 * that people reach it.
 */
export function isOurHost(host: string | undefined, { port, isSecure, publicUrl, names }: Site): boolean {
  const [, bracketed, plain, said] = /^(?:\[([\da-f:.]+)\]|([\w.-]+))(?::(\d{1,5}))?$/i.exec(host ?? '') ?? []
  const name = (bracketed ?? plain)?.toLowerCase()
  if (name === undefined) return false
  if (publicUrl && [publicUrl.host, `${publicUrl.hostname}:${publicUrl.port || '443'}`].includes(host!.toLowerCase()))
    return true
  const isLoopback = name === 'localhost' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'))
  const isNamed = isLoopback || (isSecure && names?.(name) === true)
  return isNamed && Number(said ?? (isSecure ? 443 : 80)) === port
}

/** Whether a request that changes something comes from a page of another site. What is no browser says neither. */
export function isCrossSite(headers: IncomingHttpHeaders, { isSecure, publicUrl }: Site): boolean {
  const { 'sec-fetch-site': site, origin, host } = headers
  if (site !== undefined) return site !== 'same-origin'
  if (origin === undefined) return false
  return origin !== `${isSecure ? 'https' : 'http'}://${host}` && origin !== publicUrl?.origin
}

/** `__Host-` wants TLS: no other name of the host can set it then. */
export function cookieName({ isSecure, publicUrl }: Site): string {
  return isSecure || publicUrl?.protocol === 'https:' ? '__Host-triwire' : 'triwire'
}

export function readCookie({ cookie = '' }: IncomingHttpHeaders, name: string): string | undefined {
  for (const part of cookie.split(';')) {
    const at = part.indexOf('=')
    if (part.slice(0, at).trim() === name) return part.slice(at + 1).trim()
  }
  return undefined
}

/** @param maxAgeSeconds 0 takes it away. */
export function formatCookie(site: Site, value: string, maxAgeSeconds: number): string {
  const name = cookieName(site)
  const secure = name.startsWith('__Host-') ? '; Secure' : ''
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${Math.max(0, Math.floor(maxAgeSeconds))}${secure}`
}

/** Of every answer: nothing of it is a page, is kept, or may be framed. */
export const guardHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const

import type { Address } from './values.ts'

/*
 * The address at which clients reach the gateway: `api_url`, or the listening address if `api_url` is not set (ruling
 * Y19).
 */

/** Returns what to change if clients cannot use a URL, or if it cannot be written into all formats of settings. */
export function clientUrlMistake(text: string): string | undefined {
  const url = URL.parse(text)
  const isWeb = url && ['http:', 'https:'].includes(url.protocol) && url.hostname !== ''
  if (!isWeb || url.username !== '' || url.password !== '' || /[?#'"`\\\s$]/.test(text))
    return 'must be the address of a gateway, such as https://gateway.example or http://10.0.0.7:8080'
  if (['0.0.0.0', '[::]'].includes(url.hostname)) return 'stands for all addresses of a machine: name one of its hosts'
  return undefined
}

/** Returns the origin and path without a final `/v1`. If a program needs `/v1`, its settings add it. */
export function readClientUrl(text: string): string {
  const { origin, pathname } = new URL(text)
  return origin + pathname.replace(/\/+$/, '').replace(/\/v1$/, '').replace(/\/+$/, '')
}

type ClientUrlChoice = { apiUrl: string | undefined; listen: Address; tls: object | undefined }

/**
 * Returns the address for clients, and the setting that it comes from. Without `api_url` it is the listening address,
 * which may work only on this machine.
 */
export function findClientUrl({ apiUrl, listen, tls }: ClientUrlChoice) {
  if (apiUrl !== undefined) return { url: apiUrl, from: 'api_url' as const }
  return { url: originOf(listen, tls ? 'https' : 'http'), from: 'listen' as const }
}

/** Returns the origin for clients on this machine. A listener on all addresses gets the loopback address. */
export function originOf({ host, port }: Address, scheme: 'http' | 'https' = 'http'): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `${scheme}://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}

import { SignInFault } from './fault.ts'

/**
 * Reads a gateway's address as people type it. A host without a scheme gets `https`. A final slash or `/v1` is removed.
 * @throws SignInFault for an invalid address, and for `http` to another machine, because tokens would be readable on
 * the network
 */
export function readGatewayUrl(text: string): string {
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`)
  const isWeb = url !== null && /^https?:$/.test(url.protocol) && url.hostname !== ''
  if (!isWeb || url.username !== '' || url.password !== '' || /[?#'"`\\\s$]/.test(text))
    throw new SignInFault(3, 'the address of a gateway is written like https://gateway.example')
  if (!isSafe(url)) throw new SignInFault(3, `${url.origin} must be https: only this machine itself is reached by http`)
  return url.origin + url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '').replace(/\/+$/, '')
}

/** Whether tokens may be sent to a URL: over TLS, or to this machine. */
export function isSafe({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackName(hostname))
}

/** Whether the host of a parsed URL is this machine. Parsing writes IPv4 as four numbers, and IPv6 in brackets. */
function isLoopbackName(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127(?:\.\d+){3}$/.test(hostname)
  )
}

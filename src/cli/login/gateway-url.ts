import { SignInFault } from './fault.ts'

/**
 * Reads the address of a gateway as people type it: a host alone means `https`, and a final slash or `/v1` is left out. A path
 * prefix stays.
 * @throws SignInFault for `http` to another machine, over which everybody on the way could read the tokens, and for what is no address
 */
export function readGatewayUrl(text: string): string {
  const url = URL.parse(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`)
  const isWeb = url !== null && /^https?:$/.test(url.protocol) && url.hostname !== ''
  if (!isWeb || url.username !== '' || url.password !== '' || /[?#'"`\\\s$]/.test(text))
    throw new SignInFault(3, 'the address of a gateway is written like https://gateway.example')
  if (!isSafe(url)) throw new SignInFault(3, `${url.origin} must be https: only this machine itself is reached by http`)
  return url.origin + url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '').replace(/\/+$/, '')
}

/** Whether tokens may be sent there: over TLS, or on this machine. */
export function isSafe({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackName(hostname))
}

/** Whether a host of a URL is this machine: there an IPv4 address has its four numbers, and an IPv6 one its brackets. */
export function isLoopbackName(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127(?:\.\d+){3}$/.test(hostname)
  )
}

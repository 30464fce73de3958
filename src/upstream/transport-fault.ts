import type { TransportFault } from './upstreams.ts'

/** What is missing, and not about TLS, is `upstream_protocol`. Codes are the system's, Node's, and undici's. */
const causeOfCode = new Map<string, TransportFault['cause']>([
  ['ECONNREFUSED', 'upstream_connect'],
  ['EADDRNOTAVAIL', 'upstream_connect'],
  ['UND_ERR_CONNECT_TIMEOUT', 'upstream_connect'],
  ['ETIMEDOUT', 'upstream_silent'],
  ['EHOSTUNREACH', 'upstream_silent'],
  ['ENETUNREACH', 'upstream_silent'],
  ['ENOTFOUND', 'upstream_dns'],
  ['EAI_AGAIN', 'upstream_dns'],
  ['ECONNRESET', 'upstream_reset'],
  ['EPIPE', 'upstream_reset'],
  ['UND_ERR_SOCKET', 'upstream_reset'],
  ['EMFILE', 'no_descriptors'],
  ['ENFILE', 'no_descriptors'],
])

/**
 * An upstream that closes a connection while a request is on its way shows that at once, in ms. One that does so later has begun to
 * work on it, and whoever asked it again could pay twice (faults F-U5, F-U7).
 */
export const raceMs = 2_000

/**
 * Why a connection that stood has ended.
 * @param unheardMs how long ago the request went out on a connection that had brought an earlier answer and nothing of this one
 *   (ruling U1); undefined on any other
 */
export function judgeTransport(error: Error, unheardMs?: number): TransportFault {
  const { code = '' } = error as NodeJS.ErrnoException
  const cause = causeOfCode.get(code) ?? (isTls(code, error) ? 'upstream_tls' : 'upstream_protocol')
  return {
    cause,
    isReuseRace: cause === 'upstream_reset' && unheardMs !== undefined && unheardMs < raceMs,
    ...(cause === 'upstream_tls' && { reason: code }),
  }
}

/** Why a connection did not come about: where the code does not say so, what was being done does (ruling U1). */
export function judgeDial(error: Error, isSecured: boolean): TransportFault {
  const fault = judgeTransport(error)
  if (fault.cause === 'upstream_silent') return { ...fault, cause: 'upstream_connect' }
  if (fault.cause !== 'upstream_protocol') return fault
  const { syscall, code = '' } = error as NodeJS.ErrnoException
  if (syscall === 'getaddrinfo') return { ...fault, cause: 'upstream_dns' }
  if (syscall === 'connect' || !isSecured) return { ...fault, cause: 'upstream_connect' }
  return { ...fault, cause: 'upstream_tls', reason: code }
}

function isTls(code: string, error: Error): boolean {
  return (
    code.startsWith('ERR_TLS') ||
    code.startsWith('ERR_SSL') ||
    code.includes('CERT') ||
    /certificate/i.test(error.message)
  )
}

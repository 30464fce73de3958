import { ProxyRefusal } from './dial.ts'
import type { TransportFault } from './target.ts'

/**
 * Causes by the error codes of the system and of Node. Any other code is `upstream_protocol`, unless it is about TLS.
 */
const causeOfCode = new Map<string, TransportFault['cause']>([
  ['ECONNREFUSED', 'upstream_connect'],
  ['EADDRNOTAVAIL', 'upstream_connect'],
  ['ETIMEDOUT', 'upstream_silent'],
  ['EHOSTUNREACH', 'upstream_silent'],
  ['ENETUNREACH', 'upstream_silent'],
  ['ENOTFOUND', 'upstream_dns'],
  ['EAI_AGAIN', 'upstream_dns'],
  ['ECONNRESET', 'upstream_reset'],
  ['EPIPE', 'upstream_reset'],
  ['EMFILE', 'no_descriptors'],
  ['ENFILE', 'no_descriptors'],
])

/**
 * If a reused connection is reset within this time, in ms, the request may not have reached the upstream, and is sent
 * again. After this time the upstream may have begun to work. Another attempt could then be paid twice (faults F-U5,
 * F-U7).
 */
export const raceMs = 2_000

/**
 * Judges why an established connection has ended.
 * @param unheardMs the time since the request was sent. Undefined if the connection is new, or if a byte of the answer
 *   has come (ruling U1)
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

/** Judges why a connection could not be made, by the error's code, or else by the failed system call (ruling U1). */
export function judgeDial(error: Error, isSecured: boolean, isProxied: boolean): TransportFault {
  const fault = judgeDirectDial(error, isSecured)
  const isOwn = fault.cause === 'upstream_tls' || fault.cause === 'no_descriptors'
  if (error instanceof ProxyRefusal) return faultOfProxy(error)
  return isProxied && !isOwn ? { cause: 'upstream_proxy', isReuseRace: false } : fault
}

/** Returns the fault if the proxy itself answered with a refusal. */
export function faultOfProxy({ status }: ProxyRefusal): TransportFault {
  return { cause: 'upstream_proxy', isReuseRace: false, ...(status !== undefined && { proxyStatus: status }) }
}

function judgeDirectDial(error: Error, isSecured: boolean): TransportFault {
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

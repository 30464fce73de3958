import { isIPv6 } from 'node:net'
import { GatewayError } from '../errors.ts'
import { type Framing, type FramingFault, framingOf, type RequestHead } from '../http1/heads.ts'

/** Headers that carry a credential. Two different values are refused, because we would have to guess (ruling R7). */
const credentialHeaders = ['authorization', 'x-api-key']

export function isCredential(name: string): boolean {
  return credentialHeaders.includes(name)
}

/** The longest URL or header value, in bytes (reliability §3). */
const lineBytesMax = 8_192

const faults: Record<FramingFault, string> = {
  length: 'The request must have one content-length, a plain number.',
  encoding: 'The only transfer-encoding accepted is chunked.',
  both: 'Send content-length or transfer-encoding, not both.',
  old: 'HTTP/1.0 has no transfer-encoding: send content-length.',
}

/**
 * Refuses heads that are well-formed but that two programs could read as different requests (reliability §2).
 * @returns the framing of the body, or the refusal
 */
export function judgeFraming({ target, minor, fields }: RequestHead, headersMax: number): Framing | GatewayError {
  if (fields.count > headersMax) return refusal(`The request has more than ${headersMax} headers: send fewer.`, 431)
  if (target.length > lineBytesMax) return refusal(`The URL is longer than ${lineBytesMax} bytes: shorten it.`, 431)
  if (fields.longestValue > lineBytesMax)
    return refusal(`A request header is longer than ${lineBytesMax} bytes: shorten it.`, 431)
  const hosts = fields.countOf('host')
  if (hosts > 1 || (hosts === 0 && minor > 0)) return refusal('The request must have exactly one host header.')
  if (hosts === 1 && !isHost(fields.first('host')!)) return refusal('The host header is not a valid host and port.')
  const authority = target.startsWith('/') ? undefined : /^https?:\/\/([^/?#]*)/i.exec(target)?.[1]
  // A name may be empty in a host header, and not in a URL (RFC 9110 4.2.1).
  if (authority !== undefined && (/^(?::|$)/.test(authority) || !isHost(authority)))
    return refusal('The URL of the request has no valid host and port.')
  const framing = framingOf(fields, minor)
  if (typeof framing === 'object') return refusal(faults[framing.fault])
  for (const name of credentialHeaders) {
    if (fields.countOf(name) > 1 && new Set(fields.all(name)).size > 1)
      return refusal(`The header ${name} is sent twice with different values: send it once.`)
  }
  return framing
}

/** Whether a value is the host and port of a URI; the name may be empty (RFC 9112 3.2, RFC 3986 3.2.2). */
function isHost(value: string): boolean {
  const [, address, port = ''] = /^(?:\[([^\]]*)\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*)(?::(\d*))?$/i.exec(value) ?? [
    undefined,
    '',
  ]
  return (address === undefined || (isIPv6(address) && !address.includes('%'))) && Number(port) <= 65_535
}

/**
 * Makes the refusal of malformed HTTP. It has the same code as an invalid body, and the connection closes (ruling R11).
 */
export function refusal(message: string, status = 400): GatewayError {
  return new GatewayError('invalid_body', message, { status, shouldRetry: false })
}

/** The refusal of bytes that are not HTTP. Its text quotes none of them. */
export function notHttp(): GatewayError {
  return refusal('The request is not well-formed HTTP/1.1: check its framing and headers.')
}

/** The refusal of a head that is not complete in time. */
export function tooLate(): GatewayError {
  return refusal('The request did not arrive in time: send its headers at once.', 408)
}

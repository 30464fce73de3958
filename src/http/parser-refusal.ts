import type { GatewayError } from '../errors.ts'
import { refusal } from './framing.ts'
import { pathOf } from './paths.ts'

const timedOut = 'ERR_HTTP_REQUEST_TIMEOUT'

/** What Node's parser stops with. */
export type ParserError = NodeJS.ErrnoException & { rawPacket?: Buffer }

/** Method and path of what the parser stopped in, as far as its last bytes hold a request line; they choose the envelope. */
export function requestLine(rawPacket: Buffer | undefined): [method: string, path: string] {
  const line = rawPacket?.toString('latin1', 0, 8_192)
  const match = line && /^([A-Z]+) (\S+) HTTP\/1\.[01]\r?\n/.exec(line)
  return match ? [match[1]!, pathOf(match[2])] : ['', '']
}

/** What is said when the parser stops. Its own words are never sent: they quote the input. */
export function parserRefusal(code: string | undefined): GatewayError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return refusal('The request headers are too large: at most 16 KiB are taken.', 431)
  if (code === timedOut) return refusal('The request did not arrive in time: send its headers at once.', 408)
  return refusal('The request is not well-formed HTTP/1.1: check its framing and headers.')
}

/** For the log: a client that was too slow, or one that speaks no HTTP. */
export function causeOf(code: string | undefined): string {
  return code === timedOut ? 'client_timeout' : 'bad_http'
}

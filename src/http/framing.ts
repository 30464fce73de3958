import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../errors.ts'

/** Headers that carry a credential: two different values are a guess we do not make (ruling R7). */
const credentialHeaders = ['authorization', 'x-api-key']

/** The longest URL or header value (reliability §3). */
const lineBytesMax = 8_192

/**
 * What Node's parser lets through and we do not (reliability §2): each is a way for two readers of the same bytes to
 * see two different requests. @returns the refusal, or undefined for a request with one meaning.
 */
export function findFramingFault(request: IncomingMessage, headersMax: number): GatewayError | undefined {
  const { rawHeaders, headers } = request
  if (rawHeaders.length > 2 * headersMax) {
    return refusal(`The request has more than ${headersMax} headers: send fewer.`, 431)
  }
  if (request.httpVersionMajor !== 1) return refusal('The request line has no HTTP version: send HTTP/1.1.')
  const isOld = request.httpVersionMinor === 0
  if (request.url!.length > lineBytesMax)
    return refusal(`The URL is longer than ${lineBytesMax} bytes: shorten it.`, 431)
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (rawHeaders[i + 1]!.length > lineBytesMax) {
      return refusal(`A request header is longer than ${lineBytesMax} bytes: shorten it.`, 431)
    }
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
  }
  if (hosts > 1 || (hosts === 0 && !isOld)) return refusal('The request must have exactly one host header.')
  const encoding = headers['transfer-encoding']
  if (encoding !== undefined) {
    if (isOld) return refusal('HTTP/1.0 has no transfer-encoding: send content-length.')
    if (encoding.toLowerCase() !== 'chunked') return refusal('The only transfer-encoding taken is chunked.')
    if (headers['content-length'] !== undefined) return refusal('Send content-length or transfer-encoding, not both.')
  }
  for (const name of credentialHeaders) {
    // The parser keeps one value or joins them; only the raw list tells.
    if (headers[name] !== undefined && hasTwoValues(rawHeaders, name)) {
      return refusal(`The header ${name} is sent twice with different values: send it once.`)
    }
  }
  return undefined
}

function hasTwoValues(rawHeaders: readonly string[], name: string): boolean {
  let first: string | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.length !== name.length || rawHeaders[i]!.toLowerCase() !== name) continue
    if (first !== undefined && rawHeaders[i + 1] !== first) return true
    first = rawHeaders[i + 1]
  }
  return false
}

/** A refusal below HTTP has the code of a bad body and closes the connection (ruling R11). */
export function refusal(message: string, status = 400): GatewayError {
  return new GatewayError('invalid_body', message, { status, shouldRetry: false })
}

import type { Model } from '../catalog/model.ts'
import type { Call } from './call.ts'
import type { Exchange } from './exchange.ts'

/** Sent where the client names none (spec 9.2, ruling N3). */
const versionDefault = '2023-06-01'

/**
 * The headers of a request to an upstream, built by us: of the client's only version and beta of the messages wire
 * travel, to a messages model, spelled as the target wants them (rulings N3, P4).
 */
export function upstreamHeaders(call: Call, model: Model): Exchange['headersFor'] {
  if (model.wire !== 'messages') return () => []
  const isTheirs = call.wire === 'messages'
  const version = (isTheirs && (call.header('msgwire-version') ?? call.header('anthropic-version'))) || versionDefault
  const beta = isTheirs && (call.header('msgwire-beta') ?? call.header('anthropic-beta'))
  return ({ upstream: { messagesHeaders } }) => {
    const headers: [string, string][] = [[`${messagesHeaders}-version`, version]]
    if (beta) headers.push([`${messagesHeaders}-beta`, beta])
    return headers
  }
}

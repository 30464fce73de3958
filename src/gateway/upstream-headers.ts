import type { Model } from '../catalog/model.ts'
import { wires } from '../wires/wires.ts'
import type { Call } from './call.ts'
import type { Exchange } from './exchange.ts'

/**
 * The headers of a request to an upstream, built by us: of the client's only version and beta travel, to a model of its
 * own wire, spelled as the target wants them (rulings N3, P4).
 */
export function upstreamHeaders(call: Call, model: Model): Exchange['headersFor'] {
  const { versionHeaders } = wires[model.wire]
  if (!versionHeaders) return () => []
  const { spellings, versionDefault } = versionHeaders
  const named = (name: string) =>
    call.wire === model.wire
      ? spellings.map((spelling) => call.header(`${spelling}-${name}`)).find((value) => value !== undefined)
      : undefined
  const version = named('version') || versionDefault
  const beta = named('beta')
  return ({ upstream: { messagesHeaders } }) => {
    const headers: [string, string][] = [[`${messagesHeaders}-version`, version]]
    if (beta) headers.push([`${messagesHeaders}-beta`, beta])
    return headers
  }
}

import type { Model } from '../catalog/model.ts'
import type { Upstream } from '../config/config.ts'
import type { Wire } from '../wires/wire.ts'
import { wires } from '../wires/wires.ts'
import type { Call } from './call.ts'

/**
 * The headers of a request to an upstream: built by us, credential included; of the client's only version and beta
 * travel, and only to a model of its own wire (rulings N3, P4).
 */
export function upstreamHeaders(call: Call, model: Model, upstream: Upstream): [string, string][] {
  const wire = wires[model.wire]
  const headers = credential(wire, upstream)
  if (!wire.versionHeaders) return headers
  const { spellings, versionDefault } = wire.versionHeaders
  const named = (name: string) =>
    call.wire === model.wire
      ? spellings.map((spelling) => call.header(`${spelling}-${name}`)).find((value) => value !== undefined)
      : undefined
  const beta = named('beta')
  headers.push([`${upstream.messagesHeaders}-version`, named('version') || versionDefault])
  if (beta) headers.push([`${upstream.messagesHeaders}-beta`, beta])
  return headers
}

function credential(wire: Wire, upstream: Upstream): [string, string][] {
  const key = upstream.accounts[0]?.key.reveal()
  if (!key) return []
  return wire.credential === 'x-api-key' ? [['x-api-key', key]] : [['authorization', `Bearer ${key}`]]
}

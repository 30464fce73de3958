import type { Model, WireName } from '../catalog/model.ts'
import type { Upstream } from '../config/config.ts'
import type { Call } from './call.ts'

/** Sent where the client names none (spec 9.2, ruling N3). */
const versionDefault = '2023-06-01'

/**
 * The headers of a request to an upstream: built by us, credential included; of the client's only version and beta of
 * the messages wire travel, and only to a messages model (rulings N3, P4).
 */
export function upstreamHeaders(call: Call, model: Model, upstream: Upstream): [string, string][] {
  const headers = credential(model.wire, upstream)
  if (model.wire !== 'messages') return headers
  const isTheirs = call.wire === 'messages'
  const version = isTheirs ? (call.header('msgwire-version') ?? call.header('anthropic-version')) : undefined
  const beta = isTheirs ? (call.header('msgwire-beta') ?? call.header('anthropic-beta')) : undefined
  headers.push([`${upstream.messagesHeaders}-version`, version || versionDefault])
  if (beta) headers.push([`${upstream.messagesHeaders}-beta`, beta])
  return headers
}

function credential(wire: WireName, upstream: Upstream): [string, string][] {
  const key = upstream.accounts[0]?.key.reveal()
  if (!key) return []
  return wire === 'messages' ? [['x-api-key', key]] : [['authorization', `Bearer ${key}`]]
}

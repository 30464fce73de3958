import type { Model } from '../catalog/model.ts'
import type { VersionHeaders } from '../wires/wire.ts'
import { wires } from '../wires/wires.ts'
import type { Call } from './call.ts'
import type { Exchange } from './exchange.ts'

/**
 * The headers of a request to an upstream, built by us: of the client's only version and beta travel, to a model of its
 * own wire, spelled as the target wants them (rulings N3, P4).
 */
export function upstreamHeaders(call: Pick<Call, 'wire' | 'header'>, model: Model): Exchange['headersFor'] {
  const { versionHeaders } = wires[model.wire]
  if (!versionHeaders) return () => []
  const isTheirs = call.wire === model.wire
  const version = (isTheirs && sent(call, versionHeaders, 'version')) || versionHeaders.versionDefault
  const betas = isTheirs ? sent(call, versionHeaders, 'beta') : undefined
  return spell(version, betas === undefined ? undefined : priced(betas, model))
}

/** Of two spellings the first that was sent counts. */
function sent(call: Pick<Call, 'header'>, { spellings }: VersionHeaders, name: string): string | undefined {
  return spellings.map((spelling) => call.header(`${spelling}-${name}`)).find((value) => value !== undefined)
}

/** The betas without those that raise the price, unless the model's entry allows them (ruling C7). */
function priced(betas: string, { profile, allowedFields }: Model): string {
  const isCostly = (beta: string) =>
    !allowedFields.has(beta) &&
    profile.costlyBetas.some((pattern) =>
      pattern.endsWith('*') ? beta.startsWith(pattern.slice(0, -1)) : beta === pattern,
    )
  if (profile.costlyBetas.length === 0) return betas
  const kept = betas.split(',').filter((beta) => !isCostly(beta.trim()))
  return kept.join(',')
}

/** It holds two words and not the call, which an attempt may outlive. */
function spell(version: string, beta: string | undefined): Exchange['headersFor'] {
  return ({ upstream: { messagesHeaders } }) => {
    const headers: [string, string][] = [[`${messagesHeaders}-version`, version]]
    if (beta) headers.push([`${messagesHeaders}-beta`, beta])
    return headers
  }
}

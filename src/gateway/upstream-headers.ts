import type { Model } from '../catalog/model.ts'
import { compile, foldName, routingBetas } from '../catalog/routing-fields.ts'
import type { Loss } from '../inference/request.ts'
import type { VersionHeaders } from '../wires/wire.ts'
import { wires } from '../wires/wires.ts'
import type { Call } from './call.ts'
import type { Exchange } from './exchange.ts'

/**
 * The headers of a request to an upstream, built by us: of the client's only version and beta travel, to a model of its
 * own wire, spelled as the target wants them (rulings N3, P4). What was left out of the betas is a loss.
 */
export function upstreamHeaders(
  call: Pick<Call, 'wire' | 'header'>,
  model: Model,
): { headersFor: Exchange['headersFor']; losses: readonly Loss[] } {
  const { versionHeaders } = wires[model.wire]
  if (!versionHeaders) return { headersFor: () => [], losses: [] }
  const isTheirs = call.wire === model.wire
  const version = (isTheirs && sent(call, versionHeaders, 'version')) || versionHeaders.versionDefault
  const betas = isTheirs ? sent(call, versionHeaders, 'beta') : undefined
  const kept = betas === undefined ? undefined : priced(betas, model)
  return { headersFor: spell(version, kept), losses: kept === betas ? [] : [betaDropped] }
}

const betaDropped: Loss = { field: 'beta', what: 'dropped', why: 'raises the price, or lets another model answer' }

/** Of two spellings the first that was sent counts. */
function sent(call: Pick<Call, 'header'>, { spellings }: VersionHeaders, name: string): string | undefined {
  return spellings.map((spelling) => call.header(`${spelling}-${name}`)).find((value) => value !== undefined)
}

/** The betas without those that raise the price or let another model answer, unless the entry allows them (rulings C7, Y13). */
function priced(betas: string, { profile: { costlyBetas }, allowedFields }: Model): string {
  const isCostly = patterns.get(costlyBetas) ?? compile([...routingBetas, ...costlyBetas])
  patterns.set(costlyBetas, isCostly)
  const names = betas.split(',').map((beta) => [beta, foldName(beta.trim())] as const)
  return names.flatMap(([beta, name]) => (isCostly.test(name) && !allowedFields.has(name) ? [] : beta)).join(',')
}

/** By the list of a profile, which lives as long as its configuration. */
const patterns = new WeakMap<readonly string[], RegExp>()

/** It holds two words and not the call, which an attempt may outlive. */
function spell(version: string, beta: string | undefined): Exchange['headersFor'] {
  return ({ upstream: { messagesHeaders } }) => {
    const headers: [string, string][] = [[`${messagesHeaders}-version`, version]]
    if (beta) headers.push([`${messagesHeaders}-beta`, beta])
    return headers
  }
}

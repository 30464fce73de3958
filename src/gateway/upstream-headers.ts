import type { Model } from '../catalog/model.ts'
import { compile, foldName, routingBetas } from '../catalog/routing-fields.ts'
import type { Loss } from '../inference/request.ts'
import type { VersionHeaders } from '../wires/wire.ts'
import { wires } from '../wires/wires.ts'
import type { Call } from './call.ts'
import type { Exchange } from './exchange.ts'

/**
 * Builds the headers of a request to an upstream. Of the client's headers only the version and the betas are sent on, and
 * only to a model of its own wire. They are spelled as the target wants them (rulings N3, P4). A removed beta is a loss.
 */
export function upstreamHeaders(
  call: Pick<Call, 'wire' | 'header'>,
  model: Model,
): { headersFor: Exchange['headersFor']; losses: readonly Loss[] } {
  const { versionHeaders } = wires[model.wire].model
  if (!versionHeaders) return { headersFor: () => [], losses: [] }
  const isTheirs = call.wire === model.wire
  const version = (isTheirs && sent(call, versionHeaders, 'version')) || versionHeaders.versionDefault
  const betas = isTheirs ? sent(call, versionHeaders, 'beta') : undefined
  const kept = betas === undefined ? undefined : priced(betas, model)
  return { headersFor: spell(version, kept), losses: kept === betas ? [] : [betaDropped] }
}

const betaDropped: Loss = { field: 'beta', what: 'dropped', why: 'raises the price, or lets another model answer' }

/** Returns the first spelling that was sent. */
function sent(call: Pick<Call, 'header'>, { spellings }: VersionHeaders, name: string): string | undefined {
  return spellings.map((spelling) => call.header(`${spelling}-${name}`)).find((value) => value !== undefined)
}

/** Removes betas that raise the price or let another model answer, unless the catalog entry allows them (rulings C7, Y13). */
function priced(betas: string, { profile, allowedFields }: Model): string {
  const { costlyBetas } = profile.messages
  const isCostly = patterns.get(costlyBetas) ?? compile([...routingBetas, ...costlyBetas])
  patterns.set(costlyBetas, isCostly)
  const names = betas.split(',').map((beta) => [beta, foldName(beta.trim())] as const)
  return names.flatMap(([beta, name]) => (isCostly.test(name) && !allowedFields.has(name) ? [] : beta)).join(',')
}

/** Cached by the list of a profile, which lives as long as its configuration. */
const patterns = new WeakMap<readonly string[], RegExp>()

/** Keeps two strings and not the call, because an attempt may outlive the call. */
function spell(version: string, beta: string | undefined): Exchange['headersFor'] {
  return ({ upstream: { messagesHeaders } }) => {
    const headers: [string, string][] = [[`${messagesHeaders}-version`, version]]
    if (beta) headers.push([`${messagesHeaders}-beta`, beta])
    return headers
  }
}

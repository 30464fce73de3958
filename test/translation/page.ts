import type { Model } from '../../src/catalog/model.ts'
import { type ProfileSetting, resolveProfile } from '../../src/catalog/profiles.ts'
import { ClientBody } from '../../src/wires/requests/client-body.ts'
import { wires as spoken } from '../../src/wires/wires.ts'
import { listOf, plainPrices } from '../native/models.ts'
import { type ClientWire, type Options, pump, pumpJson, type Told, wires } from './pump.ts'

/*
 * A page shows one exchange between two wires as a person reads it. What the client asks and what the upstream answers
 * is written by hand; what the upstream is asked and what the client is answered is what the translation makes of it.
 */

type Block = { language: string; text: string }

/** The page with its two computed blocks as they must be, and what is wrong with the answer's grammar. */
export function rewritePage(
  page: string,
  client: ClientWire,
  upstream: ClientWire,
): { page: string; violations: string[] } {
  const asks = blockOf(page, 'Client asks')!
  const answers = blockOf(page, 'Upstream answers')!
  const setting = blockOf(page, 'Profile of the model')
  const model = modelOf(upstream, setting ? JSON.parse(setting.text) : undefined)
  const body = new ClientBody(Buffer.from(asks.text))
  const request = spoken[client].client.decodeRequest(body, { cacheKey: undefined, unseal: () => undefined })
  const encoded = spoken[upstream].model.encodeRequest(request, model)
  const told = tell(client, upstream, answers, {
    profile: model.profile,
    showsReasoning: request.reasoning.isShown,
    stops: encoded.stops,
    localStops: encoded.localStops,
    names: encoded.names,
    echo: JSON.parse(asks.text),
  })
  const pretty = JSON.stringify(JSON.parse(encoded.body.toString()), null, 2)
  const withAsked = replaceBlock(page, 'Upstream is asked', { language: 'json', text: pretty })
  return {
    page: replaceBlock(withAsked, 'Client is answered', answerOf(client, told)),
    violations: told.refusal ? [] : wires[client].check(told.text),
  }
}

function tell(client: ClientWire, upstream: ClientWire, answers: Block, options: Options): Told {
  return answers.language === 'json'
    ? pumpJson(client, upstream, answers.text, options)
    : pump(client, upstream, answers.text.endsWith('…') ? answers.text.slice(0, -1) : `${answers.text}\n\n`, options)
}

/** A failure before the first byte is an ordinary error response (spec 7.4). */
function answerOf(client: ClientWire, told: Told): Block {
  const facts = told.refusal
  if (facts === undefined) return { language: 'sse', text: told.text.trimEnd() }
  const body = spoken[client].client.envelope(facts, 'req_1')
  return { language: 'http', text: `HTTP/1.1 ${facts.status}\n\n${body}` }
}

export function modelOf(wire: ClientWire, setting: ProfileSetting | undefined): Model {
  return {
    id: 'catalog/model',
    entryId: 'catalog/model',
    aliases: [],
    wire,
    routes: [],
    upstreamModel: 'name-upstream',
    outputTokensMax: 4096,
    contextWindow: undefined,
    prices: listOf(plainPrices),
    expectedTiers: [],
    profile: resolveProfile(wire, setting),
    allowedFields: new Set(),
    hostedTools: 'refuse',
    implicitKey: 'off',
    affinity: 'alike',
    remoteMedia: 'pass',
    storedFiles: 'pass',
  }
}

export function blockOf(page: string, heading: string): Block | undefined {
  const start = page.indexOf(`\n## ${heading}\n`)
  if (start < 0) return undefined
  const match = /\n```(\w+)\n([\s\S]*?)\n```(?:\n|$)/.exec(page.slice(start))
  return match ? { language: match[1]!, text: match[2]! } : undefined
}

function replaceBlock(page: string, heading: string, { language, text }: Block): string {
  const start = page.indexOf(`\n## ${heading}\n`)
  if (start < 0) throw new Error(`a page without "${heading}"`)
  const next = page.indexOf('\n## ', start + 1)
  const section = `\n## ${heading}\n\n\`\`\`${language}\n${text}\n\`\`\`\n`
  return page.slice(0, start) + section + (next < 0 ? '' : page.slice(next))
}

import assert from 'node:assert/strict'
import type { Model } from '../../../src/catalog/model.ts'
import { type ProfileSetting, resolveProfile } from '../../../src/catalog/profiles.ts'
import type { ClientWire } from '../../../src/catalog/wire-names.ts'
import { GatewayError } from '../../../src/errors.ts'
import type { InferenceRequest, Sealed } from '../../../src/inference/request.ts'
import { checkFields, readConversationKey, readModelId } from '../../../src/wires/requests/checks.ts'
import { ClientBody } from '../../../src/wires/requests/client-body.ts'
import type { EncodedRequest } from '../../../src/wires/wire.ts'
import { wires } from '../../../src/wires/wires.ts'
import { listOf, plainPrices } from '../../native/models.ts'

/** The profile of translation 5: everything the wire has, effort in three levels, four stops, follow-up images. */
const plainProfile: ProfileSetting = {
  maxField: 'max_completion_tokens',
  minOutput: 1,
  reasoning: { style: 'effort', levels: ['low', 'medium', 'high'], canDisable: true },
  hiddenReasoning: 'asked',
  reasoningField: 'reasoning_content',
  replayThought: { when: 'never', required: false },
  drops: new Set(),
  accepts: new Set(),
  toolSchemas: 'any',
  toolChoice: new Set(['auto', 'none', 'required', 'named'] as const),
  toolIdStyle: 're64',
  toolNameMax: 64,
  maxStops: 4,
  operatorInPlace: 'any',
  developerRole: true,
  images: true,
  files: true,
  toolImages: 'follow_up',
  shape: 'schema',
  prefill: 'none',
  nullContent: 'null',
  unprovenThought: 'remove',
  stringOnly: false,
  autoCache: 'on_key',
  autoCacheSameWire: false,
  assistantFirst: false,
  remoteMedia: 'pass',
  storedFiles: 'pass',
  charges: [],
  routingFields: [],
  routingContainers: [],
  answerNames: [],
  costlyBetas: [],
  usageQuirk: 'none',
  strictFields: false,
  oneSamplingField: false,
  refusals: [],
  accountFaults: [],
  requestFaults: [],
  preferStream: false,
}

export type Setting = {
  /** A named profile, or what differs from the plain one of translation 5. */
  profile?: string | ProfileSetting
  outputTokensMax?: number
  cacheKey?: string
  unseal?: (envelope: string) => Sealed | undefined
}

export function modelOf(wire: ClientWire, setting: Setting = {}): Model {
  const ofWire: ProfileSetting =
    wire === 'messages' ? { operatorInPlace: 'message_rule', toolNameMax: 128, maxStops: 64, prefill: 'native' } : {}
  return {
    id: 'm-large',
    entryId: 'm-large',
    aliases: [],
    wire,
    routes: [],
    upstreamModel: 'upstream-model',
    outputTokensMax: setting.outputTokensMax ?? 8192,
    contextWindow: undefined,
    prices: listOf(plainPrices),
    expectedTiers: [],
    profile: resolveProfile(
      wire,
      typeof setting.profile === 'string' ? setting.profile : { ...plainProfile, ...ofWire, ...setting.profile },
    ),
    allowedFields: new Set(),
    hostedTools: 'pass',
    implicitKey: 'off',
    affinity: 'alike',
    remoteMedia: 'pass',
    storedFiles: 'pass',
  }
}

/** A client's body on its way through the gateway: the checks of every pair, then the decoder (ruling R1). */
export function decode(from: ClientWire, body: unknown, setting: Setting = {}): InferenceRequest {
  const checked = checkBody(from, body)
  const { cacheKey, unseal = () => undefined } = setting
  return wires[from].client.decodeRequest(checked, { cacheKey, unseal })
}

/** What is checked whatever the model's wire. */
export function checkBody(from: ClientWire, body: unknown): ClientBody {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  const checked = new ClientBody(bytes, wires[from].client.keptKeys)
  readModelId(checked)
  readConversationKey(wires[from].client, checked, () => undefined)
  checkFields(wires[from].client, checked)
  return checked
}

export function encode(to: ClientWire, request: InferenceRequest, setting: Setting = {}): EncodedRequest {
  return wires[to].model.encodeRequest(request, modelOf(to, setting))
}

// biome-ignore lint/suspicious/noExplicitAny: a parsed upstream body, looked into freely by the cases
export type Upstream = any

export type Translated = { body: Upstream; text: string; encoded: EncodedRequest }

export function translate(from: ClientWire, to: ClientWire, body: unknown, setting: Setting = {}): Translated {
  const encoded = encode(to, decode(from, body, setting), setting)
  const text = encoded.body.toString()
  return { body: JSON.parse(text), text, encoded }
}

/** The refusal a request gets. */
export function refusalOf(from: ClientWire, to: ClientWire, body: unknown, setting: Setting = {}): GatewayError {
  try {
    translate(from, to, body, setting)
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  assert.fail('the request was not refused')
}

export type Case = {
  id: string
  title: string
  body: unknown
  setting?: Setting
  /** What the upstream is asked, or the refusal. */
  expect: ((upstream: Upstream, translated: Translated) => void) | { code: string; param: string }
}

export function runCase(from: ClientWire, to: ClientWire, { body, setting, expect }: Case) {
  if (typeof expect === 'function') {
    const translated = translate(from, to, body, setting)
    expect(translated.body, translated)
    return
  }
  const error = refusalOf(from, to, body, setting)
  assert.deepEqual(
    { code: error.code, status: error.status, param: error.param },
    { code: expect.code, status: 400, param: expect.param },
  )
}

/** The smallest valid request of each wire. */
export const smallest: Record<ClientWire, Record<string, unknown>> = {
  messages: { model: 'm-large', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] },
  chat: { model: 'm-large', messages: [{ role: 'user', content: 'Hi' }] },
  responses: { model: 'm-large', input: 'Hi' },
}

export const png = 'iVBORw0KGgo='
export const pdf = 'JVBERi0xLjQK'

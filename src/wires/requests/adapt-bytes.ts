import { type Edit, splice } from '../../bytes/json.ts'
import { setMembers } from '../../bytes/json-edit.ts'
import { freeTierWords, isPricedWord, type ServiceWords } from '../../catalog/base-service.ts'
import type { CostField, Model } from '../../catalog/model.ts'
import type { Loss } from '../../inference/request.ts'
import { serviceMembers } from '../../inference/usage.ts'
import type { ClientBody } from './client-body.ts'
import type { HiddenReasoning } from './reasoning-wish.ts'
import { dropRouting, MemberValues } from './routing.ts'

/** A request of the model's own wire, ready to be sent: the client's bytes but for the edits of ruling P1. */
export type AdaptedRequest = {
  body: Buffer
  stream: boolean
  /** The tier, speed and geography that it asks for, by their member; undefined if none. */
  service: ServiceWords | undefined
  /** The body is all that the model reads, and the cap bounds all that it writes (ruling C14). */
  isSelfContained: boolean
  /** The cap that is sent, or the model's maximum where none is, in tokens. */
  outputTokensCap: number
  /** How many answers are asked for; the cap is that of all of them. */
  choices: number
  /** The answer may hold reasoning that its stream does not show in full (ruling C12). */
  mayHideReasoning: HiddenReasoning
  /** The changes and removals against the client's word, for the log (ruling T9). */
  losses: readonly Loss[]
}

/** The facts that adapting needs beside body and model. */
export type AdaptContext = {
  /** The conversation key scoped to the account (R-CACHE); undefined if the client sent none. */
  scopedKey: string | undefined
  /** The key to send all the same if the request names none (ruling Y18). */
  implicitKey?: string | undefined
  /** Unix milliseconds: which services have a price depends on the time. Default: none has one. */
  nowMs?: number
  /** Whether an `encrypted_content` is an envelope of ours (ruling T7). */
  isOurSeal: (text: string) => boolean
}

/** Scopes the client's cache key, or adds the implicit one (rulings P6, Y18). */
export function setCacheKey(body: ClientBody, { profile }: Model, values: MemberValues, context: AdaptContext): void {
  const { scopedKey, implicitKey } = context
  const field = 'prompt_cache_key'
  const own = body.has(field) ? scopedKey : undefined
  const key = own ?? (profile.accepts.has(field) ? implicitKey : undefined)
  if (key !== undefined && !values.has(field)) values.set(field, JSON.stringify(key))
}

/**
 * Fields that cost beyond the token price, or get around a cap (ruling C7). Only these values pass, and those that the model's list
 * prices, unless its entry allows the field. The last four are of servers beside the wires' authors.
 */
const costFields: ReadonlyMap<string, readonly unknown[]> = new Map<CostField, readonly unknown[]>([
  ['service_tier', freeTierWords],
  ['speed', ['standard']],
  ['inference_geo', ['global', 'default']],
  ['priority', [0]],
  ['best_of', [1]],
  ['n_predict', []],
  ['chat_template', []],
])

/** The edits that every wire has: the model's name, cost fields, what would choose another one, what the profile does not take. */
export function commonValues(body: ClientBody, model: Model, { nowMs }: Pick<AdaptContext, 'nowMs'>): MemberValues {
  const values = new MemberValues()
  if (model.upstreamModel !== model.id) values.set('model', JSON.stringify(model.upstreamModel))
  for (const { key } of body.members) {
    const free = costFields.get(key)
    if (!free || values.has(key) || !body.has(key) || model.allowedFields.has(key)) continue
    const value = body.value(key)
    if (free.includes(value) || (nowMs !== undefined && isPricedWord(key, value, model, nowMs))) continue
    values.set(key, undefined)
  }
  dropRouting(body, model, values)
  for (const field of model.profile.drops) if (body.has(field)) values.set(field, undefined)
  return values
}

/** The cap to send: never above the model's maximum, never below what its upstream takes (rulings T17, P1). */
export function capTokens(model: Model, asked: number): number {
  return Math.max(Math.min(asked, model.outputTokensMax), Math.min(model.profile.minOutput, model.outputTokensMax))
}

/** Splices the new values and the deeper edits into the client's bytes. */
export function adaptBody(body: ClientBody, values: MemberValues, deeper: readonly Edit[] = []): Buffer {
  if (values.size === 0 && deeper.length === 0) return body.bytes
  return splice(body.bytes, [...setMembers(body.range, body.members, values), ...deeper])
}

/** Edits that set members inside an object field, wherever it stands; the rest of it keeps its bytes. */
export function setInside(body: ClientBody, field: string, values: ReadonlyMap<string, string>): Edit[] {
  const places = body.members.filter((member) => member.key === field && body.bytes[member.start] === 0x7b)
  return places.flatMap((place) => setMembers(place, body.membersAt(place), values))
}

/** The top-level fields as they are sent. Deeper edits are left out: no wish of a client's is made by one. */
export function sentFields(body: ClientBody, values: MemberValues): (field: string) => unknown {
  return (field) => {
    if (!values.has(field)) return body.value(field)
    const text = values.get(field)
    return text === undefined ? undefined : JSON.parse(text)
  }
}

/** The words of a request as it is sent by which it asks for a service; undefined if it has none (ruling Y17). */
export function sentService(body: ClientBody, values: MemberValues): ServiceWords | undefined {
  let words: Record<string, string> | undefined
  for (const member of serviceMembers) {
    const word = body.has(member) && !values.has(member) ? body.value(member) : undefined
    if (typeof word === 'string') words = { ...words, [member]: word }
  }
  return words
}

/** Which fields of the client's were taken out, and not moved to another place. */
export function droppedFields(values: MemberValues, moved: readonly string[] = []): Loss[] {
  const dropped = [...(values.routed?.list ?? [])]
  for (const [field, value] of values)
    if (value === undefined && !moved.includes(field) && !values.routedKeys?.has(field))
      dropped.push({ field, what: 'dropped', why: 'not taken by the model' })
  return dropped
}

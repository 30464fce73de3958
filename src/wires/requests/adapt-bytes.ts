import { type Edit, memberText, splice } from '../../bytes/json.ts'
import { elementsOf, setMembers } from '../../bytes/json-edit.ts'
import type { JsonMember } from '../../bytes/scan.ts'
import { freeTierWords, isPricedWord, type ServiceWords } from '../../catalog/base-service.ts'
import { type CostField, costFieldNames, type Model } from '../../catalog/model.ts'
import { nameCharactersMax, readFieldName } from '../../catalog/routing-fields.ts'
import type { Loss } from '../../inference/request.ts'
import { serviceMembers } from '../../inference/usage.ts'
import type { ClientBody } from './client-body.ts'
import { createLosses, type Losses } from './losses.ts'
import { hostedFields } from './reach.ts'
import type { HiddenReasoning } from './reasoning-wish.ts'

/**
 * A request adapted for a model of the client's own wire, ready to be sent. It has the client's bytes with the edits
 * of ruling P1.
 */
export type AdaptedRequest = {
  body: Buffer
  stream: boolean
  /** The requested tier, speed and geography. The keys are the names of request members. Undefined if none is set. */
  service: ServiceWords | undefined
  /** Whether the model reads nothing but this body, and writes nothing beyond the output cap (ruling C14). */
  isSelfContained: boolean
  /** The output cap as sent, in tokens; the model's maximum if no cap is sent. */
  outputTokensCap: number
  /** The number of requested answers. `outputTokensCap` is the sum of their caps. */
  choices: number
  /** Whether the answer may contain reasoning that its stream does not show in full (ruling C12). */
  mayHideReasoning: HiddenReasoning
  /** Fields that were changed or removed although the client sent them, for the log (ruling T9). */
  losses: readonly Loss[]
}

/** The facts that adapting a request needs besides the body and the model. */
export type AdaptContext = {
  /** The client's conversation key, made unique to the account (R-CACHE); undefined if the client sent none. */
  scopedKey: string | undefined
  /** The cache key to send if the client sent none (ruling Y18). */
  implicitKey?: string | undefined
  /**
   * The time in Unix milliseconds. A requested service, such as a tier, is kept if it has a price at this time. Without
   * a time, no service has a price.
   */
  nowMs?: number
  /** Whether an `encrypted_content` is one of our envelopes, not the provider's own text (ruling T7). */
  isOurSeal: (text: string) => boolean
}

/**
 * Scopes the client's cache key to its account. If the client sent none, adds the gateway's own key (rulings P6, Y18).
 */
export function setCacheKey(body: ClientBody, { profile }: Model, values: MemberValues, context: AdaptContext): void {
  const { scopedKey, implicitKey } = context
  const field = 'prompt_cache_key'
  const own = body.has(field) ? scopedKey : undefined
  const key = own ?? (profile.accepts.has(field) ? implicitKey : undefined)
  if (key !== undefined && !values.has(field)) values.set(field, JSON.stringify(key))
}

/**
 * Fields that can raise the cost beyond the token price, or make a cap ineffective (ruling C7). The listed values
 * always pass, and so do values for which the model has a price. If the model's entry allows the field, every value
 * passes. The last four fields are not defined by the wires' authors, but used by other servers.
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

/**
 * The edits common to all wires. They set the model's name, and remove cost fields, routing fields, and fields that
 * the profile does not accept.
 */
export function commonValues(body: ClientBody, model: Model, { nowMs }: Pick<AdaptContext, 'nowMs'>): MemberValues {
  const values = new MemberValues(model.profile.drops)
  // The client may have named a chain (ruling Y23), so the name in the body is compared, and not the model's id.
  if (body.value('model') !== model.upstreamModel) values.set('model', JSON.stringify(model.upstreamModel))
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

/** The output cap to send. It is at most the model's maximum, and at least the upstream's minimum (rulings T17, P1). */
export function capTokens(model: Model, asked: number): number {
  return Math.max(Math.min(asked, model.outputTokensMax), Math.min(model.profile.minOutput, model.outputTokensMax))
}

/** Applies the new top-level values and the nested edits to the client's bytes. */
export function adaptBody(body: ClientBody, values: MemberValues, deeper: readonly Edit[] = []): Buffer {
  if (values.size === 0 && deeper.length === 0) return body.bytes
  return splice(body.bytes, [...setMembers(body.range, body.members, values), ...deeper])
}

/** Edits that set members inside an object field. All other bytes of the field stay. */
export function setInside(body: ClientBody, field: string, values: ReadonlyMap<string, string>): Edit[] {
  const places = body.members.filter((member) => member.key === field && body.bytes[member.start] === 0x7b)
  return places.flatMap((place) => setMembers(place, body.membersAt(place), values))
}

/** Renames the role `developer` of messages to `system`, for an upstream that does not know `developer`. */
export function renameDevelopers(body: ClientBody, { profile }: Model, conversation: string): Edit[] {
  if (profile.developerRole || !body.holdsString('developer') || !body.isArray(conversation)) return []
  const edits: Edit[] = []
  for (const message of elementsOf(body.bytes, body.member(conversation)!)) {
    if (body.bytes[message.start] !== 0x7b) continue
    const members = body.membersAt(message)
    if (members.some((member) => member.key === 'type' && memberText(body.bytes, member) !== '"message"')) continue
    for (const member of members)
      if (member.key === 'role' && memberText(body.bytes, member) === '"developer"')
        edits.push({ start: member.start, end: member.end, text: '"system"' })
  }
  return edits
}

/**
 * Returns a function that gives the value of a top-level field as it is sent. Edits inside a field are ignored, because
 * they do not change what the client asks for.
 */
export function sentFields(body: ClientBody, values: MemberValues): (field: string) => unknown {
  return (field) => {
    if (!values.has(field)) return body.value(field)
    const text = values.get(field)
    return text === undefined ? undefined : JSON.parse(text)
  }
}

/** The words with which the sent request asks for a tier, speed or geography; undefined if it has none (ruling Y17). */
export function sentService(body: ClientBody, values: MemberValues): ServiceWords | undefined {
  let words: Record<string, string> | undefined
  for (const member of serviceMembers) {
    const word = body.has(member) && !values.has(member) ? body.value(member) : undefined
    if (typeof word === 'string') words = { ...words, [member]: word }
  }
  return words
}

/** The client's fields that were removed and not moved to another place. */
export function droppedFields(values: MemberValues, moved: readonly string[] = []): Loss[] {
  const dropped = [...(values.routed?.list ?? [])]
  for (const [field, value] of values)
    if (value === undefined && !moved.includes(field) && !values.routedKeys?.has(field))
      dropped.push({ field, what: 'dropped', why: 'not taken by the model' })
  return dropped
}

/**
 * The new source texts of top-level members. The keys are the names as the client wrote them. Undefined removes the
 * member.
 */
export class MemberValues extends Map<string, string | undefined> {
  readonly #drops: ReadonlySet<string>
  /** Removed members that would have chosen another model, provider, host or price (ruling Y13). */
  routed: Losses | undefined
  /** The names of the removed top-level members of `routed`, as the client wrote them. */
  routedKeys: Set<string> | undefined

  /** @param drops the fields that the upstream rejects. They can be removed, but get no value */
  constructor(drops: ReadonlySet<string>) {
    super()
    this.#drops = drops
  }

  override set(field: string, value: string | undefined): this {
    return value !== undefined && this.#drops.has(field) ? this : super.set(field, value)
  }
}

/**
 * Fields that the gateway judges, bills by or sets itself. Some servers also read such a field inside a container, or
 * with other upper and lower case. Then they would use another value than the gateway judged.
 */
const judgedFields = new Set<string>([
  ...['model', 'messages', 'input', 'tools', 'prompt', 'n', 'stream', 'stream_options', 'store', 'modalities', 'audio'],
  ...['max_tokens', 'max_completion_tokens', 'max_output_tokens', 'prompt_cache_key', 'thread', 'background'],
  ...['previous_response_id', 'conversation', ...costFieldNames, ...hostedFields],
])

/** Names of top-level members that are known to be harmless, by model. So usual members are judged only once. */
const harmlessNames = new WeakMap<Model, Set<string>>()
/** The largest number of harmless names that are kept for a model. Clients can invent any number of names. */
const harmlessMax = 100

/**
 * Removes members that would choose another model, provider, host, key or price (ruling Y13). Only the top level and
 * the containers in the profile are searched. Messages, tools, schemas and arguments keep their bytes. Members that
 * the model's entry allows stay.
 */
function dropRouting(body: ClientBody, model: Model, values: MemberValues): void {
  const harmless = harmlessNames.get(model) ?? new Set<string>()
  if (body.members.every(({ key }) => harmless.has(key))) return
  harmlessNames.set(model, harmless)
  const { routingContainers, routingFields } = model.profile
  for (const member of body.members) {
    const { key } = member
    const row = rowOf(key, '')
    if (row !== undefined) drop(key, row)
    else if (isContainer(readFieldName(key).folded)) prune(member, readFieldName(key).folded)
    else if (harmless.size < harmlessMax && key.length <= nameCharactersMax) harmless.add(key)
  }

  function drop(key: string, row: string): void {
    values.set(key, undefined)
    values.routedKeys = (values.routedKeys ?? new Set()).add(key)
    note(row)
  }

  function note(row: string): void {
    values.routed ??= createLosses()
    values.routed.add(row, 'dropped', 'would choose another model, provider, host or price')
  }

  function isContainer(name: string): boolean {
    return routingContainers.includes(name) || routingFields.some((field) => field.startsWith(`${name}.`))
  }

  /**
   * Returns the name under which a dropped member is listed as a loss; undefined if the member stays.
   * @param inside the name of the container that holds the member, with a dot; empty at the top level
   */
  function rowOf(key: string, inside: string): string | undefined {
    const { folded, row } = readFieldName(key)
    const isDisguised = inside === '' ? folded !== key : true
    const isDropped =
      row !== undefined || (isDisguised && judgedFields.has(folded)) || (inside !== '' && isContainer(folded))
    const isNamed = routingFields.includes(inside + folded) || routingFields.includes(folded)
    const isAllowed = model.allowedFields.has(folded) || model.allowedFields.has(inside + folded)
    return (isDropped || isNamed) && !isAllowed ? inside + (row ?? folded) : undefined
  }

  function prune(container: JsonMember, name: string): void {
    const { key, start, end } = container
    const text = memberText(body.bytes, container)
    // Some servers parse a string that contains a JSON object (LiteLLM does so for its metadata).
    if (text.startsWith('"') && JSON.parse(text).trimStart().startsWith('{')) drop(key, name)
    if (!text.startsWith('{')) return
    const dropped = new Map<string, undefined>()
    const members = body.membersAt(container)
    for (const { key: inner } of members) {
      const isNamed = routingFields.includes(`${name}.${readFieldName(inner).folded}`)
      const row = isNamed || routingContainers.includes(name) ? rowOf(inner, `${name}.`) : undefined
      if (row === undefined) continue
      dropped.set(inner, undefined)
      note(row)
    }
    if (dropped.size === 0) return
    const edits = setMembers(container, members, dropped)
    for (const edit of edits) Object.assign(edit, { start: edit.start - start, end: edit.end - start })
    values.set(key, splice(body.bytes.subarray(start, end), edits).toString('utf8'))
  }
}

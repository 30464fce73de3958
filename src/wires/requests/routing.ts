import { memberText, splice } from '../../bytes/json.ts'
import { setMembers } from '../../bytes/json-edit.ts'
import type { JsonMember } from '../../bytes/scan.ts'
import { costFieldNames, type Model } from '../../catalog/model.ts'
import { nameCharactersMax, readFieldName } from '../../catalog/routing-fields.ts'
import type { ClientBody } from './client-body.ts'
import { createLosses, type Losses } from './losses.ts'
import { hostedFields } from './reach.ts'

/** New source texts of top-level members, by their names as the client wrote them. Undefined removes the member. */
export class MemberValues extends Map<string, string | undefined> {
  /** Members that were dropped because they would override a choice of the model's entry (ruling Y13). */
  routed: Losses | undefined
  /** The members listed in `routed`, under their names in our tables. */
  routedKeys: Set<string> | undefined
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
/** The most names kept per model, since clients can invent any number of names. */
const harmlessMax = 100

/**
 * Removes members that would choose another model, provider, host, key or price (ruling Y13). Only the top level and
 * the containers in the profile are searched. Messages, tools, schemas and arguments keep their bytes. Members that
 * the model's entry allows stay.
 */
export function dropRouting(body: ClientBody, model: Model, values: MemberValues): void {
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
   * Returns the name under which a dropped member is listed; undefined if the member stays. A container inside a
   * container is dropped.
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

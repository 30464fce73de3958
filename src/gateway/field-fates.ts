import type { Model, WireName } from '../catalog/model.ts'
import { readFieldName } from '../catalog/routing-fields.ts'
import type { Loss } from '../inference/request.ts'
import { ClientBody } from '../wires/requests/client-body.ts'
import type { FieldOutcome, FieldTable } from '../wires/requests/field-table.ts'
import { wires } from '../wires/wires.ts'

/** What became of a field of a request; `added` stands in none of the client's. */
export type FieldFate = { field: string; what: FieldOutcome | 'added'; why: string }

type SentToModel = {
  /** The client's wire, and its body. */
  wire: WireName
  bytes: Buffer
  model: Model
  /** What the model is sent. */
  body: Buffer
  losses: readonly Loss[]
}

/**
 * What became of each field of a request that is sent: between two wires by the table of the client's, within one by the bytes.
 * `null` counts as absent (ruling R7). What was taken out of a field is in the losses.
 */
export function fieldFates(sent: SentToModel): FieldFate[] {
  const body = new ClientBody(sent.bytes)
  return sent.wire === sent.model.wire ? nativeFates(sent, body) : translatedFates(sent, body)
}

function translatedFates({ wire, model, losses }: SentToModel, body: ClientBody): FieldFate[] {
  const { fields } = wires[wire]
  return namesIn(body, fields).map((field): FieldFate => {
    const facts = fields.get(field)
    if (facts === undefined) return { field, what: 'dropped', why: 'not a field of this wire' }
    const [, what, note] = facts.to.find(([to]) => to === model.wire)!
    const loss = losses.find((one) => one.field === field && one.what === 'dropped')
    if (loss && !isOfAPart(wire, field)) return { field, what: 'dropped', why: loss.why }
    // What is refused is so for some values, and this is none of them.
    return what === 'refused' ? { field, what: 'dropped', why: `refused ${note}` } : { field, what, why: note }
  })
}

/** Whether a loss of its name is of something in it. */
function isOfAPart(wire: WireName, field: string): boolean {
  return field === wires[wire].request.conversation.field || partly.has(field)
}

const partly = new Set(['system', 'tools', 'stop'])

/** The top-level fields, each once, and behind each those of its members that have a fate of their own. */
function namesIn(body: ClientBody, fields: FieldTable): string[] {
  const inner = [...fields.keys()].filter((field) => field.includes('.'))
  return presentKeys(body).flatMap((key) => {
    const own = inner.filter((field) => {
      const [outer = '', member = ''] = field.split('.')
      return outer === key && body.valuesInside(outer, member).some((value) => value != null)
    })
    return [key, ...own]
  })
}

function presentKeys(body: ClientBody): string[] {
  return body.members.map(({ key }) => key).filter((key) => body.has(key))
}

function nativeFates({ wire, bytes, body: sentBytes, losses }: SentToModel, body: ClientBody): FieldFate[] {
  const sent = new ClientBody(sentBytes)
  const fates = presentKeys(body).map((field): FieldFate => {
    const [before, after] = [body.member(field)!, sent.member(field)]
    const { folded, row = folded } = readFieldName(field)
    const loss = losses.find((one) => one.field === field || one.field === row)
    if (after === undefined && loss) return { field, what: 'dropped', why: loss.why }
    if (after === undefined) return { field, what: 'mapped', why: 'said in another field' }
    const isSame = bytes.subarray(before.start, before.end).equals(sentBytes.subarray(after.start, after.end))
    return isSame ? { field, what: 'carried', why: 'as it is' } : { field, what: 'mapped', why: editOf(wire, field) }
  })
  const added = presentKeys(sent).filter((key) => !body.has(key))
  return [...fates, ...added.map((field): FieldFate => ({ field, what: 'added', why: editOf(wire, field) }))]
}

/** Why a field differs on the way to a model of its own wire (ruling P1). */
const edits = new Map([
  ['model', 'what the upstream calls it'],
  ['stream_options', 'usage is always asked for'],
  ['store', 'nothing is stored'],
  ['prompt_cache_key', 'scoped to the account'],
  ['metadata', 'has `user` as its `user_id`'],
  ['cache_control', 'marks what a cache may keep'],
])

function editOf(wire: WireName, field: string): string {
  if (wires[wire].request.caps.includes(field)) return 'within what the model and its upstream take'
  return edits.get(field) ?? 'edited inside, else as it is'
}

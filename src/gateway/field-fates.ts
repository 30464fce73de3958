import type { Model } from '../catalog/model.ts'
import { readFieldName } from '../catalog/routing-fields.ts'
import type { ClientWire } from '../catalog/wire-names.ts'
import type { Loss } from '../inference/request.ts'
import { ClientBody } from '../wires/requests/client-body.ts'
import type { FieldOutcome, FieldTable } from '../wires/requests/field-table.ts'
import { unknownField } from '../wires/requests/losses.ts'
import { fateOf } from '../wires/requests/scalars.ts'
import { wires } from '../wires/wires.ts'

/** The outcome of one field of a request. An `added` field is not in the client's body. */
export type FieldFate = { field: string; what: FieldOutcome | 'added'; why: string }

type SentToModel = {
  /** `wire` and `bytes` are the client's wire and body. `body` is the body that was sent to the model. */
  wire: ClientWire
  bytes: Buffer
  model: Model
  body: Buffer
  losses: readonly Loss[]
}

/**
 * Lists the outcome of each field of a request. If the client and the model use different wires, the field table of the
 * client's wire decides. If they use the same wire, the client's body and the sent body are compared. `null` counts as
 * absent (ruling R7). A loss (dropped or changed content) gets a row at the end if its field has no row.
 */
export function fieldFates(sent: SentToModel): FieldFate[] {
  const body = new ClientBody(sent.bytes)
  const fates = sent.wire === sent.model.wire ? nativeFates(sent, body) : translatedFates(sent, body)
  // The losses of unknown fields all have the name `unknownField`. They are left out, because each unknown field has a
  // row already.
  const listed = new Set([unknownField, ...fates.map(({ field }) => field)])
  const inner = sent.losses.filter(({ field }) => !listed.has(field) && listed.add(field))
  return [
    ...fates,
    ...inner.map(({ field, what, why }): FieldFate => ({ field, what: what === 'dropped' ? what : 'mapped', why })),
  ]
}

function translatedFates({ wire, model, losses }: SentToModel, body: ClientBody): FieldFate[] {
  const { fields } = wires[wire].client
  return namesIn(body, fields).map((field): FieldFate => {
    const facts = fields.get(field)
    if (facts === undefined) return { field, what: 'dropped', why: 'not a field of this wire' }
    const [what, note] = fateOf(facts, wire, wires[model.wire])
    const loss = losses.find((one) => one.field === field && one.what === 'dropped')
    if (loss && !isOfAPart(wire, field)) return { field, what: 'dropped', why: loss.why }
    // The table says `refused` for some values of the field. This value was not refused, so it was dropped.
    return what === 'refused' ? { field, what: 'dropped', why: `refused ${note}` } : { field, what, why: note }
  })
}

/** Whether a loss with this field's name may concern only a part of the field, such as one of several tools. */
function isOfAPart(wire: ClientWire, field: string): boolean {
  return field === wires[wire].client.request.conversation.field || partly.has(field)
}

const partly = new Set(['system', 'tools', 'stop'])

/** Lists each top-level field once. After a field come its members that have their own entry in the field table. */
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
    if (after === undefined) return { field, what: 'mapped', why: 'sent in another field' }
    const isSame = bytes.subarray(before.start, before.end).equals(sentBytes.subarray(after.start, after.end))
    return isSame ? { field, what: 'carried', why: 'as it is' } : { field, what: 'mapped', why: editOf(wire, field) }
  })
  const added = presentKeys(sent).filter((key) => !body.has(key))
  return [...fates, ...added.map((field): FieldFate => ({ field, what: 'added', why: editOf(wire, field) }))]
}

/** The reasons why a field differs on the way to a model of the same wire (ruling P1). */
const edits = new Map([
  ['model', 'what the upstream calls it'],
  ['stream_options', 'usage is always asked for'],
  ['store', 'nothing is stored'],
  ['prompt_cache_key', 'scoped to the account'],
  ['metadata', 'has `user` as its `user_id`'],
])

function editOf(wire: ClientWire, field: string): string {
  if (wires[wire].client.request.caps.includes(field)) return 'within what the model and its upstream take'
  return edits.get(field) ?? 'partly edited, the rest as it is'
}

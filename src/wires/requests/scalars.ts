import type { ClientWire, ModelWire } from '../../catalog/wire-names.ts'
import type { Scalar, Scalars } from '../../inference/request.ts'
import { type FieldFacts, type FieldTable, lastOf, type NotedFate, type ScalarRow } from './field-table.ts'
import type { Losses } from './losses.ts'
import { type Json, optional, readNumber, readObject, readString } from './read-value.ts'

/*
 * Scalars are request fields with a single value, a number or a text. Each wire has one row per scalar. That row is
 * enough to read the field from a client, write it for a model, list losses, and document it in docs/translation.
 */

const readers: Readonly<Record<ScalarRow['kind'], (value: unknown, at: string) => Scalar>> = {
  number: readNumber,
  text: readString,
}

/**
 * Lists the scalars (fields with a single value) that models of a wire accept.
 * @param table the fields that clients of the wire can send
 * @param further fields that models of the wire accept, but that its clients cannot send
 */
export function scalarsOf(table: FieldTable, further: readonly FieldFacts[] = []): readonly ScalarRow[] {
  return [...table.values(), ...further].flatMap(({ scalar }) => scalar ?? [])
}

/** Reads the scalars of a client's request. @throws GatewayError 400 naming the field, for a value of another type */
export function readScalars(fields: Json, table: FieldTable): Scalars {
  const scalars: Record<string, Scalars[string]> = {}
  for (const { field, scalar, kind = scalar?.kind } of table.values()) {
    if (kind === undefined) continue
    const value = optional(readers[kind], valueAt(fields, field), field)
    if (scalar && value !== undefined) scalars[scalar.name] = { value, field }
  }
  return scalars
}

function valueAt(fields: Json, field: string): unknown {
  if (!field.includes('.')) return fields[field]
  const [outer = '', member] = field.split('.')
  return member === undefined ? fields[outer] : optional(readObject, fields[outer], outer)?.[member]
}

/**
 * Writes the scalars of a request as fields for a model. If the wire or the model does not accept a value, the value is
 * dropped and listed as a loss (ruling T9).
 */
export function encodeScalars(
  scalars: Scalars,
  rows: readonly ScalarRow[],
  accepts: ReadonlySet<string>,
  losses: Losses,
): Json {
  const body: Json = {}
  for (const row of rows) {
    const asked = scalars[row.name]
    if (asked === undefined) continue
    if (row.ifAccepted && !accepts.has(row.name)) losses.add(asked.field, 'dropped', 'the model does not take it')
    else setAt(body, row.field, clamp(asked, row, losses))
  }
  for (const [name, { field }] of Object.entries(scalars))
    if (!rows.some((row) => row.name === name)) losses.add(field, 'dropped', noSuchField)
  return body
}

const noSuchField = 'the wire has no such field'

function setAt(body: Json, field: string, value: Scalar): void {
  const [outer = '', member] = field.split('.')
  body[outer] = member === undefined ? value : { ...(body[outer] as Json | undefined), [member]: value }
}

function clamp({ value, field }: Scalars[string], { range }: ScalarRow, losses: Losses): Scalar {
  if (range === undefined || typeof value !== 'number') return value
  const [least, most] = range
  const clamped = Math.min(most, Math.max(least, value))
  if (clamped !== value) losses.add(field, 'clamped', `the wire takes ${least} to ${most}`)
  return clamped
}

/**
 * Returns what becomes of a client's field on a model of another wire.
 * @param client the client's wire
 * @throws Error if the tables of neither wire define a fate
 */
export function fateOf(facts: FieldFacts, client: ClientWire, { name, model }: FieldTaker): NotedFate {
  const { field, scalar, to, always } = facts
  if (scalar !== undefined)
    return scalarFate(
      field,
      model.scalars.find((row) => row.name === scalar.name),
    )
  const fate = always ?? to.get(name) ?? model.fates?.[client][field]
  if (fate === undefined) throw new Error(`nothing says what becomes of ${client}'s ${field} on ${name}`)
  return fate
}

/** The part of a wire's description that shows which fields models of the wire accept. */
type FieldTaker = {
  name: ModelWire
  model: {
    scalars: readonly ScalarRow[]
    fates?: Readonly<Record<ClientWire, Readonly<Record<string, NotedFate>>>>
  }
}

function scalarFate(field: string, row: ScalarRow | undefined): NotedFate {
  if (row === undefined) return ['dropped', noSuchField]
  return [row.field === lastOf(field) ? 'carried' : 'mapped', `\`${row.field}\`${row.note ?? ''}`]
}

import type { ModelWire } from '../../catalog/wire-names.ts'

/**
 * The fate of a request field if the model has another wire. The field is `carried` unchanged, `mapped` to another
 * form, `dropped` and logged (ruling T9), or `refused` with 400.
 */
export type FieldOutcome = 'carried' | 'mapped' | 'dropped' | 'refused'

/** The fate of a field on one wire. The note names the field that replaces it, or tells why it is dropped. */
export type NotedFate = readonly [fate: FieldOutcome, note: string]

export type FieldFacts = {
  field: string
  /**
   * The field's fate on each model's wire. Empty for a scalar, whose fate `fateOf` derives from the rows of the
   * client's wire and the model's wire.
   */
  to: ReadonlyMap<ModelWire, NotedFate>
  /** Set if the field has the same fate on all other wires. */
  always?: NotedFate
  /** The error text after the field's name. Set if the field is refused with any value but null and an empty list. */
  refusal?: string
  /** Set if the field is a scalar (a single value). */
  scalar?: ScalarRow
  /** For a field that no other wire has: the type of its values. A value of this type is dropped, any other refused. */
  kind?: ScalarRow['kind']
}

/** A scalar of a request on one wire. A scalar is a field with a single value. */
export type ScalarRow = {
  /** The name of the field on the wire. For a member of an object, the name is a path with a dot: `a.b`. */
  field: string
  /** The field's common name. Rows of different wires with the same name are about the same field. */
  name: string
  kind: 'number' | 'text'
  /** The field is sent only if the model's profile accepts it. */
  ifAccepted?: true
  /** The smallest and the largest number that the wire accepts. Other numbers are clamped to this range. */
  range?: readonly [least: number, most: number]
  /** The text after the field's name in the pages of docs/translation. */
  note?: string
}

/** The request fields of one wire, by name. `text.verbosity` is a member of `text` with a fate of its own. */
export type FieldTable = ReadonlyMap<string, FieldFacts>

export function fieldTable(facts: readonly FieldFacts[]): FieldTable {
  return new Map(facts.map((fact) => [fact.field, fact]))
}

/**
 * Returns functions that make the rows of a table.
 * @param wires the wires of models. Each row says for these wires, in this order, what becomes of its field
 */
export function createRows(wires: readonly ModelWire[]) {
  return { field, scalar, dropped, refused }

  function field(name: string, ...fates: readonly NotedFate[]): FieldFacts {
    return { field: name, to: new Map(wires.map((wire, i) => [wire, fates[i]!])) }
  }

  /** Makes a row for a scalar that other wires have too. The last part of the name links the rows of these wires. */
  function scalar(name: string, kind: ScalarRow['kind'], more: Partial<ScalarRow> = {}): FieldFacts {
    return { field: name, to: new Map(), scalar: { field: name, name: lastOf(name), kind, ...more } }
  }

  /**
   * A row for a field that is dropped on every wire of a model.
   * @param kind the required type of the value, if checked
   */
  function dropped(name: string, why: string, kind?: ScalarRow['kind']): FieldFacts {
    return { field: name, to: new Map(), always: ['dropped', why], ...(kind && { kind }) }
  }

  function refused(name: string, refusal: string, note = 'any value'): FieldFacts {
    return { field: name, to: new Map(), always: ['refused', note], refusal }
  }
}

/** Returns the part after the last dot: `verbosity` for `text.verbosity`. */
export function lastOf(field: string): string {
  return field.slice(field.lastIndexOf('.') + 1)
}

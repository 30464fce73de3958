import type { ModelWire } from '../../catalog/wire-names.ts'

/**
 * The fate of a request field on the way to a model of another wire. It is `carried` as it is, `mapped` to another
 * form, `dropped` and listed (ruling T9), or `refused` with 400.
 */
export type FieldOutcome = 'carried' | 'mapped' | 'dropped' | 'refused'

/** The fate of a field on one wire, and to what it is mapped or why it is dropped. */
export type NotedFate = readonly [fate: FieldOutcome, note: string]

export type FieldFacts = {
  field: string
  /** The fate by the wire of the model; of a scalar it follows from the rows of both wires (`fateOf`). */
  to: ReadonlyMap<ModelWire, NotedFate>
  /** The fate on models of every other wire. */
  always?: NotedFate
  /** Set if any value but null is refused: the text for the client, after the field's name. */
  refusal?: string
  /** Set if the field is one value, which is carried by its row. */
  scalar?: ScalarRow
  /** The kind of value of a field that no other wire has: a value of another kind is refused all the same. */
  kind?: ScalarRow['kind']
}

/** One value of a request as one wire has it. */
export type ScalarRow = {
  /** The field of the wire; after a dot, a member of it. */
  field: string
  /** The name by which the rows of all wires find each other. */
  name: string
  kind: 'number' | 'text'
  /** The field is sent only to models whose profile accepts it. */
  ifAccepted?: true
  /** The smallest and the largest number that the wire takes; others become the nearest of these. */
  range?: readonly [least: number, most: number]
  /** Text that the pages of docs/translation add to the field's name. */
  note?: string
}

/** The request fields of one wire, by name; a dotted name is a member that has a fate of its own. */
export type FieldTable = ReadonlyMap<string, FieldFacts>

export function fieldTable(facts: readonly FieldFacts[]): FieldTable {
  return new Map(facts.map((fact) => [fact.field, fact]))
}

/** The functions that write the rows of a table. @param wires the wires of models that the fates are for, in their order */
export function createRows(wires: readonly ModelWire[]) {
  return { field, scalar, dropped, refused }

  function field(name: string, ...fates: readonly NotedFate[]): FieldFacts {
    return { field: name, to: new Map(wires.map((wire, i) => [wire, fates[i]!])) }
  }

  /** One value that other wires have too. Its name between the wires is the end of its own name. */
  function scalar(name: string, kind: ScalarRow['kind'], more: Partial<ScalarRow> = {}): FieldFacts {
    return { field: name, to: new Map(), scalar: { field: name, name: lastOf(name), kind, ...more } }
  }

  /** A field that is dropped whatever the wire of the model. @param kind of its value, if that is checked */
  function dropped(name: string, why: string, kind?: ScalarRow['kind']): FieldFacts {
    return { field: name, to: new Map(), always: ['dropped', why], ...(kind && { kind }) }
  }

  function refused(name: string, refusal: string, note = 'any value'): FieldFacts {
    return { field: name, to: new Map(), always: ['refused', note], refusal }
  }
}

/** `text.verbosity` is `verbosity`. */
export function lastOf(field: string): string {
  return field.slice(field.lastIndexOf('.') + 1)
}

import type { WireName } from '../../catalog/model.ts'

/**
 * What becomes of a request field on the way to a model of another wire:
 * `carried` as it is, `mapped` to another form, `dropped` and listed (ruling T9), or `refused` with 400.
 */
export type FieldOutcome = 'carried' | 'mapped' | 'dropped' | 'refused'

export type FieldFacts = {
  field: string
  /** For each wire of a model that is not the client's own: what happens, and to what. */
  to: readonly (readonly [wire: WireName, fate: FieldOutcome, note: string])[]
  /** Set where any value but null is refused: the text for the client, behind the field's name. */
  refusal?: string
}

/** The request fields of one wire, by name; a dotted name is a member that has a fate of its own. */
export type FieldTable = ReadonlyMap<string, FieldFacts>

/** What becomes of a field on one wire, and to what or why. */
type NotedFate = readonly [fate: FieldOutcome, note: string]

export function fieldTable(facts: readonly FieldFacts[]): FieldTable {
  return new Map(facts.map((fact) => [fact.field, fact]))
}

/** What the rows of a table are written with. @param wires whose models the fates are for, in their order */
export function createRows(wires: readonly WireName[]) {
  return { field, dropped, refused }

  function field(name: string, ...fates: readonly NotedFate[]): FieldFacts {
    return { field: name, to: wires.map((wire, i) => [wire, ...fates[i]!] as const) }
  }

  /** The same for models of every wire. */
  function dropped(name: string, why: string): FieldFacts {
    return field(name, ...wires.map((): NotedFate => ['dropped', why]))
  }

  function refused(name: string, refusal: string, note = 'any value'): FieldFacts {
    return { ...field(name, ...wires.map((): NotedFate => ['refused', note])), refusal }
  }
}

import type { WireName } from '../catalog/model.ts'

/**
 * What becomes of a request field on the way to a model of another wire:
 * `carried` as it is, `mapped` to another form, `dropped` and listed (ruling T9), or `refused` with 400.
 */
export type Verdict = 'carried' | 'mapped' | 'dropped' | 'refused'

export type FieldFacts = {
  field: string
  /** For each wire of a model that is not the client's own: what happens, and to what. */
  to: readonly (readonly [wire: WireName, verdict: Verdict, note: string])[]
  /** Set where any value but null is refused: the text for the client. */
  refusal?: string
}

/** The request fields of one wire, by name; a dotted name is a member that has a fate of its own. */
export type FieldTable = ReadonlyMap<string, FieldFacts>

export function fieldTable(facts: readonly FieldFacts[]): FieldTable {
  return new Map(facts.map((fact) => [fact.field, fact]))
}

import type { Loss } from '../../inference/request.ts'
import type { FieldTable } from './field-table.ts'
import { isAbsent, type Json } from './read-value.ts'
import { refuse } from './refusals.ts'

/**
 * The client's fields that a translation dropped, clamped or rewrote, for the log. A field is listed by its name and
 * with fixed words, once for each reason (rulings T9, U5).
 */
export type Losses = { list: Loss[]; add: (field: string, what: Loss['what'], why: string) => void }

export function createLosses(earlier: readonly Loss[] = []): Losses {
  const list = [...earlier]
  const seen = new Set(list.map(keyOf))
  return { list, add }

  function add(field: string, what: Loss['what'], why: string) {
    const loss = { field, what, why }
    if (seen.has(keyOf(loss))) return
    seen.add(keyOf(loss))
    list.push(loss)
  }
}

function keyOf(loss: Loss): string {
  return `${loss.field} ${loss.what} ${loss.why}`
}

/** Stands for a field that is not in the table. Its real name is the client's text, which is not logged. */
export const unknownField = '(unknown)'

/**
 * Handles the fields that are always refused, and those that exist only on the client's wire. Their fate does not
 * depend on the model's wire. A field that is not in the table is counted without its name, since the name is the
 * client's text.
 */
export function applyFieldTable(fields: Json, table: FieldTable, losses: Losses) {
  for (const field of Object.keys(fields)) {
    const value = fields[field]
    if (isAbsent(value)) continue
    const facts = table.get(field)
    // An empty list requests nothing.
    if (facts?.refusal && Array.isArray(value) && value.length === 0) continue
    if (facts?.refusal) refuse(field, facts.refusal)
    if (!facts) losses.add(unknownField, 'dropped', 'not a field of this wire')
    else if (facts.always?.[0] === 'dropped') losses.add(field, 'dropped', 'no other wire has it')
  }
}

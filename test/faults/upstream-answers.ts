import type { ClientWire } from '../../src/catalog/wire-names.ts'

/** An error as the body or the event of a wire. */
export function errorOf(wire: ClientWire, type: string, message: string): object {
  if (wire === 'messages') return { type: 'error', error: { type, message } }
  return { error: { type, message, code: null, param: null } }
}

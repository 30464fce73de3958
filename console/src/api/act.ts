import { findDoubt, readAmount } from '../pure/amount.ts'
import { ask, refuseFields, type Told } from './ask.ts'

/** Makes the `Idempotency-Key` of a form when it is opened. A creation that is sent twice with the key happens once. */
export function newOnce(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return `console-${[...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

/** Creates something, once even if it is sent several times with the same `once`. @throws Refusal */
export async function create<T>(path: string, body: Record<string, unknown>, once: string): Promise<Told<T>> {
  return ask<T>(path, { method: 'POST', body: withoutNothing(body), headers: { 'idempotency-key': once } })
}

/** Acts on an object that exists. @throws Refusal */
export async function act<T>(path: string, body: Record<string, unknown> = {}): Promise<Told<T>> {
  return ask<T>(path, { method: 'POST', body: withoutNothing(body) })
}

/**
 * Changes an object if it still has the version that was seen. Without a version, the current one is read first. If
 * someone has changed the object meanwhile, the Refusal has its current state.
 * @throws Refusal
 */
export async function edit<T>(path: string, changes: Record<string, unknown>, version?: string): Promise<Told<T>> {
  const seen = version ?? (await ask<T>(path)).version ?? '*'
  return ask<T>(path, { method: 'PATCH', body: withAmounts(changes), headers: { 'if-match': seen } })
}

/** Leaves out fields that are empty. */
function withoutNothing(body: Record<string, unknown>): Record<string, unknown> {
  return withAmounts(
    Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined && value !== '')),
  )
}

/** The fields that people fill with amounts of credits. `warn` is a list of them, with commas between. */
const amounts: ReadonlySet<string> = new Set(['credit', 'credits', 'budget', 'grant', 'warn'])

/** Converts typed amounts to the API's form. @throws Refusal for an amount that can be read as two numbers */
function withAmounts(body: Record<string, unknown>): Record<string, unknown> {
  const typed = Object.entries(body).filter(([name, value]) => amounts.has(name) && typeof value === 'string')
  const errors = typed.flatMap(([name, value]) => {
    const parts = name === 'warn' ? String(value).split(',') : [String(value)]
    return parts.flatMap((part) => findDoubt(part) ?? []).map((detail) => ({ pointer: `/${name}`, detail }))
  })
  refuseFields(errors)
  const read = typed.filter(([name]) => name !== 'warn').map(([name, value]) => [name, readAmount(String(value))])
  return { ...body, ...Object.fromEntries(read) }
}

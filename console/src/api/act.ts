import { ask, type Told } from './ask.ts'

/** What makes a repeated creation the same one: one word for each form that is opened. */
export function newOnce(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return `console-${[...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

/** Creates something, once however often it is sent. @throws Refusal */
export async function create<T>(path: string, body: Record<string, unknown>, once: string): Promise<Told<T>> {
  return ask<T>(path, { method: 'POST', body: withoutNothing(body), headers: { 'idempotency-key': once } })
}

/** Does something to what is there. @throws Refusal */
export async function act<T>(path: string, body: Record<string, unknown> = {}): Promise<Told<T>> {
  return ask<T>(path, { method: 'POST', body: withoutNothing(body) })
}

/**
 * Changes what was seen in this version; without one it is looked at first. Who has seen something older is refused, with
 * what is there now.
 * @throws Refusal
 */
export async function edit<T>(path: string, changes: Record<string, unknown>, version?: string): Promise<Told<T>> {
  const seen = version ?? (await ask<T>(path)).version ?? '*'
  return ask<T>(path, { method: 'PATCH', body: changes, headers: { 'if-match': seen } })
}

/** A field that was left empty is not sent. */
function withoutNothing(body: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined && value !== ''))
}

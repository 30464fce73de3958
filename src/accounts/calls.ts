import type { Calls } from '../inference/usage.ts'

/*
 * Calls of hosted tools as the ledger has them (ruling C11): how many in all, and of each kind as one short text, in the
 * order of the kinds, so that the same calls are the same text: `file_search:1,web_search:3`.
 */

/** What a kind of call may be named: the text has no quoting. */
export const callKind = /^[a-z][a-z0-9_]{0,63}$/

export function countCalls(calls: Calls): number {
  return Object.values(calls).reduce((sum, count) => sum + count, 0)
}

/** @returns undefined where there is none. */
export function formatCalls(calls: Calls | undefined): string | undefined {
  const kinds = Object.keys(calls ?? {}).sort()
  return kinds.length === 0 ? undefined : kinds.map((kind) => `${kind}:${calls![kind]}`).join(',')
}

/** The inverse; what is no count is left out, as in a ledger that was tampered with. */
export function parseCalls(text: string | null | undefined): Calls | undefined {
  if (!text) return undefined
  const pairs = text.split(',').map((pair) => pair.split(':'))
  return Object.fromEntries(
    pairs.filter(([, count]) => /^\d{1,9}$/.test(count ?? '')).map(([kind, count]) => [kind!, Number(count)]),
  )
}

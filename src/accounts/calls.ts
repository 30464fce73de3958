import type { Calls } from '../inference/usage.ts'

/*
 * Calls of hosted tools in the ledger (ruling C11): their total number, and one short text with the count of each kind.
 * Kinds are sorted, so equal calls have equal texts: `file_search:1,web_search:3`.
 */

/** The form of the name of a kind of call. The text of the counts has colons and commas, so a name has neither. */
export const callKind = /^[a-z][a-z0-9_]{0,63}$/

export function countCalls(calls: Calls): number {
  return Object.values(calls).reduce((sum, count) => sum + count, 0)
}

/** Formats the counts as one text. @returns undefined if there are no calls */
export function formatCalls(calls: Calls | undefined): string | undefined {
  const kinds = Object.keys(calls ?? {}).sort()
  return kinds.length === 0 ? undefined : kinds.map((kind) => `${kind}:${calls![kind]}`).join(',')
}

/**
 * Parses a text that `formatCalls` made. Invalid counts are left out. Only a ledger that was tampered with has them.
 */
export function parseCalls(text: string | null | undefined): Calls | undefined {
  if (!text) return undefined
  const pairs = text.split(',').map((pair) => pair.split(':'))
  return Object.fromEntries(
    pairs.filter(([, count]) => /^\d{1,9}$/.test(count ?? '')).map(([kind, count]) => [kind!, Number(count)]),
  )
}

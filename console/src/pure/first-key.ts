import { findDoubt, readAmount } from './amount.ts'
import { readCredits } from './format.ts'

/** The largest 64-bit integer: the most nano-credits that the gateway can store. */
const nanosMax = 2n ** 63n - 1n

/**
 * Checks the label and the budget of a first key as the gateway does, because its account is created before it.
 * @returns the faults, as a refusal by the gateway has them
 */
export function findKeyFaults({ label, budget }: { label: string; budget: string }) {
  const faults = { label: findLabelFault(label.trim()), budget: findBudgetFault(budget.trim()) }
  return Object.entries(faults).flatMap(([name, detail]) => (detail ? { pointer: `/${name}`, detail } : []))
}

function findLabelFault(label: string): string | undefined {
  if ([...label].length > 100 || /\p{C}/u.test(label)) return 'A label has 1 to 100 characters, and all can be seen'
  return /sk-tri-|tri-(?:op|at|rt)-/.test(label) ? 'A label is not secret: it must not hold a key' : undefined
}

function findBudgetFault(budget: string): string | undefined {
  if (budget === '' || budget === 'none') return undefined
  const doubt = findDoubt(budget)
  if (doubt) return doubt
  const [, credits] = /^\+?(\d+(?:\.\d{1,9})?)(?:\/(?:day|week|month))?$/.exec(readAmount(budget)) ?? []
  const nanos = readCredits(credits)
  if (nanos > 0n && nanos <= nanosMax) return undefined
  return 'Write it like 5/day, 20/week, 100/month, or 50 for good, with at most 9 decimals'
}

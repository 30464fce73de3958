import type { Account, Budget } from '../shapes.ts'
import { exactCredits, readCredits } from './format.ts'

export const limitLabels = {
  budget: 'Budget',
  rpm: 'Requests per minute',
  warn: 'Warns below',
  plan: 'Plan',
  grant: 'Monthly grant',
  lapse: 'Unspent grant',
}

export type LimitTexts = Record<keyof typeof limitLabels, string>

/** The words of the form for the unspent rest of a grant. */
export const lapseWords = { stays: 'stays', lapses: 'expires with the next grant' } as const

/** Returns the bounds of an account as texts for form fields. */
export function limitTexts({ budget, rpm, warn, plan, grant }: Account): LimitTexts {
  return {
    budget: spellBudget(budget),
    rpm: rpm == null ? '' : String(rpm),
    warn: warn?.map(spell).join(',') ?? '',
    plan: plan ?? '',
    grant: grant ? `${spell(grant.credits)}/month` : '',
    lapse: grant?.lapse ? 'lapses' : 'stays',
  }
}

/** Formats a budget as the API reads it, such as `5/day`. */
export function spellBudget(budget: Budget | null): string {
  return budget ? `${spell(budget.credits)}${budget.per ? `/${budget.per}` : ''}` : ''
}

const spell = (credits: string) => exactCredits(readCredits(credits))

/**
 * Makes the body of the request that sends edited fields. A grant and the fate of its rest are one bound, so a change
 * of either sends both.
 * @param changes edited fields; null for emptied ones
 * @param said all fields as they are now
 */
export function limitChanges(
  changes: Readonly<Record<string, string | null>>,
  said: LimitTexts,
): Record<string, unknown> {
  const { grant: _, lapse: __, ...plain } = changes
  if (changes['grant'] === undefined && changes['lapse'] === undefined) return plain
  const grant = said.grant.trim()
  return grant === '' ? { ...plain, grant: null } : { ...plain, grant, lapse: said.lapse === 'lapses' }
}

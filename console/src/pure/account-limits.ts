import type { Account, Budget } from '../shapes.ts'
import { exactCredits, readCredits } from './format.ts'

export const limitLabels = {
  budget: 'Budget',
  rpm: 'Requests per minute',
  warn: 'Warns below',
  plan: 'Plan',
  grant: 'Monthly grant',
  lapse: 'Its rest',
}

export type LimitTexts = Record<keyof typeof limitLabels, string>

/** The two ends of the rest of a grant when its month is over, in the words of the form. */
export const lapseWords = { stays: 'stays', lapses: 'ends with the month' } as const

/** The bounds of an account as form fields have them. */
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

/** A budget as the API reads it: 5/day. */
export function spellBudget(budget: Budget | null): string {
  return budget ? `${spell(budget.credits)}${budget.per ? `/${budget.per}` : ''}` : ''
}

const spell = (credits: string) => exactCredits(readCredits(credits))

/**
 * The body of the request that sends edited fields. A grant and what becomes of its rest are one bound, so either of them sends
 * both. @param changes edited fields, null for those that were emptied @param said all fields as they are now
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

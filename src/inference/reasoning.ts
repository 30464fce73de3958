/** The levels of reasoning, weakest first (R-THINK). */
export const reasoningLevels = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
export type ReasoningLevel = (typeof reasoningLevels)[number]

type BudgetStep = { level: ReasoningLevel; below: number; budgetTokens: number }

/**
 * Maps thinking budgets to levels and back. A budget becomes the first level whose `below` is larger, in tokens. A
 * level becomes its `budgetTokens`.
 */
const steps: readonly BudgetStep[] = [
  { level: 'minimal', below: 1024, budgetTokens: 1024 },
  { level: 'low', below: 4096, budgetTokens: 2048 },
  { level: 'medium', below: 12_288, budgetTokens: 8192 },
  { level: 'high', below: 20_480, budgetTokens: 16_384 },
  { level: 'xhigh', below: 28_672, budgetTokens: 24_576 },
  { level: 'max', below: Number.POSITIVE_INFINITY, budgetTokens: 32_000 },
]

/** The smallest thinking budget that upstreams accept, in tokens. */
const budgetTokensMin = 1024

export function levelOfBudget(budgetTokens: number): ReasoningLevel {
  return steps.find((step) => budgetTokens < step.below)?.level ?? 'max'
}

/** The token budget for a level: at most half of the output cap; undefined if half of the cap is too small. */
export function budgetOfLevel(level: ReasoningLevel, outputTokensCap: number): number | undefined {
  const wanted = steps.find((step) => step.level === level)?.budgetTokens ?? 0
  const budget = Math.min(wanted, Math.floor(outputTokensCap / 2))
  return budget < budgetTokensMin ? undefined : budget
}

/** Returns the strongest supported level up to the wanted one. If all are stronger, returns the weakest one. */
export function supportedLevel(wanted: ReasoningLevel, levels: readonly ReasoningLevel[]): ReasoningLevel | undefined {
  const strength = (level: ReasoningLevel) => reasoningLevels.indexOf(level)
  const byStrength = levels.filter((level) => level !== 'none').sort((a, b) => strength(a) - strength(b))
  return byStrength.findLast((level) => strength(level) <= strength(wanted)) ?? byStrength[0]
}

export function isReasoningLevel(word: string): word is ReasoningLevel {
  return (reasoningLevels as readonly string[]).includes(word)
}

/** The words of a reasoning wish, weakest first (R-THINK). */
export const reasoningLevels = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
export type ReasoningLevel = (typeof reasoningLevels)[number]

type BudgetStep = { level: ReasoningLevel; below: number; budgetTokens: number }

/** Both directions of one mapping: a budget under `below` tokens is the level, the level asks for `budgetTokens`. */
const steps: readonly BudgetStep[] = [
  { level: 'minimal', below: 1024, budgetTokens: 1024 },
  { level: 'low', below: 4096, budgetTokens: 2048 },
  { level: 'medium', below: 12_288, budgetTokens: 8192 },
  { level: 'high', below: 20_480, budgetTokens: 16_384 },
  { level: 'xhigh', below: 28_672, budgetTokens: 24_576 },
  { level: 'max', below: Number.POSITIVE_INFINITY, budgetTokens: 32_000 },
]

/** A smaller thinking budget is refused by the upstreams that take one, in tokens. */
const budgetTokensMin = 1024

export function levelOfBudget(budgetTokens: number): ReasoningLevel {
  return steps.find((step) => budgetTokens < step.below)?.level ?? 'max'
}

/** The budget for a level under an output cap, at most half of it; undefined when that leaves too little to think. */
export function budgetOfLevel(level: ReasoningLevel, outputTokensCap: number): number | undefined {
  const wanted = steps.find((step) => step.level === level)?.budgetTokens ?? 0
  const budget = Math.min(wanted, Math.floor(outputTokensCap / 2))
  return budget < budgetTokensMin ? undefined : budget
}

/** The strongest supported level that is not above the wanted one, else the weakest supported. */
export function supportedLevel(wanted: ReasoningLevel, levels: readonly ReasoningLevel[]): ReasoningLevel | undefined {
  const strength = (level: ReasoningLevel) => reasoningLevels.indexOf(level)
  const byStrength = levels.filter((level) => level !== 'none').sort((a, b) => strength(a) - strength(b))
  return byStrength.findLast((level) => strength(level) <= strength(wanted)) ?? byStrength[0]
}

export function isReasoningLevel(word: string): word is ReasoningLevel {
  return (reasoningLevels as readonly string[]).includes(word)
}

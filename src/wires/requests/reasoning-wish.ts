import type { Profile } from '../../catalog/profile.ts'
import { budgetOfLevel, type ReasoningLevel, supportedLevel } from '../../inference/reasoning.ts'
import type { ReasoningWish } from '../../inference/request.ts'
import type { Losses } from './losses.ts'

/** What is asked of a model that takes a reasoning wish in one way or another; `unsaid`: nothing is sent. */
export type Reasoning =
  | { state: 'unsaid' }
  | { state: 'off' }
  | { state: 'on'; level: ReasoningLevel; budgetTokens: number | undefined }

/** A wish in the words of a model's profile (R-THINK). */
export function resolveReasoning(
  wish: ReasoningWish,
  profile: Profile['reasoning'],
  outputTokensCap: number,
  losses: Losses,
): Reasoning {
  const wanted = wish.level ?? (wish.isAsked ? (profile.default ?? 'medium') : undefined)
  if (wanted === undefined) return { state: 'unsaid' }
  if (profile.style === 'none') {
    if (wanted !== 'none') losses.add('reasoning', 'dropped', 'the model takes no such wish')
    return { state: 'unsaid' }
  }
  if (wanted === 'none' && profile.canDisable) return { state: 'off' }
  const level = supportedLevel(wanted, profile.levels)
  if (level !== wanted) losses.add('reasoning', 'clamped', 'the model has other levels')
  if (profile.style === 'toggle')
    return wanted === 'none' ? { state: 'unsaid' } : { state: 'on', level: wanted, budgetTokens: undefined }
  if (level === undefined) return { state: 'unsaid' }
  const budgetTokens = budgetOfLevel(level, outputTokensCap)
  if (profile.style === 'budget' && budgetTokens === undefined) {
    losses.add('reasoning', 'dropped', 'the output cap leaves no room for it')
    return { state: 'unsaid' }
  }
  return { state: 'on', level, budgetTokens }
}

import { asObject } from '../../bytes/json.ts'
import type { Profile } from '../../catalog/profile.ts'
import { budgetOfLevel, type ReasoningLevel, supportedLevel } from '../../inference/reasoning.ts'
import type { ReasoningWish } from '../../inference/request.ts'
import type { Losses } from './losses.ts'

/** The reasoning that is asked of a model; `unsaid`: nothing is sent. */
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
  // One that does not reason by itself is asked to: a wish to see reasoning is one for some (TS11, R-THINK).
  const usual = profile.default === undefined || profile.default === 'none' ? 'medium' : profile.default
  const wanted = wish.level ?? (wish.isAsked ? usual : undefined)
  if (wanted === undefined) return { state: 'unsaid' }
  if (profile.style === 'none') {
    losses.add('reasoning', 'dropped', 'the model takes no such wish')
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

/**
 * Whether the answer may hold reasoning that its stream does not show in full. Such reasoning cannot be counted before
 * the model's last word (ruling C12).
 * @param sent the fields of the request as it goes to the model, in whatever wire
 */
export function mayHideReasoning(
  sent: (field: string) => unknown,
  { hiddenReasoning, reasoning }: Pick<Profile, 'hiddenReasoning' | 'reasoning'>,
): boolean {
  if (hiddenReasoning === 'never') return false
  const wishes = wishesIn(sent, reasoning.field)
  if (wishes.includes(true)) return true
  const isReasoningUnasked = hiddenReasoning === 'unless_off' || (reasoning.default ?? 'none') !== 'none'
  return isReasoningUnasked && !(wishes.includes(false) && reasoning.canDisable)
}

/** Every place in which servers of the three wires look for a reasoning wish: whether it is one, or one against it. */
function wishesIn(sent: (field: string) => unknown, toggle = 'enable_thinking'): (boolean | undefined)[] {
  const object = asObject(sent('reasoning'))
  return [
    ofWord(sent('reasoning_effort')),
    ofWord(asObject(sent('thinking'))?.['type']),
    ofSwitch(sent(toggle)),
    ofWord(object?.['effort']),
    ofSwitch(object?.['enabled']),
    ofSwitch(object?.['max_tokens']),
    ofWord(asObject(sent('output_config'))?.['effort']),
  ]
}

function ofWord(word: unknown): boolean | undefined {
  return typeof word === 'string' ? word !== 'none' && word !== 'disabled' : undefined
}

function ofSwitch(value: unknown): boolean | undefined {
  return typeof value === 'boolean' || typeof value === 'number' ? Boolean(value) : undefined
}

import { asObject } from '../../bytes/json.ts'
import type { Profile } from '../../catalog/profile.ts'
import { budgetOfLevel, type ReasoningLevel, supportedLevel } from '../../inference/reasoning.ts'
import type { ReasoningWish } from '../../inference/request.ts'
import type { Losses } from './losses.ts'

/** The reasoning to request from a model. `unsaid`: the request says nothing about reasoning. */
export type Reasoning =
  | { state: 'unsaid' }
  | { state: 'off' }
  | { state: 'on'; level: ReasoningLevel; budgetTokens: number | undefined }

/** Converts a request's wish for reasoning to what the model's profile offers (R-THINK). */
export function resolveReasoning(
  wish: ReasoningWish,
  profile: Profile['reasoning'],
  outputTokensCap: number,
  losses: Losses,
): Reasoning {
  // If a client asks to see reasoning, a model that does not reason by default is asked to reason (TS11, R-THINK).
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
 * Whether an answer may contain reasoning that its stream does not show in full. If so, `asked` says that the client
 * asked for reasoning, and `unasked` says that it did not.
 */
export type HiddenReasoning = false | 'unasked' | 'asked'

/**
 * Decides whether the answer may contain hidden reasoning. Hidden reasoning is counted only in the model's final report
 * (ruling C12). Without that report, reasoning time that the stream does not mark is billed only for `asked` (ruling
 * Y7).
 * @param sent returns the fields of the request as sent to the model, in any wire
 */
export function mayHideReasoning(
  sent: (field: string) => unknown,
  { hiddenReasoning, reasoning }: Pick<Profile, 'hiddenReasoning' | 'reasoning'>,
): HiddenReasoning {
  if (hiddenReasoning === 'never') return false
  const wishes = wishesIn(sent, reasoning.field)
  if (wishes.includes(true)) return 'asked'
  const isReasoningUnasked = hiddenReasoning === 'unless_off' || (reasoning.default ?? 'none') !== 'none'
  return isReasoningUnasked && !(wishes.includes(false) && reasoning.canDisable) ? 'unasked' : false
}

/**
 * The request fields by which clients ask for reasoning, and the paths below each field. The path `''` is the field
 * itself. The fields are those of the three wires, of OpenRouter, Qwen and Gemini's chat endpoint, and of the templates
 * of vLLM and SGLang. A client that asks to see reasoning also asks for reasoning (TS11).
 */
const wishPlaces: Readonly<Record<string, readonly string[]>> = {
  reasoning_effort: [''],
  thinking: ['type'],
  reasoning: ['effort', 'enabled', 'max_tokens', 'summary', 'generate_summary'],
  output_config: ['effort'],
  enable_thinking: [''],
  thinking_budget: [''],
  chat_template_kwargs: ['enable_thinking', 'thinking'],
  extra_body: ['google.thinking_config.thinking_level', 'google.thinking_config.thinking_budget'],
}
const wishFields = Object.keys(wishPlaces)

/**
 * Returns the wishes in the sent fields: true to reason, false not to reason, undefined if a field says nothing.
 * @param toggle the name of another field to search, which the profile uses for the wish
 */
function wishesIn(sent: (field: string) => unknown, toggle = 'enable_thinking'): (boolean | undefined)[] {
  const wishes: (boolean | undefined)[] = []
  for (let i = -1; i < wishFields.length; i++) {
    const field = wishFields[i] ?? toggle
    const value = sent(field)
    if (value === undefined) continue
    for (const path of wishPlaces[field] ?? [''])
      wishes.push(wishOf(path === '' ? value : valueUnder(value, path.split('.'))))
  }
  return wishes
}

function valueUnder(value: unknown, path: readonly string[]): unknown {
  return path.reduce((object, member) => asObject(object)?.[member], value)
}

function wishOf(value: unknown): boolean | undefined {
  if (typeof value === 'string') return value !== 'none' && value !== 'disabled'
  return typeof value === 'boolean' || typeof value === 'number' ? Boolean(value) : undefined
}

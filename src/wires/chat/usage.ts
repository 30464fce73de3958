import { asObject, type JsonObject } from '../../bytes/json.ts'
import type { Profile } from '../../catalog/profile.ts'
import {
  firstOf,
  mergeUsage,
  noteCost,
  noteService,
  readCount,
  splitInclusive,
  type Usage,
  type UsageReport,
} from '../../inference/usage.ts'
import { withCalls } from '../answers/native-answer.ts'

/**
 * Decodes usage. On this wire `prompt_tokens` includes cached tokens, while the gateway's counters are disjoint.
 * Servers report cache hits in one of three members, which are read for every profile.
 * @param earlier the counters that the model reported earlier in the same answer
 */
export function decodeUsage(raw: unknown, quirk: Profile['usageQuirk'], earlier?: UsageReport): UsageReport {
  const usage = asObject(raw)
  if (!usage) return {}
  const promptDetails = asObject(usage['prompt_tokens_details'])
  const completionDetails = asObject(usage['completion_tokens_details'])
  const report = splitInclusive({
    usage,
    prompt: usage['prompt_tokens'],
    cached: firstOf([
      promptDetails?.['cached_tokens'],
      usage['prompt_cache_hit_tokens'],
      usage['cached_tokens'],
      usage['cache_read_input_tokens'],
    ]),
    promptDetails,
    completion: usage['completion_tokens'],
    reasoning: completionDetails?.['reasoning_tokens'] ?? usage['reasoning_tokens'],
    total: usage['total_tokens'],
    excludesReasoning: quirk === 'excl_reasoning',
    earlier,
  })
  return noteCost(noteService(withCalls(report, usage), usage), usage)
}

/** A usage object. `place`: `answer`, or the number of the choice that contains the object. */
export type PlacedUsage = { place: unknown; usage: JsonObject }

/** The counters that each choice of an answer has reported so far. The keys are the numbers of the choices. */
export type ChoiceReports = Map<unknown, UsageReport>

/**
 * Returns the usage objects of a chunk or an answer. Its own usage comes first, followed by the usages of its choices.
 */
export function usagesIn({ usage }: JsonObject, choices: readonly unknown[]): PlacedUsage[] {
  const told: PlacedUsage[] = []
  const own = asObject(usage)
  if (own) told.push({ place: 'answer', usage: own })
  for (const [at, choice] of choices.entries()) {
    const { index = at, usage: inside } = asObject(choice) ?? {}
    const counted = asObject(inside)
    if (counted) told.push({ place: index, usage: counted })
  }
  return told
}

/**
 * Decodes the usage objects of a chunk or an answer. If the chunk has no usage of its own, the usages of its choices
 * count. Their output tokens are added up, but the prompt is the same for all choices (Moonshot's documentation of
 * streams with several choices).
 * @param known the counters of earlier chunks, which this function updates
 * @param earlier all counters of earlier chunks
 */
export function joinUsages(
  told: readonly PlacedUsage[],
  known: ChoiceReports,
  quirk: Profile['usageQuirk'],
  earlier?: UsageReport,
): UsageReport {
  const [first] = told
  if (first?.place === 'answer') return decodeUsage(first.usage, quirk, earlier)
  let joined: UsageReport = {}
  for (const { place, usage } of told) {
    if (!known.has(place) && known.size >= choicesMax) continue
    known.set(place, mergeUsage(known.get(place) ?? {}, decodeUsage(usage, quirk, earlier)))
    joined = known.get(place)!
  }
  if (known.size < 2) return joined
  const sums = { ...joined }
  for (const counter of ['outputTokens', 'reasoningTokens'] as const) {
    const counts = [...known.values()].flatMap((report) => report[counter] ?? [])
    if (counts.length > 0) sums[counter] = counts.reduce((sum, count) => sum + count)
  }
  return sums
}

/** The most choices that a request may ask for, as defined by the wire's author. */
export const choicesMax = 128

type ChatUsage = {
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
  prompt_tokens_details: { cached_tokens: number; cache_write_tokens?: number }
  completion_tokens_details: { reasoning_tokens: number }
}

export function encodeUsage(usage: Usage): ChatUsage {
  const prompt = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.outputTokens,
    total_tokens: prompt + usage.outputTokens,
    prompt_tokens_details:
      usage.cacheWriteTokens > 0
        ? { cached_tokens: usage.cacheReadTokens, cache_write_tokens: usage.cacheWriteTokens }
        : { cached_tokens: usage.cacheReadTokens },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  }
}

/** The counters that spec 2.6 requires. */
export function wantedUsage({ prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details }: ChatUsage) {
  const { cached_tokens } = prompt_tokens_details
  return { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details: { cached_tokens } }
}

type ShownCounters = { [name: string]: number | ShownCounters }

/**
 * Returns an upstream's usage object as the client sees it (ruling P10). It has all token counters of the upstream,
 * even the vendor's own, and the counters that spec 2.6 requires. Prices, times and names are removed (spec 1.8).
 * @param isBelieved if false, the billed counters replace the upstream's counters of spec 2.6 (ruling C6)
 */
export function tellUsage(told: Record<string, unknown>, billed: ChatUsage, isBelieved: boolean): ShownCounters {
  const counters = tokenCounters(told)
  fill(counters, wantedUsage(billed), isBelieved)
  return counters
}

/** Whether a usage object has members that are no token counters, so that it must not be shown unchanged. */
export function holdsMoreThanTokens(usage: Record<string, unknown>): boolean {
  for (const name of Object.keys(usage)) {
    const value = usage[name]
    if (value === null) continue
    const inner = detailsIn(name, value)
    if (inner ? holdsMoreThanTokens(inner) : !isTokenCounter(name, value)) return true
  }
  return false
}

function tokenCounters(usage: Record<string, unknown>): ShownCounters {
  const counters: ShownCounters = {}
  for (const [name, value] of Object.entries(usage)) {
    const inner = detailsIn(name, value)
    if (inner) {
      const details = tokenCounters(inner)
      if (Object.keys(details).length > 0) counters[name] = details
    } else if (isTokenCounter(name, value)) counters[name] = value
  }
  return counters
}

function isTokenCounter(name: string, value: unknown): value is number {
  return name.endsWith('tokens') && readCount(value) !== undefined
}

function detailsIn(name: string, value: unknown): Record<string, unknown> | undefined {
  return name.endsWith('_details') ? asObject(value) : undefined
}

function fill(counters: ShownCounters, wanted: ShownCounters, isBelieved: boolean): void {
  for (const [name, want] of Object.entries(wanted)) {
    const there = counters[name]
    if (typeof want === 'object') {
      const inner = typeof there === 'object' ? there : {}
      fill(inner, want, isBelieved)
      counters[name] = inner
    } else if (!isBelieved || typeof there !== 'number') counters[name] = want
  }
}

import { asObject } from '../../bytes/json.ts'
import { type Calls, readCount, type UsageReport } from '../../inference/usage.ts'
import { objectsOf } from './read-answer.ts'

/*
 * Calls of the provider's own tools, as an answer reports them (ruling C11). They have no price of tokens. If a model's
 * entry prices one, its count is billed.
 */

/**
 * The members in which providers count them, by kind, and the ending of each kind's name there. They are
 * `web_search_requests` on messages and in OpenRouter's usage, and `web_search_calls` in xAI's. Neither name means
 * anything else on any wire, so both are read on all.
 */
const tellings = [
  { member: 'server_tool_use', ending: '_requests' },
  { member: 'server_side_tool_usage_details', ending: '_calls' },
]

/**
 * The report with the calls that its usage object counts. A value that is not a count is reported as a count that is
 * not believed (ruling C6).
 */
export function withCalls(report: UsageReport, usage: Record<string, unknown>): UsageReport {
  if (tellings.every(({ member }) => usage[member] == null)) return report
  const calls = new Map<string, number>()
  for (const { member, ending } of tellings) {
    if (usage[member] == null) continue
    for (const [name, value] of Object.entries(asObject(usage[member]) ?? {})) {
      if (!name.endsWith(ending) || value == null || calls.size >= kindsMax) continue
      calls.set(name.slice(0, -ending.length), readCount(value) ?? Number.POSITIVE_INFINITY)
    }
  }
  return calls.size === 0 ? report : { ...report, calls: Object.fromEntries(calls) }
}

/** One call more. */
export function countSeen(seen: Calls = {}, kind: string): Calls {
  if (seen[kind] === undefined && Object.keys(seen).length >= kindsMax) return seen
  return { ...seen, [kind]: (seen[kind] ?? 0) + 1 }
}

/**
 * The calls of hosted tools among the blocks or items of an answer, for providers that do not count them.
 * @param calledBy the kind of hosted tool that one of them calls
 */
export function callsIn(
  list: unknown,
  calledBy: (one: Record<string, unknown>) => string | undefined,
): Calls | undefined {
  let seen: Calls | undefined
  for (const kind of objectsOf(list).map(calledBy)) if (kind) seen = countSeen(seen, kind)
  return seen
}

/** No provider has as many tools of its own. */
const kindsMax = 64

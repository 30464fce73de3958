import { asObject } from '../../bytes/json.ts'
import { type Calls, readCount, type UsageReport } from '../../inference/usage.ts'

/*
 * What an answer tells of calls of its provider's own tools (ruling C11). They have no price of tokens: where a model's entry
 * prices one, its count is billed.
 */

/**
 * Where providers count them, by kind, and what each kind's name ends in there: `web_search_requests` on messages and in
 * OpenRouter's usage, `web_search_calls` in xAI's. Neither means anything else on any wire, so both are read on all.
 */
const tellings = [
  { member: 'server_tool_use', ending: '_requests' },
  { member: 'server_side_tool_usage_details', ending: '_calls' },
]

/** The report with the calls that its usage object counts. What is no count is told as one that nobody believes (ruling C6). */
export function withCalls(report: UsageReport, usage: Record<string, unknown>): UsageReport {
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

/** No provider has as many tools of its own. */
const kindsMax = 64

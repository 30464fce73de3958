import { asObject } from '../../bytes/json.ts'
import type { Model } from '../../catalog/model.ts'
import { sha256Base62 } from '../../ids/digest.ts'
import type { Fault } from '../../inference/answer.ts'
import { type Calls, readCount, type Usage, type UsageReport } from '../../inference/usage.ts'
import { brokenFault, faultOfError } from './faults.ts'
import { JsonPatch, type Wanted } from './json-patch.ts'
import { objectsOf } from './read-answer.ts'

/** The facts with which the answer of a native model is adapted (ruling P2). They are fixed for the whole answer. */
export type NativeHead = {
  requestId: string
  model: Model
  createdSeconds: number
  /** Billed if the model never reports its input (ruling C3). */
  inputTokensEstimate: number
}

/** An id for an answer whose upstream gave none with the wire's prefix (ruling P3). */
export function mintAnswerId(prefix: string, { requestId }: Pick<NativeHead, 'requestId'>): string {
  return prefix + sha256Base62(`${requestId}/answer`, 24)
}

/** An id for a call whose upstream gave none. @param place tells it from the others of the answer, and is the same in each event */
export function mintCallId(
  prefix: string,
  { requestId }: Pick<NativeHead, 'requestId'>,
  place: string | number,
): string {
  return prefix + sha256Base62(`${requestId}/call/${place}`, 24)
}

/** The members that name, identify and describe an answer, where the upstream's own may not be shown (rulings P2, P3, P9). */
export function headValues(
  head: NativeHead,
  answer: Record<string, unknown>,
  prefix: string,
): Map<string, string | undefined> {
  const values = withoutTelling(answer)
  if (answer['model'] !== head.model.id) values.set('model', JSON.stringify(head.model.id))
  if (typeof answer['id'] !== 'string' || !isPlainId(answer['id'], prefix))
    values.set('id', JSON.stringify(mintAnswerId(prefix, head)))
  return values
}

/** Clouds write a word of their own after the prefix, as `msg_bdrk_` and `msg_vrtx_`: it shows who serves the model (ruling P9). */
function isPlainId(id: string, prefix: string): boolean {
  return id.startsWith(prefix) && !/^[a-z]+_/.test(id.slice(prefix.length))
}

/**
 * Renames the models that a usage object names at any depth, as `iterations` of the messages wire do (spec 1.8, ruling P2).
 * The answering model gets the client's name for it, and a name of any other model is left out. So is what the provider charges.
 * @param usage as it was parsed; it stands at `path` of the patch
 */
export function renameInUsage(
  patch: JsonPatch,
  path: readonly string[],
  usage: unknown,
  { model }: Pick<NativeHead, 'model'>,
): void {
  if (typeof usage !== 'object' || usage === null) return
  for (const [key, value] of Object.entries(usage)) {
    if (costNames.has(key)) {
      patch.set(path, new Map([[key, undefined]]))
      continue
    }
    renameInUsage(patch, [...path, key], value, { model })
    if (key !== 'model' || value === null || value === model.id) continue
    patch.set(path, new Map([[key, value === model.upstreamModel ? JSON.stringify(model.id) : undefined]]))
  }
}

/** Members of a usage by which providers report what they charge; no client is shown that (rulings P10, X14). See `noteCost`. */
const costNames: ReadonlySet<string> = new Set(['cost', 'cost_details', 'cost_in_usd_ticks', 'total_cost', 'is_byok'])

/**
 * Whether the model's own figures are the billed ones, so that they may stay as they came (rulings C6, P10).
 * @param told as the model reported them, in the words of its wire
 * @param wanted the billed ones, in the same words
 */
export function isBelieved(
  { flags }: UsageReport,
  billed: Usage,
  told: Record<string, unknown> | undefined,
  wanted: Wanted,
): boolean {
  return !billed.estimated && !flags?.length && (told === undefined || agrees(told, wanted))
}

/** Whether each counter that was reported is the wanted one. */
function agrees(told: Record<string, unknown>, wanted: Wanted): boolean {
  return Object.entries(wanted).every(([name, want]) => {
    const there = told[name]
    if (typeof want === 'object') return agrees(asObject(there) ?? {}, want)
    return readCount(there) === undefined || there === want
  })
}

/** A whole answer, to be looked into and edited; or the fault that it is, or tells of. */
export function openAnswer(body: Buffer): { state: 'open'; patch: JsonPatch } | { state: 'failed'; fault: Fault } {
  let patch: JsonPatch
  try {
    patch = new JsonPatch(body)
  } catch {
    return { state: 'failed', fault: brokenFault('the answer is not a JSON object') }
  }
  const error = patch.value['error']
  return error == null ? { state: 'open', patch } : { state: 'failed', fault: faultOfError(error) }
}

/** Members by which servers reveal their software, settings and speed (ruling P9); the specification has none of them. */
export const tellingNames: readonly string[] = [
  'system_fingerprint', // the build of the server, on the chat wire
  'timings', // llama.cpp
  '__verbose', // llama.cpp, its settings
  'generation_settings', // llama.cpp
  'provider', // OpenRouter
  'x_groq', // Groq, with ids and times
  'time_info', // Cerebras
  'perf_metrics', // Fireworks
  'kv_transfer_params', // vLLM
  'nvext', // NVIDIA's servers
  'weight_version', // SGLang
  'stats', // LM Studio, with the next two
  'model_info',
  'runtime',
  'amazon-bedrock-invocationMetrics', // Bedrock, with the next two
  'amazon-bedrock-guardrailAction',
  'amazon-bedrock-trace',
  'prompt_filter_results', // Azure, with the next one, which stands in choices
  'content_filter_results',
]

const telling = new Set(tellingNames)

/** The edits that remove those members that reveal something; a null does not. */
export function withoutTelling(answer: Record<string, unknown>): Map<string, string | undefined> {
  const values = new Map<string, string | undefined>()
  for (const name of Object.keys(answer)) if (telling.has(name) && answer[name] != null) values.set(name, undefined)
  return values
}

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

/** The report with the calls that its usage object counts. A value that is no count becomes one that is not believed (ruling C6). */
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

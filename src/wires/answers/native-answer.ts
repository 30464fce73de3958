import { decodeUtf8 } from '../../bytes/frame-cutter.ts'
import { asObject } from '../../bytes/json.ts'
import { ownCopy } from '../../bytes/memory.ts'
import type { Model } from '../../catalog/model.ts'
import { sha256Base62 } from '../../ids.ts'
import type { Fault } from '../../inference/answer.ts'
import { mostTokensOf } from '../../inference/estimate.ts'
import { type Spoken, splitTokens, TextMeter } from '../../inference/meter.ts'
import { type Calls, readCount, type Usage, type UsageReport } from '../../inference/usage.ts'
import { brokenFault, faultOfError } from './faults.ts'
import { JsonPatch, type Wanted } from './json-patch.ts'
import { objectsOf } from './read-answer.ts'

/**
 * The facts by which the answer of a native model is adapted (ruling P2). A native model speaks the client's wire. The
 * facts stay the same for the whole answer.
 */
export type NativeHead = {
  requestId: string
  model: Model
  createdSeconds: number
  /** The number of input tokens to bill if the model never reports this number (ruling C3). */
  inputTokensEstimate: number
}

/** Makes an id for an answer whose upstream sent no id with the wire's prefix (ruling P3). */
export function mintAnswerId(prefix: string, { requestId }: Pick<NativeHead, 'requestId'>): string {
  return prefix + sha256Base62(`${requestId}/answer`, 24)
}

/**
 * Makes an id for a tool call that has none.
 * @param place identifies the call within the answer; the same in all its events
 */
export function mintCallId(
  prefix: string,
  { requestId }: Pick<NativeHead, 'requestId'>,
  place: string | number,
): string {
  return prefix + sha256Base62(`${requestId}/call/${place}`, 24)
}

/**
 * Returns new values for members that name, identify or describe an answer. They replace values of the upstream that
 * must not be shown (rulings P2, P3, P9).
 */
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

/**
 * Whether an id has only the wire's prefix. Clouds add a word after the prefix, such as `msg_bdrk_` and `msg_vrtx_`,
 * which reveals the host (ruling P9). LiteLLM writes the provider and its own model id in base64, after `litellm:`.
 */
function isPlainId(id: string, prefix: string): boolean {
  return id.startsWith(prefix) && !/^(?:[a-z]+_|bGl0ZWxsb)/.test(id.slice(prefix.length))
}

/**
 * Renames models in a usage object at any depth, for example in `iterations` of the messages wire (spec 1.8, ruling
 * P2). The client's name replaces the name of the answering model. Names of other models are removed, and so are the
 * provider's charges.
 * @param usage the parsed usage, which is at `path` of the patch
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
    const isIts = model.routes.some(({ serving }) => serving.upstreamModel === value)
    patch.set(path, new Map([[key, isIts ? JSON.stringify(model.id) : undefined]]))
  }
}

/**
 * Members of a usage that report the provider's charges. Clients never see these (rulings P10, X14). See `noteCost`.
 */
const costNames: ReadonlySet<string> = new Set([
  ...['cost', 'cost_details', 'cost_in_usd_ticks', 'estimated_cost', 'total_cost', 'market_cost', 'is_byok'],
])

/**
 * Whether the model's own figures agree with the billed ones, so that the answer can keep them (rulings C6, P10).
 * @param told the figures that the model reported, in the words of its wire
 * @param wanted the billed figures, in the same words
 */
export function isBelieved(
  { flags }: UsageReport,
  billed: Usage,
  told: Record<string, unknown> | undefined,
  wanted: Wanted,
): boolean {
  return !billed.estimated && !flags?.length && (told === undefined || agrees(told, wanted))
}

/** Whether each reported counter equals the wanted one. */
function agrees(told: Record<string, unknown>, wanted: Wanted): boolean {
  return Object.entries(wanted).every(([name, want]) => {
    const there = told[name]
    if (typeof want === 'object') return agrees(asObject(there) ?? {}, want)
    return readCount(there) === undefined || there === want
  })
}

/** Opens a whole answer for reading and editing. Fails if the answer is an error or contains an error. */
export function openAnswer(body: Buffer): { state: 'open'; patch: JsonPatch } | { state: 'failed'; fault: Fault } {
  let patch: JsonPatch
  try {
    patch = new JsonPatch(body)
  } catch {
    return { state: 'failed', fault: brokenFault('the answer is not a JSON object') }
  }
  const error = patch.value['error']
  return error ? { state: 'failed', fault: faultOfError(error) } : { state: 'open', patch }
}

/**
 * Members in which servers reveal their software, settings and speed (ruling P9). The wires require none of them.
 */
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
  'weight_version', // SGLang, with the next one
  'sglext',
  'stats', // LM Studio, with the next two
  'model_info',
  'runtime',
  'amazon-bedrock-invocationMetrics', // Bedrock, with the next two
  'amazon-bedrock-guardrailAction',
  'amazon-bedrock-trace',
  'prompt_filter_results', // Azure; the next four too, which are in each choice
  'content_filter_results',
  'content_filter_result', // sent if the filter itself has failed
  'content_filter_raw',
  'content_filter_offsets',
  'content_filters', // Azure, on the responses wire
  'usage_breakdown', // Groq, with the names of further models
  'provider_metadata', // Vercel's gateway, with its routes and costs; the next two too
  'providerMetadata',
  'generationId',
  'openrouter_metadata', // OpenRouter, with its routes
  'cost', // OpenCode Zen, in a last chunk or ping, with the next two
  'x-opencode-type',
  'normalizedUsage',
  'x_nanogpt_pricing', // NanoGPT
  'meta', // AI/ML API, with its charge
  'vertex_ai_grounding_metadata', // LiteLLM with a model of Vertex AI; the next three too
  'vertex_ai_url_context_metadata',
  'vertex_ai_safety_results',
  'vertex_ai_citation_metadata',
]

const telling = new Set(tellingNames)

/** Returns edits that remove the members in `tellingNames` from an answer. A null stays, since it reveals nothing. */
export function withoutTelling(answer: Record<string, unknown>): Map<string, string | undefined> {
  const values = new Map<string, string | undefined>()
  for (const name of Object.keys(answer)) if (telling.has(name) && answer[name] != null) values.set(name, undefined)
  return values
}

/** Removes the members in `tellingNames` from a choice of the chat wire, and from its message or delta. */
export function hideInChoice(patch: JsonPatch, place: number, choice: Record<string, unknown>): void {
  const path = ['choices', `${place}`]
  patch.set(path, withoutTelling(choice))
  for (const key of ['delta', 'message']) {
    const inner = asObject(choice[key])
    if (inner) patch.set([...path, key], withoutTelling(inner))
  }
}

/*
 * Calls of the provider's own tools, as an answer reports them (ruling C11). They are billed per call, not per token,
 * if the model's entry sets a price.
 */

/**
 * The members of a usage object in which providers count calls of their own tools. In such a member, each key is a kind
 * of tool with the suffix `ending`. Messages and OpenRouter send `web_search_requests`, xAI sends `web_search_calls`.
 * OpenAI sends `tool_usage` beside the usage, with the count in `web_search.num_requests`. All wires read all of them.
 */
const tellings: { member: string; ending: string; inner?: string }[] = [
  { member: 'server_tool_use', ending: '_requests' },
  { member: 'server_side_tool_usage_details', ending: '_calls' },
  { member: 'tool_usage', ending: '', inner: 'num_requests' },
]

/**
 * Copies the numbers of tool calls from a usage object to the report. An invalid number becomes infinity, which is
 * never believed (ruling C6).
 */
export function withCalls(report: UsageReport, usage: Record<string, unknown>): UsageReport {
  if (tellings.every(({ member }) => usage[member] == null)) return report
  const calls = new Map<string, number>()
  for (const { member, ending, inner } of tellings) {
    if (usage[member] == null) continue
    for (const [name, told] of Object.entries(asObject(usage[member]) ?? {})) {
      const value = inner === undefined ? told : asObject(told)?.[inner]
      if (!name.endsWith(ending) || value == null || calls.size >= kindsMax) continue
      calls.set(name.slice(0, name.length - ending.length), readCount(value) ?? Number.POSITIVE_INFINITY)
    }
  }
  return calls.size === 0 ? report : { ...report, calls: Object.fromEntries(calls) }
}

/** Returns the counts of calls of hosted tools, with one more call of this kind. */
export function countSeen(seen: Calls = {}, kind: string): Calls {
  if (seen[kind] === undefined && Object.keys(seen).length >= kindsMax) return seen
  return { ...seen, [kind]: (seen[kind] ?? 0) + 1 }
}

/** Whether calls of hosted tools have a price, in the prices of the model or in the cost of a route. */
export function pricesCalls({ prices, routes }: Pick<Model, 'prices' | 'routes'>): boolean {
  return prices.hasCalls || routes.some(({ serving }) => serving.cost?.hasCalls)
}

/**
 * Counts the calls of hosted tools among the blocks or items of an answer, for providers that do not report a count.
 * @param calledBy returns the kind of hosted tool that a block or item calls
 * @returns undefined without such calls, or if they have no price
 */
export function callsIn(
  { model }: Pick<NativeHead, 'model'>,
  list: unknown,
  calledBy: (one: Record<string, unknown>) => string | undefined,
): Calls | undefined {
  if (!pricesCalls(model)) return undefined
  let seen: Calls | undefined
  for (const kind of objectsOf(list).map(calledBy)) if (kind) seen = countSeen(seen, kind)
  return seen
}

/** The maximum number of kinds of hosted tools that are counted. No provider has as many. */
const kindsMax = 64

/** Raw text is collected until it has more than this many characters. Then it is decoded and counted. */
const batchCharacters = 1024

/** Matches an escape or a non-ASCII byte in a JSON string, held as latin1. Other strings need no decoding. */
const encoded = /[\\\x80-\xff]/

/**
 * Counts the text of a native answer, as evidence for the bill (rulings C3, C10). The decoded text is counted, not
 * bytes or escapes. So an answer costs the same whether it is translated or not.
 */
export class ProducedText {
  isReasoning = false
  readonly #meter = new TextMeter()
  #raw = ''
  #characters = 0
  #reasoningCharacters = 0

  /** Counts a text. @param raw the text between the quotes of a JSON string, with its escapes, as in the frame */
  addRaw(raw: string): void {
    this.#note(raw.length)
    this.#raw += raw
    if (this.#raw.length > batchCharacters) this.#decode()
  }

  add(text: string): void {
    this.#note(text.length)
    if (this.#raw !== '') this.#decode()
    this.#meter.write(text)
  }

  compact(): void {
    this.#raw = ownCopy(this.#raw)
    this.#meter.compact(ownCopy)
  }

  estimateTokens(): number {
    if (this.#raw !== '') this.#decode()
    return this.#meter.estimateTokens()
  }

  /**
   * The estimated tokens, divided into reasoning and answer text. The ratio is taken from the undecoded texts with
   * their escapes, which is accurate enough.
   */
  spoken(): Spoken {
    return splitTokens(this.estimateTokens(), this.#characters, this.#reasoningCharacters)
  }

  #note(characters: number): void {
    this.#characters += characters
    if (this.isReasoning) this.#reasoningCharacters += characters
  }

  #decode(): void {
    const raw = this.#raw
    this.#raw = ''
    this.#meter.write(decodeString(raw))
  }
}

/**
 * Decodes the text between the quotes of a JSON string, given as UTF-8 bytes in latin1. Two escapes that form a
 * surrogate pair become one character.
 */
export function decodeString(raw: string): string {
  if (!encoded.test(raw)) return raw
  const text = decodeUtf8(raw)
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    // The JSON string is invalid, so no client can read this text. The model has produced it nevertheless, so its raw
    // form is counted.
    return text
  }
}

/**
 * Estimates the tokens of complete texts.
 * @param enough a number of tokens. If the texts are too short to have more tokens, they are not counted, and an upper
 * bound is returned. That takes a tenth of the time.
 */
export function estimateTexts(texts: readonly string[], enough = 0): number {
  let characters = 0
  for (const text of texts) characters += text.length
  const most = mostTokensOf(characters)
  if (most <= enough) return most
  const meter = new TextMeter()
  for (const text of texts) meter.write(text)
  return meter.estimateTokens()
}

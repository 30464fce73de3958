import type { RawJson } from '../bytes/json.ts'
import type { ReasoningLevel } from './reasoning.ts'

/**
 * The hub's request: what all three wires can ask, said once, richer than any one of them. It knows no wire; what a
 * wire cannot say is simply absent here, what a wire says in its own way is decoded at its own door.
 */

export type InferenceRequest = {
  /** The wire the client spoke: some losses and defaults depend on it, nothing else may. */
  origin: 'messages' | 'chat' | 'responses'
  /** Catalog id as the client wrote it. */
  modelId: string
  stream: boolean
  /** Leading operator material in order: one turn per source item, one text per source text (R-SYS 1). */
  preamble: OperatorTurn[]
  /** The rest of the conversation, in the client's order. */
  turns: Turn[]
  /** Functions only; namespaces are already flattened (R-GROUP). */
  tools: Tool[]
  toolChoice: ToolChoice
  format: OutputFormat
  /** The client's cap, undefined if it set none. Lowering it to the model's maximum is the encoder's (R-MAX). */
  outputTokensMax?: number
  /** In the client's order, empty ones included (R-STOP cleans). */
  stops: string[]
  sampling: {
    temperature?: number
    topP?: number
    topK?: number
    frequencyPenalty?: number
    presencePenalty?: number
    seed?: number
  }
  reasoning: ReasoningWish
  verbosity?: string
  identity: { user?: string; safetyId?: string }
  /** The client's conversation key, already checked and scoped to its account (R-CACHE); undefined if it has none. */
  cacheKey?: string
  /** What decoding dropped, clamped or rewrote: field names for the log, never content (ruling T9). */
  losses: Loss[]
}

export type Loss = { field: string; what: 'dropped' | 'clamped' | 'rewritten'; why: string }

export type OperatorText = { text: string; cacheMark?: CacheMark }

export type UserTurn = { by: 'user'; parts: UserPart[] }
export type ModelTurn = { by: 'model'; parts: ModelPart[] }
/** System or developer text. In the middle of a conversation it keeps its place (R-SYS 3). */
export type OperatorTurn = { by: 'operator'; level: 'system' | 'developer'; texts: OperatorText[] }
export type Turn = UserTurn | ModelTurn | OperatorTurn

export type UserPart = TextPart | ImagePart | DocumentPart | ToolResultPart
export type ModelPart = TextPart | RefusalPart | ReasoningPart | ToolCallPart

export type CacheMark = { ttl?: '5m' | '1h' }

export type TextPart = { type: 'text'; text: string; cacheMark?: CacheMark }
export type ImagePart = { type: 'image'; mime: string; base64: string; detail?: string; cacheMark?: CacheMark }
export type DocumentPart = {
  type: 'document'
  mime: string
  /** Exactly one of `base64` and `text` is present. */
  base64?: string
  text?: string
  title?: string
  cacheMark?: CacheMark
}
export type ToolResultPart = {
  type: 'tool_result'
  callId: string
  parts: (TextPart | ImagePart | DocumentPart)[]
  isError: boolean
  cacheMark?: CacheMark
}
export type RefusalPart = { type: 'refusal'; text: string }
/** Reasoning of an earlier turn. `sealed` is what the model's provider gave to prove it (ruling T7). */
export type ReasoningPart = { type: 'reasoning'; text: string; sealed?: Sealed }
export type ToolCallPart = {
  type: 'tool_call'
  callId: string
  /** The name the client knows it by; `namespace` when it came from a namespace tool. */
  name: string
  /** Exact argument text as the client sent it; may be blank or not JSON at all (R-ARGS). */
  argumentsText: string
  namespace?: string
  cacheMark?: CacheMark
}

/** Provider-opaque material: never parsed, never logged, sent back only to the same wire and model. */
export type Sealed = { wire: 'messages' | 'responses'; kind: 'signature' | 'redacted' | 'encrypted'; data: string }

export type Tool = {
  /** The bare name the client declared. */
  name: string
  description?: string
  /** undefined: no arguments declared (R-SCHEMA). */
  schema?: RawJson
  strict?: boolean
  namespace?: string
  cacheMark?: CacheMark
}

export type ToolChoice = {
  mode: 'default' | 'auto' | 'none' | 'required' | 'named'
  /** mode `named`. */
  name?: string
  /** `allowed_tools`: only these may be called (R-CHOICE). */
  only?: string[]
  /** undefined: not said. */
  parallel?: boolean
}

export type OutputFormat =
  | { kind: 'text' }
  | { kind: 'json' }
  | { kind: 'schema'; schema: RawJson; name?: string; description?: string; strict?: boolean }

export type ReasoningWish = {
  level?: ReasoningLevel
  /** May the client see reasoning text at all (spec 2.2, 2.7; R-THINK)? */
  isShown: boolean
  /** Did it ask for reasoning in so many words (a summary on responses), so that a model's default level is wanted? */
  isAsked: boolean
  /** responses: sealed signatures were asked for with `include` (ruling T7). */
  wantsSealed: boolean
}

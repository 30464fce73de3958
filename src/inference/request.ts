import type { RawJson } from '../bytes/json.ts'
import type { Text } from '../bytes/json-source.ts'
import type { ReasoningLevel } from './reasoning.ts'

/**
 * The hub's request: all that the wires can ask, in one form, richer than any one of them. It knows no wire. A part
 * that a wire lacks is absent here. A part in a wire's own form is decoded in the wire's folder.
 */

export type InferenceRequest = {
  /** The client's field that holds its conversation: for losses, which name the client's fields. */
  conversationField: string
  stream: boolean
  /** Leading operator material in order: one turn per source item, one text per source text (R-SYS 1). */
  preamble: OperatorTurn[]
  /** Whether the client could tell system from developer text; where it could not, `level` is always `system`. */
  tellsLevels: boolean
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
  scalars: Scalars
  reasoning: ReasoningWish
  /** Whom the client acts for (R-WHO). `either`: its one id for both purposes, where it could not tell them apart. */
  identity: { user?: string; safetyId?: string; either?: string }
  /** The client's conversation key, already checked and scoped to its account (R-CACHE); undefined if it has none. */
  cacheKey?: string
  /**
   * The members of the answer that repeat the request, if the client's wire has such (ruling T12), as JSON text without the braces
   * around them. They are written when the request is read: a stream must not keep its request for them.
   */
  echo?: string
  /** The fields that decoding dropped, clamped or rewrote: field names for the log, never content (ruling T9). */
  losses: Loss[]
}

/** Fields that are one value, by the names in the rows of the wires (`wires/requests/scalars.ts`). */
export type Scalars = Readonly<Record<string, Scalar>>
export type Scalar = number | string

export type Loss = { field: string; what: 'dropped' | 'clamped' | 'rewritten'; why: string }

export type OperatorText = { text: Text }

export type UserTurn = { by: 'user'; parts: UserPart[] }
export type ModelTurn = { by: 'model'; parts: ModelPart[] }
/** System or developer text. In the middle of a conversation it keeps its place (R-SYS 3). */
export type OperatorTurn = { by: 'operator'; level: 'system' | 'developer'; texts: OperatorText[] }
export type Turn = UserTurn | ModelTurn | OperatorTurn

export type UserPart = TextPart | ImagePart | DocumentPart | ToolResultPart
export type ModelPart = TextPart | RefusalPart | ReasoningPart | ToolCallPart

export type TextPart = { type: 'text'; text: Text }
/** `at`: where it stands in the client's body, for the refusal of a model that takes none (ruling R17). */
export type ImagePart = { type: 'image'; at: string; mime: string; base64: string; detail?: string }
export type DocumentPart = {
  type: 'document'
  at: string
  mime: string
  /** Exactly one of `base64` and `text` is present. */
  base64?: string
  text?: string
  title?: string
}
export type ToolResultPart = {
  type: 'tool_result'
  callId: string
  parts: (TextPart | ImagePart | DocumentPart)[]
  isError: boolean
}
type RefusalPart = { type: 'refusal'; text: string }
/** Reasoning of an earlier turn. `sealed` is what the model's provider gave to prove it (ruling T7). */
type ReasoningPart = { type: 'reasoning'; text: Text; sealed?: Sealed }
export type ToolCallPart = {
  type: 'tool_call'
  callId: string
  /** The name the client knows it by; `namespace` when it came from a namespace tool. */
  name: string
  /** Exact argument text as the client sent it; may be blank or not JSON at all (R-ARGS). */
  argumentsText: Text
  namespace?: string
}

/** Provider-opaque material: never parsed, never logged, sent back only to the model that gave it. */
export type Sealed = { kind: 'signature' | 'redacted'; data: string }

export type Tool = {
  /** The place in the client's body where it is declared; undefined for one of ours. */
  at?: string
  /** The bare name the client declared. */
  name: string
  description?: Text
  /** undefined: no arguments declared (R-SCHEMA). */
  schema?: RawJson
  strict?: boolean
  namespace?: string
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
  | { kind: 'schema'; schema: RawJson; name?: string; description?: Text; strict?: boolean }

export type ReasoningWish = {
  level?: ReasoningLevel
  /** May the client see reasoning text at all (spec 2.2, 2.7; R-THINK)? */
  isShown: boolean
  /** Did it ask to see it in so many words, so that the model's default level is wanted, and the text itself? */
  isAsked: boolean
  /** Were sealed proofs asked for (ruling T7)? */
  wantsSealed: boolean
}

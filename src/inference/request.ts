import type { RawJson } from '../bytes/json.ts'
import type { Text } from '../bytes/json-source.ts'
import type { ReasoningLevel } from './reasoning.ts'

/** A request in the form that all wires share. It can express everything that any wire can ask for. */

export type InferenceRequest = {
  /** The name of the client's field that holds the conversation. Losses (see `Loss`) name this field. */
  conversationField: string
  stream: boolean
  /** The operator turns before the conversation: a turn for each item of the request, with its texts (R-SYS 1). */
  preamble: OperatorTurn[]
  /** Whether the client's wire distinguishes system from developer text. If not, `level` is always `system`. */
  tellsLevels: boolean
  /** The conversation after the preamble, in the client's order. */
  turns: Turn[]
  /** Function tools only. Namespaces are flattened already (R-GROUP). */
  tools: Tool[]
  toolChoice: ToolChoice
  format: OutputFormat
  /**
   * The client's output cap in tokens; undefined if the client set no cap. The encoder lowers it to the model's maximum
   * (R-MAX).
   */
  outputTokensMax?: number
  /** Stop sequences in the client's order, including empty ones (R-STOP removes empty ones). */
  stops: string[]
  scalars: Scalars
  reasoning: ReasoningWish
  /**
   * The person for whom the client acts (R-WHO). A wire with only one id for a person sets `either`, and not the other
   * two ids.
   */
  identity: { user?: string; safetyId?: string; either?: string }
  /** The key for the prompt cache (R-CACHE): the conversation key scoped to the account, or an implicit key (Y18). */
  cacheKey?: string
  /**
   * The members of the answer that repeat the request, as JSON text without the outer braces. Undefined if the client's
   * wire has none (ruling T12). They are written early, so that a stream need not keep its request.
   */
  echo?: string
  /**
   * The names of the fields that decoding dropped, clamped or rewrote. They are for the log, and never contain content
   * (ruling T9).
   */
  losses: Loss[]
}

/**
 * Fields with a single value, by the names that all wires share (`ScalarRow` in `wires/requests/field-table.ts`).
 * @property field the client's name of the field, for losses
 */
export type Scalars = Readonly<Record<string, { value: Scalar; field: string }>>
export type Scalar = number | string

export type Loss = { field: string; what: 'dropped' | 'clamped' | 'rewritten'; why: string }

export type OperatorText = { text: Text }

export type UserTurn = { by: 'user'; parts: UserPart[] }
export type ModelTurn = { by: 'model'; parts: ModelPart[] }
/** System or developer text. In the middle of a conversation, the turn keeps its place (R-SYS 3). */
export type OperatorTurn = { by: 'operator'; level: 'system' | 'developer'; texts: OperatorText[] }
export type Turn = UserTurn | ModelTurn | OperatorTurn

export type UserPart = TextPart | ImagePart | DocumentPart | ToolResultPart
export type ModelPart = TextPart | RefusalPart | ReasoningPart | ToolCallPart

export type TextPart = { type: 'text'; text: Text }
/**
 * `at` is the part's place in the client's body. The refusal of a model without image support names this place (ruling
 * R17).
 */
export type ImagePart = { type: 'image'; at: string; mime: string; base64: string; detail?: string }
export type DocumentPart = {
  type: 'document'
  at: string
  mime: string
  /** Either `base64` or `text` is present, never both. */
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
/** Reasoning of an earlier turn. `sealed` is the provider's proof of this reasoning (ruling T7). */
type ReasoningPart = { type: 'reasoning'; text: Text; sealed?: Sealed }
export type ToolCallPart = {
  type: 'tool_call'
  callId: string
  /** The client's name for the tool. `namespace` is set if the tool belongs to a namespace. */
  name: string
  /** The exact argument text that the client sent. It may be blank or invalid JSON (R-ARGS). */
  argumentsText: Text
  namespace?: string
}

/**
 * Material that only the provider can read. It is never parsed or logged, and sent back only to the model that
 * created it.
 */
export type Sealed = { kind: 'signature' | 'redacted'; data: string }

export type Tool = {
  /** The place of the declaration in the client's body; undefined for a tool that we added. */
  at?: string
  /** The client's name for the tool, without its namespace. */
  name: string
  description?: Text
  /** Undefined: the tool declares no arguments (R-SCHEMA). */
  schema?: RawJson
  strict?: boolean
  namespace?: string
}

/** A tool as the client knows it. */
export type ToolName = Pick<Tool, 'name' | 'namespace'>

export type ToolChoice = {
  mode: 'default' | 'auto' | 'none' | 'required' | 'named'
  /** The tool in mode `named`. */
  tool?: ToolName
  /** The only tools that may be called, from `allowed_tools` (R-CHOICE). */
  only?: ToolName[]
  /** Whether the model may call several tools at once. Undefined if the client did not set this. */
  parallel?: boolean
}

export type OutputFormat =
  | { kind: 'text' }
  | { kind: 'json' }
  | { kind: 'schema'; schema: RawJson; name?: string; description?: Text; strict?: boolean }

export type ReasoningWish = {
  level?: ReasoningLevel
  /** Whether the client may see reasoning text (spec 2.2, 2.7; R-THINK). */
  isShown: boolean
  /**
   * Whether the client asked explicitly for reasoning text. If so, the model is asked for the text. If `level` is
   * missing, the model's default level is sent.
   */
  isAsked: boolean
  /** Whether the client asked for proofs of reasoning, which only the provider can read (ruling T7). */
  wantsSealed: boolean
}

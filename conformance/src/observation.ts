import type { Json } from './case.ts'

/** What the client saw of one step. README.md describes the members. */
export type ClientObservation = {
  status: number
  headers: { [name: string]: string }
  /** The body as JSON; absent if it is not JSON, or a stream. */
  body?: Json
  raw: string
  events: SeenEvent[]
  /**
   * Whether a chat stream ended with [DONE], a messages stream with message_stop, a responses stream with its last
   * event.
   */
  done: boolean
  ended: 'complete' | 'cut' | 'left' | 'late'
  /** The first violation of the order of events; absent in a stream that is in order. */
  disorder?: string
  error?: SeenError
} & Partial<Reading>

export type SeenEvent = { event?: string; data: Json }

export type SeenError = { type?: Json; code?: Json; param?: Json; message?: Json }

/** An answer in a wire-neutral form, read from a body or from the events of a stream. */
export type Reading = {
  id?: string
  model?: string
  text: string
  reasoning: string
  refusal: string
  calls: { id: string; name: string; arguments: string; input?: Json }[]
  /** end, length, calls, refusal, or the wire's own word. */
  stop: string | null
  usage?: SeenUsage
}

/** Tokens. `input` is all of the prompt, cached or not, and `reasoning` a part of `output`. */
export type SeenUsage = {
  input?: number
  output?: number
  total?: number
  cached?: number
  cacheWrite?: number
  reasoning?: number
}

/** The request that the model received in one exchange. */
export type ModelObservation = {
  method: string
  path: string
  headers: { [name: string]: string }
  body?: Json
  raw: string
  asked: AskedReading
  /** Whether the gateway closed the connection before the answer was complete. */
  left: boolean
}

/** A request in a wire-neutral form. */
export type AskedReading = {
  model?: Json
  stream: boolean
  system: string
  turns: {
    role: string
    text: string
    reasoning: string
    calls: { id: string; name: string; input?: Json }[]
    results: { id: string; text: string }[]
    images: { type?: string; base64?: string; url?: string }[]
    files: { name?: string; type?: string; base64?: string; url?: string; id?: string }[]
  }[]
  tools: { name: string; description?: Json; parameters?: Json }[]
  /** auto, none, required, or the name of a tool. */
  toolChoice?: string
  maxTokens?: Json
  temperature?: Json
  topP?: Json
  stops?: Json
  /** The JSON schema that the answer must follow. */
  schema?: Json
  /** The effort or the budget of reasoning. */
  reasoning?: Json
}

/*
 * The types that the simulator's three wires share: a prompt after it was read, and a reply before it is written. The
 * simulator shares no type with the gateway, so that it can find the gateway's mistakes.
 */

export type SimulatorWire = 'messages' | 'chat' | 'responses'

/** A piece of the prompt as the model sees it. Cached prefixes end at the borders between segments. */
export type Segment = {
  text: string
  /** Tokens besides those of the text, for example of an image. */
  extraTokens?: number
  mark?: '5m' | '1h'
}

export type PromptTurn = {
  side: 'operator' | 'user' | 'assistant'
  texts: string[]
  images: number
  files: number
  results: { callId: string; text: string }[]
  calls: { id: string; name: string }[]
}

export type OfferedTool = { name: string; namespace?: string; schema: unknown }

export type Prompt = {
  model: string
  isStream: boolean
  /** Tools, system and messages, in the order of rendering. */
  segments: Segment[]
  turns: PromptTurn[]
  tools: OfferedTool[]
  choice: { mode: 'auto' | 'none' | 'required'; name?: string }
  isParallel: boolean
  format: undefined | { schema: unknown }
  reasoning: 'none' | 'hidden' | 'shown'
  stops: string[]
  outputTokensMax: number
  /** The conversation key of the caller. Prefixes are shared within one key. */
  cacheKey: string
}

/** Counters before a wire gives them its own form. `promptTokens` includes cached tokens. */
export type UsageCounts = {
  promptTokens: number
  readTokens: number
  writtenTokens: number
  written1hTokens: number
  /** Reasoning included. */
  outputTokens: number
  reasoningTokens: number
}

export type ReplyCall = {
  id: string | undefined
  name: string
  namespace: string | undefined
  arguments: string
  isCut: boolean
}

/** One answer, in the order in which a model produces it: reasoning, text, calls. */
export type SimulatedReply = {
  reasoning: string | undefined
  isReasoningShown: boolean
  text: string
  calls: ReplyCall[]
  finish: 'stop' | 'stop_sequence' | 'length' | 'tool_calls'
  stopSequence: string | undefined
  /** Set by a script, in the wire's own word, instead of `finish`. */
  rawFinish: string | undefined
  counts: UsageCounts
  /** Set by a script, in the wire's own form; `none` leaves usage out everywhere. */
  rawUsage: Record<string, unknown> | 'none' | undefined
}

/** The values that all frames and objects of one answer share. */
export type ReplyHead = {
  id: string
  createdSeconds: number
  model: string
  body: Record<string, unknown>
  newId: (prefix: string) => string
}

/** One event of a stream. Exactly one of `data`, `comment` and `raw` is set. */
export type Frame = { event?: string; data?: string; comment?: string; raw?: string; delayMs?: number }

/** One wire of the simulator. */
export type WireFormat = {
  path: string
  idPrefix: string
  requestIdHeader: string
  /** @throws Rejection with the vendor's status and code */
  check(body: Record<string, unknown>): void
  read(body: Record<string, unknown>): Prompt
  writeJson(reply: SimulatedReply, head: ReplyHead): Record<string, unknown>
  writeFrames(reply: SimulatedReply, head: ReplyHead): Iterable<Frame>
  /** The error that ends a stream midway. `sequence` is the number of events sent before it. */
  writeFailure(error: Record<string, unknown>, head: ReplyHead, sequence: number): Iterable<Frame>
  writeError(problem: SimulatedError, requestId: string): Record<string, unknown>
}

export type SimulatedError = {
  status: number
  message: string
  param?: string | undefined
  code?: string | undefined
  headers?: Record<string, string>
}

/** A request that the simulated vendor refuses. */
export class Rejection extends Error {
  readonly problem: SimulatedError
  constructor(problem: SimulatedError) {
    super(problem.message)
    this.problem = problem
  }
}

/** Refuses with 400 and the path of the wrong field. The text is the simulator's own. */
export function rejectField(param: string, message: string, code?: string): never {
  throw new Rejection({ status: 400, message: `${param}: ${message}`, param, code })
}

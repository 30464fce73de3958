/*
 * Types that the simulator's three wires share: a prompt that was read, and a reply to write. The simulator shares no
 * types with the gateway, so that it can find the gateway's mistakes.
 */

export type SimulatorWire = 'messages' | 'chat' | 'responses'

/** A part of the rendered prompt. Cached prefixes end at the end of a segment. */
export type Segment = {
  text: string
  /** Tokens in addition to those of the text, for example of an image. */
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
  /** Tools, system prompt and messages, in the order of the rendered prompt. */
  segments: Segment[]
  turns: PromptTurn[]
  tools: OfferedTool[]
  choice: { mode: 'auto' | 'none' | 'required'; name?: string }
  isParallel: boolean
  format: undefined | { schema: unknown }
  reasoning: 'none' | 'hidden' | 'shown'
  stops: string[]
  outputTokensMax: number
  /** The conversation key of the client. Cached prefixes are shared only within a key. */
  cacheKey: string
}

/** Token counts, independent of the wire. `promptTokens` includes cached tokens. */
export type UsageCounts = {
  promptTokens: number
  readTokens: number
  writtenTokens: number
  written1hTokens: number
  /** All tokens of the answer, including reasoning. */
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

/** An answer, in the order in which a model produces it: reasoning, text, calls. */
export type SimulatedReply = {
  reasoning: string | undefined
  isReasoningShown: boolean
  text: string
  calls: ReplyCall[]
  finish: 'stop' | 'stop_sequence' | 'length' | 'tool_calls'
  stopSequence: string | undefined
  /** The finish reason that a script sets, in the words of the wire. It replaces `finish`. */
  rawFinish: string | undefined
  counts: UsageCounts
  /** The usage object that a script sets, in the form of the wire. `none`: no usage is sent. */
  rawUsage: Record<string, unknown> | 'none' | undefined
}

/** Values that all frames and objects of an answer share. */
export type ReplyHead = {
  id: string
  createdSeconds: number
  model: string
  body: Record<string, unknown>
  newId: (prefix: string) => string
}

/** One event of a stream. If several of `raw`, `comment` and `data` are set, only the first of them is sent. */
export type Frame = { event?: string; data?: string; comment?: string; raw?: string; delayMs?: number }

/** One wire of the simulator. */
export type WireFormat = {
  path: string
  idPrefix: string
  requestIdHeader: string
  /** Checks a request as the vendor does. @throws Rejection with the vendor's status and code */
  check(body: Record<string, unknown>): void
  read(body: Record<string, unknown>): Prompt
  writeJson(reply: SimulatedReply, head: ReplyHead): Record<string, unknown>
  writeFrames(reply: SimulatedReply, head: ReplyHead): Iterable<Frame>
  /** Writes an error that ends a stream early. `sequence` is the number of events sent before it. */
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

/** Refuses a request with 400 and the path of the invalid field. The text is not the vendor's. */
export function rejectField(param: string, message: string, code?: string): never {
  throw new Rejection({ status: 400, message: `${param}: ${message}`, param, code })
}

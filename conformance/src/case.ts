/*
 * The types of a case file. case.schema.json has the same types with a sentence about each member. Files are checked
 * with that schema.
 */

/** JSON as it is parsed; undefined stands for a value that is absent. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

export const wires = ['chat', 'responses', 'messages'] as const
export type Wire = (typeof wires)[number]

export const areas = [
  'requests',
  'answers',
  'streams',
  'tools',
  'reasoning',
  'images-and-files',
  'errors',
  'usage',
  'robustness',
  'money',
] as const
export type Area = (typeof areas)[number]

export const levels = ['MUST', 'SHOULD', 'MAY'] as const
export type Level = (typeof levels)[number]

/** Paths of an observation, with a matcher each (src/match.ts). */
export type Expectation = { [path: string]: Json }

/** The public text that a case rests on: a dated page, or two released SDKs that fail without it. */
export type Clause =
  | { source: string; url: string; day: string; says: string }
  | { sdks: { name: string; version: string }[]; says: string }

/** A request in a wire-neutral form. `ask.ts` writes it for a wire. */
export type Ask = {
  system?: string
  text?: string
  turns?: AskTurn[]
  tools?: { name: string; description?: string; parameters: Json }[]
  maxTokens?: number
  stream?: boolean
  /** The name of a tool that must be called. */
  toolChoice?: string
  /** An effort; on messages it is a budget of 1,024 tokens, the smallest. */
  reasoning?: 'low' | 'medium' | 'high'
  /** Names the conversation to the cache; on messages the system text gets a cache mark. */
  cacheKey?: string
  /** Members that are added to the body; null removes one. */
  body?: { [name: string]: Json }
}

export type AskTurn =
  | { user: string }
  | { assistant: string; calls?: { id: string; name: string; input: Json }[] }
  | { results: { id: string; text: string }[] }
  /** An answer of the model as its wire has it, sent back. */
  | { native: { [name: string]: Json }[] }

export type ClientRequest = {
  method?: string
  path?: string
  headers?: { [name: string]: string | null }
  body?: Json
  ask?: Ask
  raw?: string
  base64?: string
  /** The client closes its connection after so many events, or so many milliseconds. */
  leaveAfter?: { events?: number; ms?: number }
}

export type ClientStep = { request: ClientRequest; expect?: Expectation }

export type ScriptedEvent =
  | { event?: string; data: Json }
  | { raw: string }
  | { base64: string }
  | { pauseMs: number }
  | { cut: true }
  | { hang: true }

/** An answer in a wire-neutral form. `answer.ts` writes it for a wire, as JSON or as a stream. */
export type Answer = {
  text?: string
  reasoning?: string
  calls?: { id: string; name: string; input?: Json; arguments?: string }[]
  stop?: 'end' | 'length' | 'calls' | 'refusal'
  usage?: AnswerUsage
  /** The number of pieces in which a stream sends each text. */
  pieces?: number
}

/** Tokens. `input` counts all of the prompt, so `cached` and `cacheWrite` are parts of it; `reasoning` is a part of `output`. */
export type AnswerUsage = {
  input: number
  output: number
  cached?: number
  cacheWrite?: number
  reasoning?: number
}

export type Reply = {
  status?: number
  headers?: { [name: string]: string }
  answer?: Answer
  json?: Json
  events?: ScriptedEvent[]
  raw?: string
  base64?: string
  /** The pause before anything is sent. */
  pauseMs?: number
  /** The body is written in pieces of so many bytes. */
  splitBytes?: number
  /** The body ends after so many bytes, and the connection is destroyed. */
  cutAfterBytes?: number
}

export type Exchange = { expect?: Expectation; reply: Reply }

/** What the model does: exchange by exchange. The last one answers all further requests. */
export type ModelScript = { exchanges: Exchange[]; asked?: Json }

export type WireOrAny = Wire | '*'

export type Case = {
  id: string
  title: string
  area: Area
  level: Level
  clause: Clause
  note?: string
  client: { [wire in WireOrAny]?: { steps: ClientStep[] } }
  model?: { [wire in WireOrAny]?: ModelScript }
  pairs?: string[]
  fields?: string[]
  needs?: string[]
  bill?: { amount: Json }
  endpoint?: boolean
  timeLimitMs?: number
}

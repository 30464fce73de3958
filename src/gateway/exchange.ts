import type { Fault } from '../inference/answer.ts'
import type { Loss } from '../inference/request.ts'
import type { StreamFold, StreamRelay, WholeAnswer } from '../wires/answers/relay.ts'

/** One request on its way to a model, and how the model's answer goes back to the client's wire. */
export type Exchange = {
  /** The path of the model's wire. */
  path: string
  headers: readonly (readonly [string, string])[]
  body: Buffer
  /** The client wants events. */
  stream: boolean
  /** The cap that was sent, or the model's maximum. */
  outputTokensCap: number
  losses: readonly Loss[]
  /** Of the whole request, in tokens; costs a pass over it, so it is asked for once. */
  inputTokensEstimate: number
  /** A fresh relay: one for each attempt. */
  openStream(): StreamRelay
  readWhole(body: Buffer): WholeAnswer
  /** An event stream for a client that wants JSON; undefined where only translation can fold one (ruling P2). */
  openFold: (() => StreamFold) | undefined
  /** A refusal in the model's wire. */
  readRefusal(status: number, bodyText: string): Fault
}

import type { SseFrame } from '../bytes/sse.ts'
import type { Step } from '../bytes/step.ts'
import type { Model } from '../catalog/model.ts'
import type { Profile } from '../catalog/profile.ts'
import type { Answer, AnswerEvent, AnswerHead, BilledEvent } from '../inference/answer.ts'
import type { InferenceRequest, Loss, Sealed } from '../inference/request.ts'
import type { Usage } from '../inference/usage.ts'

/** What decoding a client's request needs beside its body. */
export type DecodeContext = {
  /** The conversation key, checked and scoped to the account; undefined if the client sent none. */
  cacheKey: string | undefined
  /** Opens an envelope of ruling T7 for this account and model; undefined if it is not ours or not for them. */
  unseal: (envelope: string) => Sealed | undefined
}

/** A request in the model's own wire, and what the way back must know about it. */
export type EncodedRequest = {
  /** JSON text for the upstream. The same request encodes to the same bytes (ruling T8). */
  body: string
  /** Upstream tool name → what the client calls it, for every name that differs or has a namespace (R-NAME, R-GROUP). */
  names: ReadonlyMap<string, { name: string; namespace?: string }>
  /** Stop sequences that we enforce because the upstream does not (R-STOP). */
  localStops: readonly string[]
  /** All stop sequences that were asked for, cleaned. */
  stops: readonly string[]
  /** The cap as sent, or the model's maximum where none is sent, in tokens. */
  outputTokensCap: number
  losses: readonly Loss[]
}

/** The half of a wire that translates: what a dialect must be able to do for the hub. Pure, and it never awaits. */
export type Translator = {
  /** @throws GatewayError 400 with the top-level field as `param`, for what cannot be read or carried. */
  decodeRequest(bodyText: string, context: DecodeContext): InferenceRequest
  /** @throws GatewayError 400 naming the client's field, for what this wire or model cannot express. */
  encodeRequest(request: InferenceRequest, model: Model): EncodedRequest
  /** A whole JSON answer of a model, told as the events it would have streamed (laws I1–I10). Never throws. */
  decodeAnswer(bodyText: string, profile: Profile): AnswerEvent[]
  /** A model's stream. `end()` means the upstream closed cleanly. Never throws: what it cannot read becomes `fail`. */
  createDecoder(profile: Profile): Step<SseFrame, AnswerEvent>
  /** What the answer repeats of the request (`AnswerHead.echo`), on a wire that does; read once, the body can go. */
  readEcho?(bodyText: string): string
  /** The whole JSON answer for a client, with the counters that were billed. */
  encodeAnswer(answer: Answer, head: AnswerHead, usage: Usage): string
  /** The stream for a client: SSE text, each event whole. On `fail` an error frame without terminator (ruling T4). */
  createEncoder(head: AnswerHead): Step<BilledEvent, string>
}

import type { KeptKeys } from '../bytes/scan.ts'
import type { RetoldService } from '../catalog/base-service.ts'
import type { CredentialHeaders } from '../catalog/credentials.ts'
import type { Model } from '../catalog/model.ts'
import type { Profile } from '../catalog/profile.ts'
import type { ClientWire, ModelWire } from '../catalog/wire-names.ts'
import type { Answer, BilledEvent } from '../inference/answer.ts'
import type { InferenceRequest, Loss, Sealed } from '../inference/request.ts'
import type { Usage } from '../inference/usage.ts'
import type { ErrorFacts } from './answers/faults.ts'
import type { NativeHead } from './answers/native-answer.ts'
import type { NativeStream } from './answers/native-stream.ts'
import type { Decoder, OnAnswer } from './answers/read-answer.ts'
import type { WholeAnswer } from './answers/relay.ts'
import type { AdaptContext, AdaptedRequest } from './requests/adapt-bytes.ts'
import type { ClientBody } from './requests/client-body.ts'
import type { WireSpeech } from './requests/client-words.ts'
import type { FieldTable, NotedFate, ScalarRow } from './requests/field-table.ts'
import type { HiddenReasoning } from './requests/reasoning-wish.ts'

/**
 * A wire with all its facts. Each wire's folder makes one, and `wires.ts` lists them. No other module refers to a
 * wire by name.
 */
export type Wire = {
  name: ModelWire
  /** The client's side; absent if only models use the wire. */
  client?: ClientHalf
  model: ModelHalf
  /** Handles exchanges between a client and a model of this wire; absent if only models use the wire. */
  native?: Native
}

/** A wire that both clients and models use. */
export type SharedWire = Required<Wire> & { name: ClientWire }

/** The client's side of a wire. The functions are pure and never await. */
export type ClientHalf = {
  /** The path of the gateway for this wire (spec 1.2). */
  path: string
  request: RequestFacts
  /** The fate of each request field if the model speaks another wire: carried, mapped, dropped or refused. */
  fields: FieldTable
  /** The prefix of call ids in answers. Clients of the wire expect it (R-ID). */
  callIdPrefix: string
  /** A second header for the request id, if SDKs of the wire read it from there (ruling R5). */
  requestIdHeader?: string
  /** Whether agents of this wire show the user's spending, which they read from headers of the answer. */
  showsSpend?: true
  /** The HTTP status for a WebSocket probe of the path. This status makes agents switch to HTTP at once (ruling R3). */
  probeStatus?: number
  envelope(facts: ErrorFacts, requestId: string): string
  /** Serves the wire's path for counting tokens (spec 4.2). The gateway counts them without asking a model. */
  counter?: { path: string; countTokens(body: Record<string, unknown>): number }
  /** Whether streaming clients of this wire parse a call's arguments into an object (ruling Y5). */
  streamsObjects?: true
  /** The keys of a request whose values are passed on as the client wrote them, without parsing (ruling T16). */
  keptKeys: KeptKeys
  /**
   * Decodes a client's request to the form that all wires share.
   * @param body the body of a request that has passed `checkFields`
   * @throws GatewayError 400 with the top-level field as `param`, if a value is invalid or cannot be carried
   */
  decodeRequest(body: ClientBody, context: DecodeContext): InferenceRequest
  /** Writes the whole JSON answer for a client, with the billed counters. */
  encodeAnswer(answer: Answer, head: AnswerHead, usage: Usage): string
  /**
   * Creates the encoder of a client's stream. The encoder returns SSE text with whole events. A `fail` event becomes an
   * error frame, and no terminator follows it (ruling T4).
   */
  createEncoder(head: AnswerHead): Encoder
}

/** The model's side of a wire. The functions are pure and never await. */
export type ModelHalf = {
  /** The field names of this wire that a model's refusals mention. They are translated for clients of other wires. */
  speech: WireSpeech
  /** The single-value fields that a request to a model of this wire can have. */
  scalars: readonly ScalarRow[]
  /**
   * For a model with this wire: the fate of each client's field (carried, dropped and so on), by the client's wire.
   * Present only if no client speaks this wire, because the clients' tables then have no column for it.
   */
  fates?: Readonly<Record<ClientWire, Readonly<Record<string, NotedFate>>>>
  /** Makes the headers that carry an upstream's key, or a signature made with the key. */
  credential: CredentialHeaders
  /** The headers for version and betas, if the wire has them (spec 9.2, ruling N3). */
  versionHeaders?: VersionHeaders
  /** Whether models sign their reasoning, and want the signature back in the next turn (ruling T7). */
  signsReasoning: boolean
  /** Finds the sealed parts of translated requests. Absent for a wire without sealed parts. */
  sealing?: Sealing
  /** Encodes a request for a model. @throws GatewayError 400 naming a client's field that this wire cannot express */
  encodeRequest(request: InferenceRequest, model: Model): EncodedRequest
  /**
   * Creates a decoder for one answer of a model. `end()` means that the upstream closed the connection cleanly. The
   * decoder never throws. Unreadable input becomes a `fail` event.
   * @param onAnswer is called with the answer, which may name its model and service (rulings Y13, Y17)
   * @param toolNames the declared names (see `EncodedRequest`); they show when a name received in pieces is complete
   */
  createDecoder(profile: Profile, onAnswer?: OnAnswer, toolNames?: ReadonlySet<string>): Decoder
}

/**
 * The facts of a client's wire by which its requests are checked. They do not depend on the model's wire (ruling R10).
 */
export type RequestFacts = WireSpeech & {
  /** The top-level field of the conversation, and its allowed types in words. */
  conversation: { field: string; kinds: string; mayBeText: boolean }
  isCapRequired: boolean
  /** The field of the conversation key, if the wire has one (spec 4.1). */
  cacheKey?: string
  /** Makes the checks that only this wire needs, for any model. @throws GatewayError 400 */
  check?: (body: ClientBody) => void
}

/** Headers `<spelling>-version` and `<spelling>-beta`. Of two spellings in a request, the first in this list counts. */
export type VersionHeaders = { spellings: readonly string[]; versionDefault: string }

/**
 * The functions for a client and a model that use the same wire. The gateway edits the request, and inspects the answer
 * as it passes (rulings P1, P2).
 */
export type Native = {
  /** Edits a request for a model of this wire. @throws GatewayError 400 if the specification refuses the request */
  adaptRequest(body: ClientBody, model: Model, context: AdaptContext): AdaptedRequest
  /** Absent if the wire has no sealed parts. */
  sealing?: Sealing
  openStream(head: NativeHead): NativeStream
  readAnswer(body: Buffer, head: NativeHead): WholeAnswer
}

/** The sealed parts of a history. Only the provider that sealed a part can open it (ruling U13). */
export type Sealing = {
  /**
   * A quick check. False means that the body surely has no sealed part. Absent if an answer with status 200 never
   * refuses sealed parts.
   */
  mayBeIn?(body: Buffer): boolean
  /** Removes the sealed parts from a body for a model. @returns undefined if the body has no sealed part */
  remove(body: Buffer): Buffer | undefined
  /**
   * Returns a digest of a body's last sealed part. Two conversations never have the same digest. Absent if other
   * accounts of the provider can open the parts too.
   * @returns undefined if there is no sealed part
   */
  lastIn?(body: Buffer): string | undefined
}

/** Writes events to a client's stream. */
export type Encoder = {
  /** Returns the SSE text for an event, in whole frames. Empty if the event sends nothing. */
  write(event: BilledEvent): string
  /** Reduces the memory of kept data while the client does not read. Absent if the encoder keeps nothing. */
  compact?(): void
}

/** The facts that decoding a client's request needs besides the body. */
export type DecodeContext = {
  /** The key for the prompt cache: the conversation key scoped to the account, or an implicit key (ruling Y18). */
  cacheKey: string | undefined
  /**
   * Opens an envelope in which an earlier answer gave the client a model's proof of its reasoning (ruling T7).
   * Undefined if the gateway did not make the envelope for this account and model.
   */
  unseal: (envelope: string) => Sealed | undefined
}

/** A request encoded for the model's wire, with the facts that decoding the answer needs. */
export type EncodedRequest = {
  /** JSON for the upstream, in a buffer of its own. The same request always encodes to the same bytes (ruling T8). */
  body: Buffer
  /** Upstream tool name → client's name, for each name that differs or has a namespace (R-NAME, R-GROUP). */
  names: ReadonlyMap<string, { name: string; namespace?: string }>
  /** The declared tools' names, as the model sees them. */
  toolNames: ReadonlySet<string>
  /** Stop sequences that the gateway enforces because the upstream does not (R-STOP). */
  localStops: readonly string[]
  /** All requested stop sequences, without empty ones and repetitions. */
  stops: readonly string[]
  /** The output cap as sent, in tokens; the model's maximum if no cap is sent. */
  outputTokensCap: number
  /** Whether the answer may contain reasoning that its stream does not show in full (ruling C12). */
  mayHideReasoning: HiddenReasoning
  /** Whether the gateway has added cache marks to the body. Undefined on wires without marks. */
  isMarked?: boolean
  losses: readonly Loss[]
}

/** The facts that an encoder knows before the first event. They are constant for the whole answer. */
export type AnswerHead = {
  /** The seed of all ids that the gateway makes for the answer. A stream and a JSON answer have the same ids (R-ID). */
  requestId: string
  modelId: string
  /** The creation time of the answer, in Unix seconds. */
  createdSeconds: number
  /** Returns the current Unix seconds; called once at the end. Without it, the answer reports a duration of 0. */
  nowSeconds?: () => number
  inputTokensEstimate: number
  /** The members of the answer that repeat the request, as JSON text (`InferenceRequest.echo`); '' without any. */
  echo: string
  /** Returns the tier, speed and geography that the answer has reported so far (ruling Y17). */
  service?: () => RetoldService
  /**
   * Wraps a model's proof of its reasoning into an envelope (ruling T7). Undefined if the client did not ask for
   * proofs.
   */
  seal?: (sealed: Sealed) => string
}

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

/** A wire with all its facts. Its folder makes one, `wires.ts` lists them, and no other module asks for a wire by its name. */
export type Wire = {
  name: ModelWire
  /** The client's side; absent if only models speak the wire. */
  client?: ClientHalf
  model: ModelHalf
  /** The exchange within the wire; absent if only models speak it. */
  native?: Native
}

/** A wire that clients and models speak. */
export type SharedWire = Required<Wire> & { name: ClientWire }

/** The client's side of a wire. The functions are pure and never await. */
export type ClientHalf = {
  /** The path at which the gateway serves it (spec 1.2). */
  path: string
  request: RequestFacts
  /** The fate of each request field on a model of another wire. */
  fields: FieldTable
  /** The beginning of the ids of an answer's calls: clients of the wire look for it (R-ID). */
  callIdPrefix: string
  /** A second name of the request id, if SDKs of the wire look for it there (ruling R5). */
  requestIdHeader?: string
  /** Whether its agents show what a person has spent, by headers of the answer. */
  showsSpend?: true
  /** The answer to a WebSocket probe of its path, so that agents turn to HTTP at once (ruling R3). */
  probeStatus?: number
  envelope(facts: ErrorFacts, requestId: string): string
  /** Counts the tokens of a request without asking a model, at a path of its own (spec 4.2). */
  counter?: { path: string; countTokens(body: Record<string, unknown>): number }
  /** The clients of its streams make an object of a call's arguments (ruling Y5). */
  streamsObjects?: true
  /** The keys of a request whose values are carried as they were written (ruling T16). */
  keptKeys: KeptKeys
  /**
   * @param body of a request that `checkFields` has passed
   * @throws GatewayError 400 with the top-level field as `param`, for what cannot be read or carried.
   */
  decodeRequest(body: ClientBody, context: DecodeContext): InferenceRequest
  /** The whole JSON answer for a client, with the counters that were billed. */
  encodeAnswer(answer: Answer, head: AnswerHead, usage: Usage): string
  /** The stream for a client: SSE text, each event whole. On `fail` an error frame without terminator (ruling T4). */
  createEncoder(head: AnswerHead): Encoder
}

/** The model's side of a wire. The functions are pure and never await. */
export type ModelHalf = {
  /** The fields of a request by which a model's refusal names its parts. */
  speech: WireSpeech
  /** The request fields of one value that its models take. */
  scalars: readonly ScalarRow[]
  /** The fate of fields of each client's wire; only if no client speaks this wire, since the tables of clients do not name it. */
  fates?: Readonly<Record<ClientWire, Readonly<Record<string, NotedFate>>>>
  /** Makes the headers in which an upstream of this wire looks for its key, or for a signature with it. */
  credential: CredentialHeaders
  /** Headers with version and betas, if the wire has them (spec 9.2, ruling N3). */
  versionHeaders?: VersionHeaders
  /** Its models prove their reasoning with a signature that their next turn wants back (ruling T7). */
  signsReasoning: boolean
  /** @throws GatewayError 400 naming the client's field, for what this wire or model cannot express. */
  encodeRequest(request: InferenceRequest, model: Model): EncodedRequest
  /**
   * Reads one answer of a model. `end()` means the upstream closed cleanly. Never throws: what it cannot read becomes `fail`.
   * @param onAnswer is given the answer, which may name its model and its service (rulings Y13, Y17)
   * @param toolNames of `EncodedRequest`: they show when a name that comes in pieces is complete
   */
  createDecoder(profile: Profile, onAnswer?: OnAnswer, toolNames?: ReadonlySet<string>): Decoder
}

/** The checks of every request of a wire, whatever the model's wire (ruling R10), and the fields that its answers repeat. */
export type RequestFacts = WireSpeech & {
  /** The top-level field that holds the conversation, and what it may be, in words. */
  conversation: { field: string; kinds: string; mayBeText: boolean }
  isCapRequired: boolean
  /** The field that names the conversation, where the wire has one (spec 4.1). */
  cacheKey?: string
  /** @throws GatewayError 400 for what this wire alone refuses on every pair. */
  check?: (body: ClientBody) => void
}

/** `<spelling>-version` and `<spelling>-beta`: of two spellings that a client sent the first counts. */
export type VersionHeaders = { spellings: readonly string[]; versionDefault: string }

/** The exchange within the wire: the request is edited, and the answer is looked at as it passes (rulings P1, P2). */
export type Native = {
  /** @throws GatewayError 400 for what the specification refuses on this wire. */
  adaptRequest(body: ClientBody, model: Model, context: AdaptContext): AdaptedRequest
  /** Absent where a wire has nothing of the kind. */
  sealing?: Sealing
  openStream(head: NativeHead): NativeStream
  readAnswer(body: Buffer, head: NativeHead): WholeAnswer
}

/** The parts of a history that only the provider account that sealed them can open (ruling U13). */
export type Sealing = {
  /** A quick look: false where there is surely nothing of it. */
  mayBeIn(body: Buffer): boolean
  /** Takes it out of an adapted body. @returns undefined if there is nothing of it */
  remove(body: Buffer): Buffer | undefined
  /** A digest of what was sealed last: no two conversations have it in common. @returns undefined if nothing is */
  lastIn(body: Buffer): string | undefined
}

/** Events to the stream of a client. */
export type Encoder = {
  /** The text that a client is sent for an event, each of its frames whole; empty if it is sent nothing. */
  write(event: BilledEvent): string
  /** Its client does not read: what it keeps for later is to take little memory. Absent if it keeps nothing. */
  compact?(): void
}

/** The facts that decoding a client's request needs beside its body. */
export type DecodeContext = {
  /** The conversation key, checked and scoped to the account; undefined if the client sent none. */
  cacheKey: string | undefined
  /** Opens an envelope of ruling T7 for this account and model; undefined if it is not ours or not for them. */
  unseal: (envelope: string) => Sealed | undefined
}

/** A request in the model's own wire, and what the way back must know about it. */
export type EncodedRequest = {
  /** JSON for the upstream, in memory of its own. The same request encodes to the same bytes (ruling T8). */
  body: Buffer
  /** Upstream tool name → what the client calls it, for every name that differs or has a namespace (R-NAME, R-GROUP). */
  names: ReadonlyMap<string, { name: string; namespace?: string }>
  /** The names of the tools that are declared, as the model knows them. */
  toolNames: ReadonlySet<string>
  /** Stop sequences that we enforce because the upstream does not (R-STOP). */
  localStops: readonly string[]
  /** All stop sequences that were asked for, cleaned. */
  stops: readonly string[]
  /** The cap as sent, or the model's maximum where none is sent, in tokens. */
  outputTokensCap: number
  /** The answer may hold reasoning that its stream does not show in full (ruling C12). */
  mayHideReasoning: HiddenReasoning
  /** The body has marks of ours for a cache. Undefined on wires that have none. */
  isMarked?: boolean
  losses: readonly Loss[]
}

/** The facts that an encoder has before the first event. They are fixed for the whole answer. */
export type AnswerHead = {
  /** Seeds every id we mint, so that stream and JSON agree (R-ID). */
  requestId: string
  modelId: string
  /** Unix seconds. */
  createdSeconds: number
  /** Unix seconds now, asked once at the end; without it the answer took no time. */
  nowSeconds?: () => number
  inputTokensEstimate: number
  /** `InferenceRequest.echo`; '' if there is none. */
  echo: string
  /** Returns the tier, speed and geography that the answer has reported so far (ruling Y17). */
  service?: () => RetoldService
  /** Puts a proof of reasoning into the envelope of ruling T7; undefined where it was not asked for. */
  seal?: (sealed: Sealed) => string
}

import { free } from '../bytes/free.ts'
import { splice } from '../bytes/json.ts'
import { setMembers } from '../bytes/json-edit.ts'
import type { Model } from '../catalog/model.ts'
import type { Profile } from '../catalog/profile.ts'
import type { Fault } from '../inference/answer.ts'
import type { Loss } from '../inference/request.ts'
import type { UsageBounds } from '../inference/usage.ts'
import type { CredentialScheme } from '../upstream/credential.ts'
import type { Target } from '../upstream/target.ts'
import type { StreamFold, StreamRelay, WholeAnswer } from '../wires/answers/relay.ts'
import { ClientBody } from '../wires/requests/client-body.ts'
import type { Sealing } from '../wires/wire.ts'
import type { Call } from './call.ts'
import type { Gateway } from './gateway.ts'

/** What an exchange is made of: a request that has passed every check that is the same on all pairs. */
export type CheckedRequest = {
  gateway: Pick<Gateway, 'sealer' | 'nowMs'>
  call: Pick<Call, 'wire' | 'requestId' | 'header'>
  accountId: string
  model: Model
  body: ClientBody
  /** The conversation key as an upstream may see it; undefined if the client sent none. */
  scopedKey: string | undefined
}

/** One request on its way to a model, and how the model's answer goes back to the client's wire. */
export type Exchange = Outgoing & {
  /** The quirks that it was made for; a target with others needs one of its own. */
  profile: Profile
  credential: CredentialScheme
  /** What travels beside the body. No credential: that goes on in `upstream/`, for one target. */
  headersFor(target: Target): [name: string, value: string][]
  /** The client wants events. */
  stream: boolean
  /** The cap that was sent, or the model's maximum. */
  outputTokensCap: number
  /** How many answers were asked for; the cap is that of all of them (ruling C7). */
  choices: number
  /** The answer may hold reasoning that its stream does not show in full (ruling C12). */
  mayHideReasoning: boolean
  /** What may be believed of the figures of its answer (ruling C14). */
  bounds: UsageBounds
  losses: readonly Loss[]
  /** Of the whole request, in tokens; costs a pass over it, so it is asked for once. */
  inputTokensEstimate: number
  /** A fresh relay: one for each attempt. */
  openStream(): StreamRelay
  readWhole(body: Buffer): WholeAnswer
  /** An event stream for a client that wants JSON; undefined where only translation can fold one (ruling P2). */
  openFold: (() => StreamFold) | undefined
  /** A model's refusal in the client's words, where it speaks in those of another wire. */
  inClientWords?: (text: string) => string
  /** A refusal in the model's wire. */
  readRefusal(status: number, bodyText: string): Fault
}

/** Whether the provider may run tools of its own for it: it reaches beyond its body (ruling C14). */
export function mayCallTools({ bounds }: Pick<Exchange, 'bounds'>): boolean {
  return !bounds.isOutputCapped
}

/** The half of an exchange that takes memory: the request, for as long as it may have to be sent. */
export class Outgoing {
  #body: Buffer | undefined
  readonly #upstreamModel: string
  readonly #sealing: Sealing | undefined
  #isUnsealed = false

  /**
   * @param body made for the model as its entry in the catalog, or a target, names it.
   * @param sealing undefined where nothing is sealed
   */
  constructor(body: Buffer, { upstreamModel }: Model, sealing?: Sealing) {
    this.#body = body
    this.#upstreamModel = upstreamModel
    this.#sealing = sealing
  }

  /** @throws when the request was let go. */
  bodyFor({ model }: Target): Buffer {
    if (this.#body === undefined) throw new Error('the request was let go: it cannot be sent again')
    const isItsName = model.upstreamModel === this.#upstreamModel
    return isItsName ? this.#body : renameModel(this.#body, model.upstreamModel)
  }

  /** Whether to free the memory of these bytes would free what is still to be sent. */
  sharesMemoryWith(bytes: Buffer): boolean {
    return this.#body?.buffer === bytes.buffer
  }

  /** Takes out what only one provider account can open (ruling U13). @returns false where there was nothing of it */
  unseal(): boolean {
    const rest = this.#body && this.#sealing?.remove(this.#body)
    if (rest === undefined) return false
    this.#body = rest
    this.#isUnsealed = true
    return true
  }

  /** It may hold something that is sealed, and that would be taken out where it is refused. */
  get mayUnseal(): boolean {
    return !this.#isUnsealed && this.#body !== undefined && this.#sealing?.mayBeIn(this.#body) === true
  }

  /** What its history has as the last that one provider account sealed, as a digest. */
  lastSealed(): string | undefined {
    return this.#body && this.#sealing?.lastIn(this.#body)
  }

  /** Something was taken out so. */
  get isUnsealed(): boolean {
    return this.#isUnsealed
  }

  /** Whether a text stands in it as a whole JSON string; false when the request was let go (ruling U9). */
  holds(text: string): boolean {
    return this.#body?.includes(`"${text}"`) ?? false
  }

  /**
   * No other attempt can follow: the request is let go, however long the answer takes.
   * @param isSent nobody looks at its body any more, whose memory is given back at once (docs/decisions/0049-memory-given-back.md)
   */
  forget(isSent: boolean): void {
    if (isSent && this.#body) free(this.#body)
    this.#body = undefined
  }
}

/** The same body for a target that calls the model by another name; all else keeps its bytes. */
function renameModel(bytes: Buffer, name: string): Buffer {
  const body = new ClientBody(bytes)
  return splice(bytes, setMembers(body.range, body.members, new Map([['model', JSON.stringify(name)]])))
}

import type { ServiceWords } from '../catalog/base-service.ts'
import type { CredentialHeaders } from '../catalog/credentials.ts'
import type { Profile } from '../catalog/profile.ts'
import { estimateBytesTokens } from '../inference/estimate.ts'
import type { Loss } from '../inference/request.ts'
import { boundsOf, type UsageBounds } from '../inference/usage.ts'
import { decodeRefusal } from '../wires/answers/error-body.ts'
import type { NativeHead } from '../wires/answers/native-answer.ts'
import type { StreamFold, StreamRelay, WholeAnswer } from '../wires/answers/relay.ts'
import type { AdaptedRequest } from '../wires/requests/adapt-bytes.ts'
import type { HiddenReasoning } from '../wires/requests/reasoning-wish.ts'
import type { Native } from '../wires/wire.ts'
import { wires } from '../wires/wires.ts'
import { type CheckedRequest, type Exchange, Outgoing, upstreamHeaders } from './exchange.ts'

/** The provider's own tools, and what it fetches or has stored, add to input and output (ruling C14). */
const unbounded: UsageBounds = { inputTokensMax: Number.POSITIVE_INFINITY, isOutputCapped: false }

/** The exchange within one wire: the request's bytes with the edits of ruling P1, the answer's with those of P2. */
export function exchangeNatively(asked: CheckedRequest): Exchange {
  const { gateway, call, model, body, scopedKey, implicitKey } = asked
  const isOurSeal = (text: string) => gateway.sealer.isOurs(text)
  const adapted = wires[call.wire].native.adaptRequest(body, model, {
    scopedKey,
    implicitKey,
    isOurSeal,
    nowMs: gateway.nowMs(),
  })
  return new NativeExchange(asked, adapted)
}

/** Lives as long as the answer. Of the request it keeps only the body, until that is released. */
class NativeExchange extends Outgoing implements Exchange {
  readonly profile: Profile
  readonly credential: CredentialHeaders
  readonly headersFor: Exchange['headersFor']
  readonly service: ServiceWords | undefined
  readonly stream: boolean
  readonly asksForStream: boolean
  readonly outputTokensCap: number
  readonly choices: number
  readonly mayHideReasoning: HiddenReasoning
  readonly losses: readonly Loss[]
  readonly inputTokensEstimate: number
  readonly bounds: UsageBounds
  readonly readRefusal = decodeRefusal
  readonly #native: Native
  readonly #head: NativeHead

  constructor({ gateway, call, model, body }: CheckedRequest, adapted: AdaptedRequest) {
    const {
      native,
      model: { credential },
    } = wires[call.wire]
    super(adapted.body, model, native.sealing)
    this.profile = model.profile
    this.credential = credential
    const { headersFor, losses } = upstreamHeaders(call, model)
    this.headersFor = headersFor
    this.service = adapted.service
    this.stream = adapted.stream
    this.asksForStream = adapted.stream
    this.outputTokensCap = adapted.outputTokensCap
    this.choices = adapted.choices
    this.mayHideReasoning = adapted.mayHideReasoning
    this.losses = [...adapted.losses, ...losses]
    this.inputTokensEstimate = estimateBytesTokens(body.bytes)
    this.bounds = adapted.isSelfContained ? boundsOf(adapted.body, this.inputTokensEstimate) : unbounded
    this.#native = native
    const { inputTokensEstimate } = this
    const createdSeconds = Math.floor(gateway.nowMs() / 1000)
    this.#head = { requestId: call.requestId, model, createdSeconds, inputTokensEstimate }
  }

  openStream(): StreamRelay {
    return this.#native.openStream(this.#head)
  }

  openFold(): StreamFold {
    return this.#native.openStream(this.#head).folding()
  }

  readWhole(body: Buffer): WholeAnswer {
    return this.#native.readAnswer(body, this.#head)
  }
}

import { estimateBytesTokens } from '../inference/estimate.ts'
import { boundsOf, type UsageBounds } from '../inference/usage.ts'
import { decodeRefusal } from '../wires/answers/error-body.ts'
import type { NativeHead } from '../wires/answers/native-answer.ts'
import { wires } from '../wires/wires.ts'
import { type Asked, createOutgoing, type Exchange } from './exchange.ts'
import { upstreamHeaders } from './upstream-headers.ts'

/** The provider's own tools, and what it fetches or has stored, add to input and output (ruling C14). */
const unbounded: UsageBounds = { inputTokensMax: Number.POSITIVE_INFINITY, isOutputCapped: false }

/** The exchange within one wire: the body's bytes with the edits of ruling P1, the answer's with those of P2. */
export function exchangeNatively({ gateway, call, model, body, scopedKey }: Asked): Exchange {
  const { native, credential } = wires[model.wire]
  const { sealer } = gateway
  const isOurSeal = (text: string) => sealer.isOurs(text)
  const adapted = native.adaptRequest(body, model, { scopedKey, isOurSeal })
  const inputTokensEstimate = estimateBytesTokens(body.bytes)
  const head: NativeHead = {
    requestId: call.requestId,
    model,
    createdSeconds: Math.floor(gateway.nowMs() / 1000),
  }
  return {
    ...createOutgoing(adapted.body, model, native.removeSealed),
    profile: model.profile,
    credential,
    headersFor: upstreamHeaders(call, model),
    stream: adapted.stream,
    outputTokensCap: adapted.outputTokensCap,
    mayHideReasoning: adapted.mayHideReasoning,
    losses: adapted.dropped.map((field) => ({ field, what: 'dropped', why: 'not taken by the model' })),
    inputTokensEstimate,
    bounds: adapted.isSelfContained ? boundsOf(adapted.body.length, inputTokensEstimate) : unbounded,
    openStream: () => native.openStream(head),
    readWhole: (answer) => native.readAnswer(answer, head),
    openFold: undefined,
    readRefusal: decodeRefusal,
  }
}

import type { Model } from '../catalog/model.ts'
import { estimateBytesTokens } from '../inference/estimate.ts'
import { decodeRefusal } from '../wires/answers/error-body.ts'
import type { NativeHead } from '../wires/answers/native-answer.ts'
import type { ClientBody } from '../wires/requests/client-body.ts'
import { wires } from '../wires/wires.ts'
import type { Call } from './call.ts'
import type { Exchange } from './exchange.ts'
import type { Gateway } from './gateway.ts'
import { upstreamHeaders } from './upstream-headers.ts'

/** The exchange within one wire: the body's bytes with the edits of ruling P1, the answer's with those of P2. */
export function passThrough(
  gateway: Gateway,
  call: Call,
  model: Model,
  body: ClientBody,
  conversationKey: string | undefined,
  accountId: string,
): Exchange {
  const { native, path } = wires[model.wire]
  const adapted = native.adaptRequest(body, model, {
    scopedKey: conversationKey === undefined ? undefined : gateway.scopeKey(accountId, conversationKey),
    isOurSeal: (text) => gateway.sealer.isOurs(text),
  })
  const head: NativeHead = {
    requestId: call.requestId,
    model,
    createdSeconds: Math.floor(gateway.nowMs() / 1000),
  }
  return {
    path,
    headers: upstreamHeaders(call, model, gateway.config().upstreams.get(model.upstream)!),
    body: adapted.body,
    stream: adapted.stream,
    outputTokensCap: adapted.outputTokensCap,
    losses: adapted.dropped.map((field) => ({ field, what: 'dropped', why: 'not taken by the model' })),
    inputTokensEstimate: estimateBytesTokens(body.bytes),
    openStream: () => native.openStream(head),
    readWhole: (answer) => native.readAnswer(answer, head),
    openFold: undefined,
    readRefusal: decodeRefusal,
  }
}

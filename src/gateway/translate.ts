import type { Model } from '../catalog/model.ts'
import { estimateBytesTokens } from '../inference/estimate.ts'
import { decodeRefusal } from '../wires/answers/error-body.ts'
import type { ClientBody } from '../wires/requests/client-body.ts'
import type { AnswerHead } from '../wires/wire.ts'
import { wires } from '../wires/wires.ts'
import type { AnswerPlan } from './answer-run.ts'
import type { Call } from './call.ts'
import type { Exchange } from './exchange.ts'
import type { Gateway } from './gateway.ts'
import { TranslatedStream } from './translated-stream.ts'
import { TranslatedWhole } from './translated-whole.ts'
import { upstreamHeaders } from './upstream-headers.ts'

/** The exchange between two wires, through the hub: the client's wire decodes, the model's encodes, and back. */
export function translate(
  gateway: Gateway,
  call: Call,
  model: Model,
  body: ClientBody,
  conversationKey: string | undefined,
  accountId: string,
): Exchange {
  const theirs = wires[call.wire]
  const client = theirs.translator
  const source = wires[model.wire].translator
  const { sealer } = gateway
  const request = client.decodeRequest(body.text(), {
    cacheKey: conversationKey === undefined ? undefined : gateway.scopeKey(accountId, conversationKey),
    unseal: (envelope) => sealer.unseal(envelope, accountId, model.id),
  })
  const encoded = source.encodeRequest(request, model)
  const { isShown, wantsSealed } = request.reasoning
  const inputTokensEstimate = estimateBytesTokens(body.bytes)
  const seals = wantsSealed && wires[model.wire].signsReasoning
  const head: Omit<AnswerHead, 'weigh'> = {
    requestId: call.requestId,
    modelId: model.id,
    createdSeconds: Math.floor(gateway.nowMs() / 1000),
    nowSeconds: () => Math.floor(gateway.nowMs() / 1000),
    inputTokensEstimate,
    echo: body.values(theirs.request.echoed),
    ...(seals && { seal: (sealed) => sealer.seal(sealed, accountId, model.id) }),
  }
  const { callIdPrefix } = theirs
  const plan: AnswerPlan = { call, model, source, encoded, showsReasoning: isShown, wantsSealed: seals, callIdPrefix }
  return {
    path: wires[model.wire].path,
    headers: upstreamHeaders(call, model, gateway.config().upstreams.get(model.upstream)!),
    body: Buffer.from(encoded.body),
    stream: request.stream,
    outputTokensCap: encoded.outputTokensCap,
    losses: encoded.losses,
    inputTokensEstimate,
    openStream: () => new TranslatedStream(plan, client, head),
    readWhole(answer) {
      const whole = new TranslatedWhole(plan, client, head)
      whole.pushWhole(answer)
      return whole.whole()
    },
    openFold: () => new TranslatedWhole(plan, client, head),
    readRefusal: decodeRefusal,
  }
}

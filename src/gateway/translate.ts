import type { Model } from '../catalog/model.ts'
import type { AnswerHead } from '../inference/answer.ts'
import { estimateBytesTokens } from '../inference/estimate.ts'
import type { ClientBody } from '../wires/client-body.ts'
import { decodeRefusal } from '../wires/native-answer.ts'
import { translators } from '../wires/translators.ts'
import { wirePaths } from '../wires/wires.ts'
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
  const client = translators[call.wire]
  const source = translators[model.wire]
  const bodyText = body.text()
  const { sealer } = gateway
  const request = client.decodeRequest(bodyText, {
    cacheKey: conversationKey === undefined ? undefined : gateway.scopeKey(accountId, conversationKey),
    unseal: (envelope) => sealer.unseal(envelope, accountId, model.id),
  })
  const encoded = source.encodeRequest(request, model)
  const { isShown, wantsSealed } = request.reasoning
  const inputTokensEstimate = estimateBytesTokens(body.bytes)
  const seals = wantsSealed && model.wire === 'messages'
  const head: AnswerHead = {
    requestId: call.requestId,
    modelId: model.id,
    createdSeconds: Math.floor(gateway.nowMs() / 1000),
    nowSeconds: () => Math.floor(gateway.nowMs() / 1000),
    showsReasoning: isShown,
    inputTokensEstimate,
    echo: client.readEcho?.(bodyText) ?? '',
    ...(seals && { seal: (sealed) => sealer.seal(sealed, accountId, model.id) }),
  }
  const { names, stops, localStops } = encoded
  const filters = { showsReasoning: isShown, wantsSealed: seals, stops, localStops, names, requestId: call.requestId }
  const plan: AnswerPlan = { source, profile: model.profile, filters: { ...filters, wire: call.wire } }
  return {
    path: wirePaths[model.wire],
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

import { envelopePrefix } from '../accounts/seal.ts'
import { type ServiceWords, spellTier, tierFieldOf, tierScalar } from '../catalog/base-service.ts'
import type { Model } from '../catalog/model.ts'
import type { ClientWire } from '../catalog/wire-names.ts'
import { estimateBytesTokens } from '../inference/estimate.ts'
import type { InferenceRequest, Loss } from '../inference/request.ts'
import { boundsOf } from '../inference/usage.ts'
import { decodeRefusal } from '../wires/answers/faults.ts'
import { inClientWords } from '../wires/requests/client-words.ts'
import type { AnswerHead, DecodeContext } from '../wires/wire.ts'
import { wires } from '../wires/wires.ts'
import { type CheckedRequest, type Exchange, Outgoing, upstreamHeaders } from './exchange.ts'
import { type AnswerPlan, TranslatedStream, TranslatedWhole } from './translated-answer.ts'

/** The most sealed signatures that are opened of one request (ruling R18, B25): each costs an authentication, forged or not. */
const envelopesMax = 1_000
const envelopeStart = `"${envelopePrefix}`

/** The exchange between two wires: the client's wire decodes the request and the model's encodes it; the answer goes back. */
export function translate({ gateway, call, accountId, model, body, scopedKey, implicitKey }: CheckedRequest): Exchange {
  const { client } = wires[call.wire]
  const { model: source } = wires[model.wire]
  const { sealer } = gateway
  const decoded = client.decodeRequest(body, {
    cacheKey: scopedKey ?? implicitKey,
    unseal: openLast(body.bytes, (envelope) => sealer.unseal(envelope, accountId, model.entryId)),
  })
  const { request, service } = withTier(decoded, call.wire, model, gateway.nowMs())
  const encoded = source.encodeRequest(request, model)
  const { isShown, wantsSealed } = request.reasoning
  const inputTokensEstimate = estimateBytesTokens(body.bytes)
  const seals = wantsSealed && source.signsReasoning
  const head: AnswerHead = {
    requestId: call.requestId,
    modelId: model.id,
    createdSeconds: Math.floor(gateway.nowMs() / 1000),
    nowSeconds: () => Math.floor(gateway.nowMs() / 1000),
    inputTokensEstimate,
    echo: request.echo ?? '',
    ...(seals && { seal: (sealed) => sealer.seal(sealed, accountId, model.entryId) }),
  }
  const { body: bytes, names, toolNames, stops, localStops, ...facts } = encoded
  const shown = { showsReasoning: isShown, wantsSealed: seals, stops, localStops, names }
  const wantsWholeCalls = request.stream && client.streamsObjects === true
  const filters = { ...shown, requestId: call.requestId, callIdPrefix: client.callIdPrefix, wantsWholeCalls }
  const plan: AnswerPlan = { source, wire: model.wire, profile: model.profile, filters, toolNames }
  return Object.assign(new Outgoing(bytes, model), facts, {
    profile: model.profile,
    credential: source.credential,
    headersFor: upstreamHeaders(call, model).headersFor,
    service,
    stream: request.stream,
    asksForStream: request.stream || model.profile.preferStream,
    choices: 1,
    bounds: boundsOf(bytes, inputTokensEstimate),
    inputTokensEstimate,
    openStream: () => new TranslatedStream(plan, client, head),
    readWhole(answer: Buffer) {
      const whole = new TranslatedWhole(plan, client, head)
      whole.pushWhole(answer)
      return whole.whole()
    },
    openFold: () => new TranslatedWhole(plan, client, head),
    inClientWords: (text: string) => inClientWords(text, source.speech, client.request),
    readRefusal: decodeRefusal,
  })
}

/** A request with its tier in the words of the model's wire, or without it and with a loss (ruling C7). */
function withTier(
  decoded: InferenceRequest,
  from: ClientWire,
  model: Model,
  nowMs: number,
): { request: InferenceRequest; service: ServiceWords | undefined } {
  const { [tierScalar]: word, ...scalars } = decoded.scalars
  if (typeof word !== 'string') return { request: decoded, service: undefined }
  const service = spellTier(word, from, model, nowMs)
  const [[field, said]] = Object.entries(service ?? { '': '' }) as [[string, string]]
  if (service && !model.profile.drops.has(field))
    return { request: { ...decoded, scalars: { ...scalars, [tierScalar]: said } }, service }
  const loss: Loss = { field: tierFieldOf(from), what: 'dropped', why: 'the model’s default holds' }
  return { request: { ...decoded, scalars, losses: [...decoded.losses, loss] }, service: undefined }
}

/**
 * Opens only the last envelopes if there are very many, because a model may need those for its next turn. They are counted
 * at the first call, which most requests never make. This is a function of its own so that no exchange keeps the body alive.
 */
function openLast(bytes: Buffer, unseal: DecodeContext['unseal']): DecodeContext['unseal'] {
  let tooMany: number | undefined
  return (envelope) => {
    tooMany ??= countEnvelopes(bytes) - envelopesMax
    return tooMany-- > 0 ? undefined : unseal(envelope)
  }
}

/** Counts what looks like an envelope. A text may contain the same words; its author then gets fewer opened. */
function countEnvelopes(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(envelopeStart); at >= 0; at = bytes.indexOf(envelopeStart, at + 1)) count++
  return count
}

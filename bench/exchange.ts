import type { Model } from '../src/catalog/model.ts'
import { resolveProfile } from '../src/catalog/profiles.ts'
import type { ClientWire } from '../src/catalog/wire-names.ts'
import { createPriceList } from '../src/config/price-list.ts'
import type { Call } from '../src/gateway/call.ts'
import { type CheckedRequest, type Exchange, exchangeNatively, translate } from '../src/gateway/exchange.ts'
import type { Gateway } from '../src/gateway/gateway.ts'
import { ClientBody } from '../src/wires/requests/client-body.ts'
import { wires } from '../src/wires/wires.ts'
import { prices } from './bill.ts'

const gateway = {
  nowMs: () => 1_795_000_000_000,
  sealer: { seal: () => '', unseal: () => undefined, isOurs: () => false },
} as unknown as Pick<Gateway, 'sealer' | 'nowMs'>

/**
 * An exchange with a model that accepts everything, as the gateway opens it after the checks of account and limits.
 * @param wire of the client. @throws GatewayError when the request is refused
 */
export function openExchange(bytes: Buffer, wire: ClientWire, modelWire: ClientWire): Exchange {
  const call = { requestId: 'req_1', wire, header: () => undefined } as unknown as Call
  const model = models[modelWire]
  const body = new ClientBody(bytes, wires[wire].client.keptKeys)
  const asked: CheckedRequest = { gateway, call, accountId: 'acc_1', model, body, at: 0, scopedKey: undefined }
  return wire === modelWire ? exchangeNatively(asked) : translate(asked)
}

const set = { prices, version: 'v1', row: 0, band: null, tier: null, geo: null }

/** Made once, as the gateway makes them when it reads its configuration. */
const models = { messages: modelOf('messages'), chat: modelOf('chat'), responses: modelOf('responses') }

function modelOf(wire: ClientWire): Model {
  return {
    ...{ id: 'm', entryId: 'm', aliases: [], wire, routes: [], upstreamModel: 'upstream-model' },
    ...{ contextWindow: undefined, outputTokensMax: 8192, allowedFields: new Set<string>() },
    prices: createPriceList([{ fromMs: 0, bands: [], sets: [new Map([[' ', set]])] }]),
    expectedTiers: [],
    profile: resolveProfile(wire),
    ...{ hostedTools: 'pass', implicitKey: 'off', affinity: 'alike', remoteMedia: 'pass', storedFiles: 'pass' },
  }
}

import type { Model } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { ClientBody } from '../wires/client-body.ts'
import type { Call } from './call.ts'
import type { Exchange } from './exchange.ts'
import type { Gateway } from './gateway.ts'

/** The exchange between two wires. */
export function translate(
  _gateway: Gateway,
  call: Call,
  model: Model,
  _body: ClientBody,
  _conversationKey: string | undefined,
  _accountId: string,
): Exchange {
  const message =
    `The model ${model.id} speaks the ${model.wire} wire, and this request came on the ${call.wire} wire: ` +
    `translation between them is not available yet. Send the request on the ${model.wire} wire.`
  throw new GatewayError('invalid_body', message, { param: 'model' })
}

import { failureTexts, GatewayError } from '../errors.ts'
import { checkConversation } from '../wires/requests/checks.ts'
import { ClientBody } from '../wires/requests/client-body.ts'
import { readSessionId } from '../wires/requests/conversation-key.ts'
import { wires } from '../wires/wires.ts'
import { identify } from './admit.ts'
import { type Call, ClientGone } from './call.ts'
import type { Gateway } from './gateway.ts'
import { findModel } from './read-request.ts'
import type { CallRecord } from './record.ts'

/**
 * Answers the token counter. Counting gives way to paid requests (ruling R18). It is never billed, does not count against
 * the window, and sends nothing to a model (spec 4.2, ruling R1).
 */
export async function countTokens(gateway: Gateway, call: Call, record: CallRecord): Promise<void> {
  const { account, bounds } = await identify(gateway, call, record)
  if (gateway.isStrained() || gateway.isShedding()) throw makeWay()
  using place = gateway.counting.enter(account.id)
  if (place === undefined) throw makeWay()
  using share = gateway.bodies.enter(account.id)
  const bytes = await call.readBody(share)
  if (!gateway.counting.mayCount(bytes.length)) throw makeWay()
  await gateway.turns.take(account.id, bytes.length)
  if (call.isGone) throw new ClientGone()
  const body = new ClientBody(bytes)
  findModel(gateway.snapshots.current.config, body, record, bounds)
  readSessionId((name) => call.header(name))
  const { client } = wires[call.wire]
  checkConversation(client, body)
  const inputTokens = client.counter!.countTokens(JSON.parse(body.text()))
  call.reply(200, 'application/json', JSON.stringify({ input_tokens: inputTokens }))
}

/** The refusal of a count. It is not the rate window's, which does not include the counter (spec 4.2). */
function makeWay(): GatewayError {
  return new GatewayError('rate_limit_exceeded', failureTexts.counterFull, { retryAfterSeconds: 1, reason: 'counter' })
}

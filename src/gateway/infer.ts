import type { Model } from '../catalog/model.ts'
import { checkFields } from '../wires/requests/checks.ts'
import { ClientBody } from '../wires/requests/client-body.ts'
import { readConversationKey } from '../wires/requests/conversation-key.ts'
import { wires } from '../wires/wires.ts'
import { enter, inOrder, takeHold } from './admit.ts'
import type { Call } from './call.ts'
import { Delivery } from './delivery.ts'
import { findModel } from './find-model.ts'
import type { Gateway } from './gateway.ts'
import { identify } from './identify.ts'
import { exchangeNatively } from './native.ts'
import type { CallRecord } from './record.ts'
import type { Snapshot } from './snapshot.ts'
import { translate } from './translate.ts'

/** One inference request, under the configuration that is in force when it comes, to its end (U14). */
export function infer(gateway: Gateway, call: Call, record: CallRecord): Promise<void> {
  const { snapshot, release } = gateway.snapshots.take()
  return walk(gateway, snapshot, call, record).finally(release)
}

/**
 * From the key to the bill. The checks run in the order they stand here (ruling R1); what is there at once is not awaited.
 * Nor is the last line: what a request is made of shall not live as long as its answer.
 */
async function walk(gateway: Gateway, snapshot: Snapshot, call: Call, record: CallRecord): Promise<void> {
  const identified = identify(gateway, call, record)
  const key = identified instanceof Promise ? await identified : identified
  const { account } = key
  const entering = enter(gateway.admission, key)
  using entered = entering instanceof Promise ? await entering : entering
  using share = gateway.bodies.enter(account.id)
  try {
    const bytes = await call.readBody(share)
    const turn = gateway.turns.take(account.id, bytes.length)
    if (turn !== undefined) await turn
    const body = new ClientBody(bytes)
    const model = findModel(snapshot.config, body, record)
    const wire = wires[call.wire]
    const conversationKey = readConversationKey(wire, body, (name) => call.header(name))
    checkFields(wire, body)
    const scopedKey = conversationKey === undefined ? undefined : gateway.scopeKey(account.id, conversationKey)
    const connect = model.wire === call.wire ? exchangeNatively : translate
    const exchangeFor = (served: Model) =>
      connect({ gateway, call, accountId: account.id, model: served, body, scopedKey })
    const exchange = exchangeFor(model)
    record.stream = exchange.stream
    if (exchange.losses.length > 0) record.losses = exchange.losses
    const holding = takeHold(snapshot.config, key, entered, model, exchange)
    const release = holding instanceof Promise ? await holding : holding
    const asking = { exchange, exchangeFor: isServedAlike(model) ? undefined : exchangeFor }
    const parts = { gateway, snapshot, call, record, key, model, affinity: scopedKey, release, share: share.handOn() }
    return new Delivery(parts, asking).run()
  } catch (error) {
    const told = inOrder(entered, key, error)
    throw told instanceof Promise ? await told : told
  }
}

/** One exchange does for all who serve it. */
function isServedAlike({ routes, profile }: Model): boolean {
  return routes.every(({ serving }) => serving.profile === profile)
}

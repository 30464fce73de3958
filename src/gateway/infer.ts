import { type Account, type ApiKey, keyless } from '../accounts/account.ts'
import { free } from '../bytes/free.ts'
import { failureTexts, GatewayError } from '../errors.ts'
import { checkConversation, readSessionId } from '../wires/requests/checks.ts'
import { ClientBody } from '../wires/requests/client-body.ts'
import { wires } from '../wires/wires.ts'
import { enter, identify, inOrder, noteAccount, takeHold, welcomeDigest } from './admit.ts'
import { type Call, ClientGone } from './call.ts'
import { Delivery } from './delivery.ts'
import type { Gateway, Snapshot } from './gateway.ts'
import { findModel, readRequest } from './read-request.ts'
import type { CallRecord } from './record.ts'

/**
 * Handles one inference request to its end, under the configuration that is in force when it arrives (U14).
 * @param payer the key that pays if the client shows none, because an operator uses the playground (operate §4)
 */
export function infer(gateway: Gateway, call: Call, record: CallRecord, payer?: ApiKey): Promise<void> {
  const { snapshot, release } = gateway.snapshots.take()
  return walk(gateway, snapshot, call, record, payer).finally(release)
}

/**
 * Walks a request from its key to its bill. The checks run in the order of the lines (ruling R1). The last line returns the
 * promise without `await`, so that the variables of this function do not live as long as the answer.
 */
async function walk(
  gateway: Gateway,
  snapshot: Snapshot,
  call: Call,
  record: CallRecord,
  payer: ApiKey | undefined,
): Promise<void> {
  const key = payer ?? (await identify(gateway, call, record))
  const { account } = key
  // `using` would cost 1 µs a request, because V8 handles it in its slow runtime.
  const entered = await enter(gateway.admission, key)
  const share = gateway.bodies.enter(account.id)
  try {
    const bytes = await call.readBody(share)
    await gateway.turns.take(account.id, bytes.length)
    if (call.isGone) throw new ClientGone()
    const { config } = snapshot
    const { pool } = snapshot
    const { bounds, personBounds } = key
    const who = { accountId: account.id, customer: account, pool, bounds, personBounds, plan: account.plan }
    const asked = readRequest({ gateway, config, call, record, ...who }, bytes)
    const { model, affinity, likeness, asking, chain } = asked
    const release = await takeHold(config, key, entered, asked, record)
    if (chain) chain.release = release
    // The body for the model exists. The client's body is needed again only if another target needs a different one.
    if (asking.exchangeFor === undefined && chain === undefined && !asking.exchange.sharesMemoryWith(bytes)) free(bytes)
    const parts = {
      gateway,
      snapshot,
      call,
      record,
      key,
      model,
      chain,
      affinity,
      likeness,
      release,
      share: share.handOn(),
    }
    return new Delivery(parts, asking).run()
  } catch (error) {
    throw await inOrder(entered, key, error)
  } finally {
    share[Symbol.dispose]()
    entered[Symbol.dispose]()
  }
}

/** This text is not a digest, so no key matches it. */
const noDigest = 'no key'

/**
 * Runs a request from the playground. An operator sends it on behalf of an account, without a key. An owner sends it
 * with their key. It is then handled like any other request.
 * @param keyDigest of the owner's key
 * @throws GatewayError
 */
export async function play(
  gateway: Gateway,
  call: Call,
  record: CallRecord,
  account: Account,
  keyDigest?: string,
): Promise<void> {
  const { directory } = gateway
  if (keyDigest !== undefined) return infer(gateway, call, record, await welcomeDigest(gateway, record, keyDigest))
  // A new account may not be in memory yet. Looking up any key loads what is new.
  if (!directory.findKnownAccount(account.id)) await directory.findKey(noDigest)
  // This is the account object that all requests of the account share.
  const payer = keyless(directory.findKnownAccount(account.id) ?? account)
  noteAccount(gateway, record, payer)
  return infer(gateway, call, record, payer)
}

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

/** Makes the error for a refused count. The rate window has its own error, and counts do not use it (spec 4.2). */
function makeWay(): GatewayError {
  return new GatewayError('rate_limit_exceeded', failureTexts.counterFull, { retryAfterSeconds: 1, reason: 'counter' })
}

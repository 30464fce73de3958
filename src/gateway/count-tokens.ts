import { ClientBody } from '../wires/client-body.ts'
import { readSessionId } from '../wires/conversation-key.ts'
import { countMessagesTokens } from '../wires/messages/count-tokens.ts'
import type { Call } from './call.ts'
import { findModel } from './find-model.ts'
import type { Gateway } from './gateway.ts'
import { identify } from './identify.ts'
import type { CallRecord } from './record.ts'

/** The token counter: never billed, not counted against the window, nothing sent to a model (spec 4.2, ruling R1). */
export async function countTokens(gateway: Gateway, call: Call, record: CallRecord): Promise<void> {
  const identified = identify(gateway, call, record)
  if (identified instanceof Promise) await identified
  const body = new ClientBody(await call.readBody())
  findModel(gateway.snapshots.current.config, body, record)
  readSessionId((name) => call.header(name))
  const inputTokens = countMessagesTokens(JSON.parse(body.text()))
  call.reply(200, 'application/json', JSON.stringify({ input_tokens: inputTokens }))
}

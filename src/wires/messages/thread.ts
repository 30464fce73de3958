import type { ClientBody } from '../requests/client-body.ts'
import { invalidField } from '../requests/refusals.ts'

/**
 * Refuses a thread: a conversation that the provider keeps. Nothing is kept between requests, at the provider neither
 * (spec 1.7). The vendor's SDKs look for the details: their tool runner then sends the whole conversation instead. The
 * value `false` asks for no thread.
 * @throws GatewayError 400 `invalid_body` on every model (ruling T22).
 */
export function refuseThread(body: ClientBody): void {
  if (!body.has('thread') || body.value('thread') === false) return
  const message = 'The field thread is not supported: nothing is stored here, send the whole conversation in messages.'
  const details = { error_code: 'thread_unsupported_request', unsupported: ['thread'] }
  throw invalidField('thread', message, details)
}

import type { ClientBody } from '../requests/client-body.ts'
import { invalidField } from '../requests/refusals.ts'

/**
 * A thread is a conversation that the provider keeps, and nothing is kept between requests, at the provider neither (spec
 * 1.7). The details are what the vendor's SDKs look for: their tool runner then sends the whole conversation instead.
 * `false`, by which they ask for no thread, is none.
 * @throws GatewayError 400 `invalid_body` on every model (ruling T22).
 */
export function refuseThread(body: ClientBody): void {
  if (!body.has('thread') || body.value('thread') === false) return
  const message = 'The field thread is not supported: nothing is stored here, send the whole conversation in messages.'
  const details = { error_code: 'thread_unsupported_request', unsupported: ['thread'] }
  throw invalidField('thread', message, details)
}

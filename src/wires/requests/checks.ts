import type { ClientHalf } from '../wire.ts'
import type { ClientBody } from './client-body.ts'
import { invalidField, wrongType } from './refusals.ts'

/*
 * Checks of every request before an upstream is chosen, whatever the model's wire (rulings R9, R10). If client and
 * model share a wire, the model judges everything else. Decoders rely on these checks and do not repeat them.
 */

/** @throws GatewayError 400 if `model` is missing or not a string (spec 7.3) */
export function readModelId(body: ClientBody): string {
  if (body.isString('model')) return body.value('model') as string
  throw invalidField('model', 'The field model is required and must be a string: name a model from GET /v1/models.')
}

/** @throws GatewayError 400 that names the first field that breaks a rule (ruling R10) */
export function checkFields(client: ClientHalf, body: ClientBody): void {
  const { caps, isCapRequired, check } = client.request
  checkConversation(client, body)
  if (isCapRequired && !caps.some((cap) => body.has(cap))) {
    const [cap = ''] = caps
    throw invalidField(cap, `The field ${cap} is required: set it to a positive integer.`)
  }
  for (const field of caps) {
    if (!body.has(field)) continue
    const cap = body.value(field)
    if (typeof cap !== 'number' || !Number.isInteger(cap) || cap <= 0) throw wrongType(field, 'a positive integer')
  }
  if (body.has('stream') && typeof body.value('stream') !== 'boolean') throw wrongType('stream', 'true or false')
  check?.(body)
}

/** @throws GatewayError 400 if the conversation is missing or has a wrong type */
export function checkConversation(client: ClientHalf, body: ClientBody): void {
  const { field, kinds, mayBeText } = client.request.conversation
  if (body.isArray(field) || (mayBeText && body.isString(field))) return
  throw invalidField(field, `The field ${field} is required and must be ${kinds}.`)
}

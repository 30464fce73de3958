import type { WireName } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import type { ClientBody } from './client-body.ts'

/*
 * What is checked of every request before any upstream is thought of, whatever the model's wire (rulings R9, R10). All
 * else on the same wire is the model's to judge.
 */

export function invalidField(param: string, message: string): GatewayError {
  return new GatewayError('invalid_body', message, { param })
}

/** @throws GatewayError 400 when `model` is missing or not a string (spec 7.3). */
export function readModelId(body: ClientBody): string {
  if (body.isString('model')) return body.value('model') as string
  throw invalidField('model', 'The field model is required and must be a string: name a model from GET /v1/models.')
}

const conversationField: Record<WireName, string> = { messages: 'messages', chat: 'messages', responses: 'input' }

const capFields: Record<WireName, readonly string[]> = {
  messages: ['max_tokens'],
  chat: ['max_tokens', 'max_completion_tokens'],
  responses: ['max_output_tokens'],
}

/** @throws GatewayError 400 naming the first field that breaks ruling R10. */
export function checkFields(wire: WireName, body: ClientBody): void {
  const conversation = conversationField[wire]
  const isText = wire === 'responses' && body.isString(conversation)
  if (!body.isArray(conversation) && !isText) {
    const kinds = wire === 'responses' ? 'a string or an array of items' : 'an array of messages'
    throw invalidField(conversation, `The field ${conversation} is required and must be ${kinds}.`)
  }
  if (wire === 'messages' && !body.has('max_tokens')) {
    throw invalidField('max_tokens', 'The field max_tokens is required: set it to a positive integer.')
  }
  for (const field of capFields[wire]) {
    if (!body.has(field)) continue
    const cap = body.value(field)
    if (typeof cap !== 'number' || !Number.isInteger(cap) || cap <= 0) {
      throw invalidField(field, `The field ${field} must be a positive integer.`)
    }
  }
  if (body.has('stream') && typeof body.value('stream') !== 'boolean') {
    throw invalidField('stream', 'The field stream must be true or false.')
  }
  if (wire === 'responses') checkStateless(body)
}

const statelessCure = 'The service keeps nothing between requests: send the whole conversation in input.'

/** Fields that need a stored conversation (spec 4.4). */
function checkStateless(body: ClientBody): void {
  for (const field of ['previous_response_id', 'conversation']) {
    if (body.has(field)) {
      throw new GatewayError('unsupported_parameter', `The field ${field} is not supported. ${statelessCure}`, {
        param: field,
      })
    }
  }
  if (body.has('background')) {
    const background = body.value('background')
    if (background === true) {
      const message = 'The field background is not supported: leave it out and read the answer or its stream.'
      throw new GatewayError('unsupported_parameter', message, { param: 'background' })
    }
    if (typeof background !== 'boolean') throw invalidField('background', 'The field background must be true or false.')
  }
}

/** The text of the refusal of an item that refers to a stored one (ruling T11). */
export function itemReferenceRefused(): GatewayError {
  const message =
    'Input items that refer to stored ones (item_reference, or an item with only an id) are not supported. ' +
    `${statelessCure} In the AI SDK set providerOptions.openai.store to false.`
  return new GatewayError('unsupported_parameter', message, { param: 'input' })
}

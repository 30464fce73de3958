import { GatewayError } from '../../errors.ts'
import type { ClientBody } from '../requests/client-body.ts'
import { wrongType } from '../requests/refusals.ts'

/*
 * Nothing is stored between requests, so nothing that was stored can be referred to (spec 4.4). Refused on every pair, in
 * the same words whatever the model's wire (ruling R9).
 */

const cure = 'The service keeps nothing between requests: send the whole conversation in input.'

/** @throws GatewayError 400 for a field that needs a stored conversation. */
export function checkStateless(body: ClientBody): void {
  for (const field of ['previous_response_id', 'conversation']) {
    if (body.has(field)) throw unsupported(field, `The field ${field} is not supported. ${cure}`)
  }
  if (!body.has('background')) return
  const background = body.value('background')
  if (background === true) {
    throw unsupported(
      'background',
      'The field background is not supported: leave it out and read the answer or its stream.',
    )
  }
  if (typeof background !== 'boolean') throw wrongType('background', 'true or false')
}

/**
 * Whether an input item stands for a stored one: by its type, or because it has no more than an id (ruling T11).
 * @param valuesAt what the item has under a key: each value of a member that occurs more than once (ruling Y12)
 */
export function isReference(valuesAt: (key: string) => readonly unknown[]): boolean {
  const types = valuesAt('type')
  if (types.includes('item_reference')) return true
  const isBare = [types, valuesAt('role')].every(
    (values) => values.length === 0 || values.some((value) => value == null),
  )
  return isBare && valuesAt('id').some((id) => id != null)
}

/** The refusal of an item that refers to a stored one (ruling T11). @param index its place in `input` */
export function referenceRefused(index: number): GatewayError {
  const message =
    `input[${index}]: input items that refer to stored ones (item_reference, or an item with only an id) are not ` +
    `supported. ${cure} In the AI SDK set store: false in providerOptions.openai.`
  return unsupported('input', message)
}

function unsupported(param: string, message: string): GatewayError {
  return new GatewayError('unsupported_parameter', message, { param })
}

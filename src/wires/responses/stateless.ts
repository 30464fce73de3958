import { GatewayError } from '../../errors.ts'
import type { ClientBody } from '../requests/client-body.ts'
import { wrongType } from '../requests/refusals.ts'

/*
 * The gateway stores nothing between requests, so nothing stored can be referred to (spec 4.4). References are
 * refused in the same words, whatever the model's wire (ruling R9).
 */

const cure = 'The service keeps nothing between requests: send the whole conversation in input.'

/** Refuses a body with a field that needs stored data. @throws GatewayError 400 naming the field */
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
 * Whether an input item refers to a stored item (ruling T11). It does if its type says so, or if it has an id but
 * neither type nor role.
 * @param valuesAt returns all values of a member, since a member may occur more than once (ruling Y12)
 */
export function isReference(valuesAt: (key: string) => readonly unknown[]): boolean {
  const types = valuesAt('type')
  if (types.includes('item_reference')) return true
  const isBare = [types, valuesAt('role')].every(
    (values) => values.length === 0 || values.some((value) => value == null),
  )
  return isBare && valuesAt('id').some((id) => id != null)
}

/**
 * Makes the error for an item that refers to a stored item (ruling T11). @param index the referring item's place in
 * `input`
 */
export function referenceRefused(index: number): GatewayError {
  const message =
    `input[${index}]: input items that refer to stored ones (item_reference, or an item with only an id) are not ` +
    `supported. ${cure} In the AI SDK set store: false in providerOptions.openai.`
  return unsupported('input', message)
}

function unsupported(param: string, message: string): GatewayError {
  return new GatewayError('unsupported_parameter', message, { param })
}

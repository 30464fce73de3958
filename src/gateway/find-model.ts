import { type KeyBounds, mayUse } from '../accounts/key-bounds.ts'
import type { Model } from '../catalog/model.ts'
import { findNearIds } from '../catalog/near-ids.ts'
import type { Config } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import { readModelId } from '../wires/requests/checks.ts'
import type { ClientBody } from '../wires/requests/client-body.ts'
import type { CallRecord } from './record.ts'

/**
 * @param bounds the limits of the key, if it has any; they may list models (ruling R15)
 * @throws GatewayError 400 for a missing name, 404 for an unknown one or one that the key may not use
 */
export function findModel(
  config: Pick<Config, 'catalog'>,
  body: ClientBody,
  record: CallRecord,
  bounds: Pick<KeyBounds, 'models'> | undefined,
): Model {
  const id = readModelId(body)
  const { models } = config.catalog
  const model = models.get(id)
  if (model === undefined || (bounds !== undefined && !mayUse(bounds.models, id))) {
    const ids = bounds === undefined ? models.keys() : models.keys().filter((one) => mayUse(bounds.models, one))
    const text = textFor(model === undefined ? texts.unknown : texts.forbidden, findNearIds(id, ids))
    throw new GatewayError('model_not_found', text, { param: 'model' })
  }
  record.model = model.entryId
  if (model.id !== model.entryId) record.alias = model.id
  record.modelWire = model.wire
  return model
}

/** Suggests similar names from the list (ruling R17). The client's own is not repeated: errors never quote a body (spec 7.1). */
function textFor(text: string, near: readonly string[]): string {
  return near.length > 0 ? `${text} Perhaps it is ${near.join(' or ')}.` : text
}

const texts = {
  unknown: 'No such model: GET /v1/models lists those that can be named.',
  forbidden: 'This API key may not use the model: name another one, or ask who gave you the key.',
}

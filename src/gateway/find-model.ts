import type { Model } from '../catalog/model.ts'
import { findNearIds } from '../catalog/near-ids.ts'
import type { Config } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import { readModelId } from '../wires/requests/checks.ts'
import type { ClientBody } from '../wires/requests/client-body.ts'
import type { CallRecord } from './record.ts'

/** @throws GatewayError 400 for a missing name, 404 for an unknown one. */
export function findModel(config: Pick<Config, 'catalog'>, body: ClientBody, record: CallRecord): Model {
  const id = readModelId(body)
  const model = config.catalog.models.get(id)
  if (model === undefined) {
    throw new GatewayError('model_not_found', textFor(findNearIds(id, config.catalog.models.keys())), {
      param: 'model',
    })
  }
  record.model = model.entryId
  if (model.id !== model.entryId) record.alias = model.id
  record.modelWire = model.wire
  return model
}

/** The name is not repeated: nothing of a body ever is (spec 7.1). What is near it is on the list (ruling R17). */
function textFor(near: readonly string[]): string {
  const meant = near.length > 0 ? ` Perhaps it is ${near.join(' or ')}.` : ''
  return `No such model: GET /v1/models lists those that can be named.${meant}`
}

import type { Model } from './model.ts'

/** The pinned list of models. Immutable: a reload makes another. */
export type Catalog = {
  models: ReadonlyMap<string, Model>
  /** The body of GET /v1/models, made once, so that it is byte-identical between calls and restarts (spec 4.5). */
  listBody: string
}

/** @param pinnedSeconds Unix seconds of the day the catalog was pinned: `created` on every row (spec 2.9). */
export function createCatalog(models: Iterable<Model>, pinnedSeconds: number, owner: string): Catalog {
  const byId = new Map<string, Model>()
  for (const model of models) byId.set(model.id, Object.freeze(model))
  const data = [...byId.keys()].map((id) => ({ id, object: 'model', created: pinnedSeconds, owned_by: owner }))
  return Object.freeze({ models: byId, listBody: JSON.stringify({ object: 'list', data }) })
}

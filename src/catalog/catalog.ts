import type { Model } from './model.ts'

/** The pinned list of models. Immutable: a reload makes another. */
export type Catalog = {
  /** By every id that a client may name; an alias has a model of its own, which differs in its `id` alone (ruling R14). */
  models: ReadonlyMap<string, Model>
  /** The models themselves, in their order. */
  entries: readonly Model[]
  /** The body of GET /v1/models, made once, so that it is byte-identical between calls and restarts (spec 4.5). */
  listBody: string
}

/** @param pinnedSeconds Unix seconds of the day the catalog was pinned: `created` on every row (spec 2.9). */
export function createCatalog(models: Iterable<Model>, pinnedSeconds: number, owner: string): Catalog {
  const byId = new Map<string, Model>()
  const entries: Model[] = []
  for (const model of models) {
    entries.push(Object.freeze(model))
    byId.set(model.id, model)
    for (const id of model.aliases) byId.set(id, Object.freeze({ ...model, id }))
  }
  const data = [...byId.keys()].map((id) => ({ id, object: 'model', created: pinnedSeconds, owned_by: owner }))
  return Object.freeze({ models: byId, entries, listBody: JSON.stringify({ object: 'list', data }) })
}

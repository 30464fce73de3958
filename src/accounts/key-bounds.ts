import { type Budget, formatBudget } from './budget.ts'

/*
 * Limits of a key that its account does not have (ruling R15). A key and its rotations are one line: they have the same
 * limits and spend the same budget. This is their scope, named by the id of the first key.
 */

/** A field is undefined if the key has no such limit. */
export type KeyBounds = {
  budget: Budget | undefined
  requestsPerMinute: number | undefined
  /** Ids and aliases as clients write them; one that ends in `*` stands for all that begin so. */
  models: readonly string[] | undefined
}

export const unbounded: KeyBounds = { budget: undefined, requestsPerMinute: undefined, models: undefined }

export function isBounded({ budget, requestsPerMinute, models }: KeyBounds): boolean {
  return budget !== undefined || requestsPerMinute !== undefined || models !== undefined
}

/** The most ids and beginnings of ids that a key may have: each request is compared with all of them. */
export const modelsMax = 100

const modelCharsMax = 200

/** Parses models as people write them: `a,b*`. @throws RangeError with a text for the person who wrote it. */
export function parseModels(text: string): string[] {
  const models = [...new Set(text.split(',').map((one) => one.trim()))]
  if (models.includes('')) throw new RangeError('Write ids with commas between them, such as large,small-*.')
  if (models.length > modelsMax) throw new RangeError(`A key names ${modelsMax} models at most.`)
  for (const model of models) {
    if (model.length > modelCharsMax || /[\p{C}\s]/u.test(model))
      throw new RangeError('An id of a model has no blanks and at most 200 characters.')
    if (model.slice(0, -1).includes('*'))
      throw new RangeError('A * stands at the end only: small-* is all that begin so.')
  }
  return models
}

/** The inverse of `parseModels`; a store keeps models in this form. */
export function formatModels(models: readonly string[]): string {
  return models.join(',')
}

/** Whether a key may use a model, by the id or alias in the request. */
export function mayUse(models: readonly string[] | undefined, asked: string): boolean {
  return (
    models === undefined ||
    models.some((model) => (model.endsWith('*') ? asked.startsWith(model.slice(0, -1)) : asked === model))
  )
}

/** The limits as the audit trail shows them; also a part of a key's version. */
export function tellBounds({ budget, requestsPerMinute, models }: KeyBounds) {
  return {
    budget: budget === undefined ? null : formatBudget(budget),
    rpm: requestsPerMinute ?? null,
    models: models === undefined ? null : formatModels(models),
  }
}

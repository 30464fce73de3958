import { type Budget, formatBudget } from './budget.ts'

/*
 * What makes a key narrower than its account (ruling R15). All keys of a line of rotations have the same bounds, and spend
 * the same budget: their scope, which is named by the first of them.
 */

/** Undefined where a key is as wide as its account. */
export type KeyBounds = {
  budget: Budget | undefined
  requestsPerMinute: number | undefined
  /** Ids and aliases as clients ask for them; one that ends in `*` stands for all that begin so. */
  models: readonly string[] | undefined
}

export const unbounded: KeyBounds = { budget: undefined, requestsPerMinute: undefined, models: undefined }

export function isBounded({ budget, requestsPerMinute, models }: KeyBounds): boolean {
  return budget !== undefined || requestsPerMinute !== undefined || models !== undefined
}

/** So many ids and beginnings of ids a key may have: each request is compared with all. */
export const modelsMax = 100

const modelCharsMax = 200

/**
 * Models as people write them: `a,b*`.
 * @throws RangeError with a text for the person who wrote it.
 */
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

/** The inverse, and how a store keeps them. */
export function formatModels(models: readonly string[]): string {
  return models.join(',')
}

/** Whether a key may ask for it, by the id or alias that was asked for. */
export function mayUse(models: readonly string[] | undefined, asked: string): boolean {
  return (
    models === undefined ||
    models.some((model) => (model.endsWith('*') ? asked.startsWith(model.slice(0, -1)) : asked === model))
  )
}

/** For the audit, and for what tells one version of a key from another. */
export function tellBounds({ budget, requestsPerMinute, models }: KeyBounds) {
  return {
    budget: budget === undefined ? null : formatBudget(budget),
    rpm: requestsPerMinute ?? null,
    models: models === undefined ? null : formatModels(models),
  }
}

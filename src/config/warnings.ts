import { readModel } from './models.ts'
import type { Problem } from './problem.ts'
import type { ConfigFile, ModelEntry } from './schema.ts'

/** Something that is allowed and is hardly meant, found at this path. */
export type Warning = { path: PropertyKey[]; message: string }

/**
 * What a right configuration may still do to its operator; `check`, the start and a reload tell it.
 * @returns sentences that name the key and the cure, and never a value.
 */
export function findWarnings(file: ConfigFile): Warning[] {
  const models = file.catalog?.models ?? []
  return models.flatMap((entry, index) =>
    warnOfModel(entry).map(({ path, message }) => ({ path: ['catalog', 'models', index, ...path], message })),
  )
}

/** As people read it: with the line, where there is a file. */
export function formatWarning({ line, message }: Problem): string {
  return line === undefined ? message : `line ${line}: ${message}`
}

function warnOfModel(entry: ModelEntry): Warning[] {
  const { profile } = readModel(entry)
  const isMarked = profile.autoCache !== 'off'
  if (!isMarked || entry.prices.cache_write !== undefined) return []
  const message =
    'has no `cache_write`: requests to this model get cache marks, and what a provider charges for writing its cache (often 1.25 times the input) is sold as plain input; set it, or `profile.auto_cache: off`'
  return [{ path: ['prices'], message }]
}

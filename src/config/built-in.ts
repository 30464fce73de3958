import { parseCredits } from '../accounts/credit.ts'
import { builtInScripts } from '../catalog/built-in-scripts.ts'
import { type Catalog, createCatalog } from '../catalog/catalog.ts'
import { readModel } from './models.ts'

/** Returns the catalog that is served while no configuration names a model, so that a first run needs no provider account. */
export function builtInCatalog(): Catalog {
  const models = builtInScripts.map((entry) =>
    readModel({
      id: entry.id,
      also: [],
      wire: entry.wire,
      upstream: 'simulator',
      upstream_model: entry.upstreamModel,
      max_output_tokens: 8192,
      context_window: 128_000,
      // Prices are those of a real model, so that even a debit for a few words is visible.
      prices: {
        input: parseCredits('3'),
        cache_read: parseCredits('0.3'),
        cache_write: parseCredits('3.75'),
        output: parseCredits('15'),
      },
      profile: 'simulator',
      allow: [],
      hosted_tools: 'pass',
      implicit_key: 'off',
    }),
  )
  return createCatalog(models, Date.UTC(2026, 10, 1) / 1000, 'triwire')
}

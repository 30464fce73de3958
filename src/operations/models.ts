import { formatPrices } from '../accounts/credit.ts'
import type { Model } from '../catalog/model.ts'
import { setAt } from '../catalog/price-list.ts'
import type { ModelRow } from './shapes.ts'

/**
 * Lists the models that clients can name, for operators, with the base prices of this moment.
 * @param isFailing undefined: no running server is asked
 */
export function listModels(entries: readonly Model[], nowMs: number, isFailing?: (id: string) => boolean): ModelRow[] {
  return entries.map((model) => {
    const set = setAt(model.prices, { at: nowMs })
    return {
      id: model.id,
      also: [...model.aliases],
      wire: model.wire,
      upstream: model.routes[0]!.upstream,
      upstream_model: model.upstreamModel,
      upstreams: model.routes.map(({ upstream, priority, weight, serving }) => ({
        name: upstream,
        priority,
        weight,
        upstream_model: serving.upstreamModel,
      })),
      max_output_tokens: model.outputTokensMax,
      context_window: model.contextWindow ?? null,
      prices: formatPrices(set.prices),
      price_version: set.version,
      failing: isFailing?.(model.id) ?? null,
    }
  })
}

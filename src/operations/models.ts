import { formatPrices } from '../accounts/credit.ts'
import type { Model } from '../catalog/model.ts'
import type { ModelRow } from './shapes.ts'

/** Lists the models that clients can name, for operators. @param isFailing undefined: no running server is asked */
export function listModels(entries: readonly Model[], isFailing?: (id: string) => boolean): ModelRow[] {
  return entries.map((model) => ({
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
    prices: formatPrices(model.prices),
    price_version: model.priceVersion,
    failing: isFailing?.(model.id) ?? null,
  }))
}

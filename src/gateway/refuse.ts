import type { Model } from '../catalog/model.ts'
import type { GatewayError } from '../errors.ts'
import { hostingWords } from '../upstream/hosting-words.ts'
import { refusalOf } from '../upstream/refusal.ts'
import type { Target } from '../upstream/target.ts'
import type { Failure, Verdict } from '../upstream/verdict.ts'
import { wires } from '../wires/wires.ts'
import type { Exchange } from './exchange.ts'
import type { Snapshot } from './snapshot.ts'

/** What clients know to be served here. */
const ownPaths = Object.values(wires).flatMap(({ path, counter }) => (counter ? [path, counter.path] : [path]))

/**
 * What the client of a failed request is told, with all that is known of what its text may and must not say.
 * @param target of the attempt that failed; undefined where nobody was asked.
 */
export function refuse(
  { snapshot, model, exchange }: { snapshot: Snapshot; model: Model; exchange: Exchange },
  target: Target | undefined,
  failure: Failure,
  verdict: Verdict,
): GatewayError {
  const context = () => ({
    modelId: model.id,
    upstreamModels: [...new Set([model.upstreamModel, target?.model.upstreamModel ?? model.upstreamModel])],
    hidden: target ? hostingWords(snapshot.config, target.upstream, snapshot.keyOf) : [],
    ownPaths,
    isSent: (id: string) => exchange.holds(id),
  })
  return refusalOf(verdict.tell, failure, context, exchange.inClientWords)
}

import type { Model } from '../catalog/model.ts'
import type { GatewayError } from '../errors.ts'
import { hostingWords } from '../upstream/hosting-words.ts'
import { refusalOf } from '../upstream/refusal.ts'
import type { Target } from '../upstream/target.ts'
import type { Failure, Verdict } from '../upstream/verdict.ts'
import { clientWires } from '../wires/wires.ts'
import type { Exchange } from './exchange.ts'
import type { Snapshot } from './snapshot.ts'

/** The paths that clients know. */
const ownPaths = clientWires.flatMap(({ client: { path, counter } }) => (counter ? [path, counter.path] : [path]))

/**
 * Makes the client's error for a failed request. The snapshot and the exchange say which words its text must not contain.
 * @param target of the attempt that failed; undefined if there was none
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

import type { Model } from '../catalog/model.ts'
import type { Upstream } from '../config/config.ts'
import type { Target } from './target.ts'
import type { Verdict } from './verdict.ts'

/** Which account of which upstream a request goes to. */
export interface Pool {
  /**
   * The target of the next attempt, or undefined where nobody is left to ask.
   * @param affinity the conversation key scoped to its account: the same one goes to the same place (ruling P6).
   * @param tried targets of this request that must not be asked again.
   */
  choose(model: Model, affinity: string | undefined, tried: readonly Target[]): Target | undefined
  /** What came of an attempt that failed. */
  note(target: Target, verdict: Verdict, retryAfterSeconds: number | undefined): void
}

/**
 * The pool of a configuration in which a model has one upstream and that one account. It is never left alone: with nobody
 * else to ask, a failure is told to the client that met it and the next one is served if it can be.
 */
export function createPool(upstreams: ReadonlyMap<string, Upstream>): Pool {
  // A target keeps its identity, so that who was tried is told apart by it.
  const targets = new Map<Model, Target>()
  return {
    choose(model, _affinity, tried) {
      const target = targets.get(model) ?? open(model)
      return target && !tried.includes(target) ? target : undefined
    },
    note() {},
  }

  function open(model: Model): Target | undefined {
    const upstream = upstreams.get(model.upstream)
    if (!upstream) return undefined
    const target = { upstream, account: upstream.accounts[0], upstreamModel: model.upstreamModel }
    targets.set(model, target)
    return target
  }
}

import { hash } from 'node:crypto'
import type { Model, Route } from '../catalog/model.ts'
import type { Upstream, UpstreamAccount } from '../config/config.ts'
import { Bindings } from './bindings.ts'
import { Health } from './health.ts'
import { RetryBudget } from './retry-budget.ts'

/** What pools know of accounts, upstreams and conversations beyond one configuration (U14). */
export type PoolMemory = {
  healthOf(place: string): Health
  budgetOf(upstream: string): RetryBudget
  readonly bindings: Bindings
  /** Forgets the accounts and upstreams that a configuration no longer has. */
  keepOnly(places: ReadonlySet<string>, upstreams: ReadonlySet<string>): void
}

/** @param clockMs monotonic; random of [0, 1) */
export function createPoolMemory(clockMs: () => number, random: () => number = Math.random): PoolMemory {
  const healths = new Map<string, Health>()
  const budgets = new Map<string, RetryBudget>()
  return {
    healthOf: (place) => findOrMake(healths, place, () => new Health(clockMs, random)),
    budgetOf: (upstream) => findOrMake(budgets, upstream, () => new RetryBudget(clockMs)),
    bindings: new Bindings(),
    keepOnly(places, upstreams) {
      for (const place of healths.keys()) if (!places.has(place)) healths.delete(place)
      for (const upstream of budgets.keys()) if (!upstreams.has(upstream)) budgets.delete(upstream)
    },
  }
}

function findOrMake<Value>(map: Map<string, Value>, key: string, make: () => Value): Value {
  const found = map.get(key)
  if (found) return found
  const made = make()
  map.set(key, made)
  return made
}

/**
 * What makes an account's service of a model the same one after a reload: upstream, address, account, key, and the name
 * that the model has there. The key itself stands in no table;
 * of one that is renewed it counts where it comes from.
 */
export function placeOf(model: Model, upstream: Upstream, route: Route, account: UpstreamAccount | undefined): string {
  const { key: secret, renewal } = account ?? {}
  const key = hash('sha256', renewal ? JSON.stringify(renewal) : (secret?.reveal() ?? ''), 'hex').slice(0, 16)
  return JSON.stringify([
    model.entryId,
    upstream.name,
    upstream.baseUrl,
    route.serving.upstreamModel,
    account?.name,
    key,
  ])
}

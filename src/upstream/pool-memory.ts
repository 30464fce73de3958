import { hash } from 'node:crypto'
import type { Cooldown, SharedCooldowns } from '../accounts/server-store.ts'
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
  /** Places that serve the same model and are switched on: not all of them may cool for what may pass (ruling U1). */
  group(places: readonly string[]): void
  /** Servers that share a store leave the same accounts alone. */
  share(cooldowns: SharedCooldowns): void
  /** Forgets the accounts and upstreams that a configuration no longer has. */
  keepOnly(places: ReadonlySet<string>, upstreams: ReadonlySet<string>): void
}

/** @param clockMs monotonic; random of [0, 1) */
export function createPoolMemory(clockMs: () => number, random: () => number = Math.random): PoolMemory {
  const healths = new Map<string, Health>()
  const budgets = new Map<string, RetryBudget>()
  const groups = new Map<string, readonly string[]>()
  /** Of places that no request has looked for yet. */
  const heard = new Map<string, { cooldown: Cooldown; untilMs: number }>()
  let shared: SharedCooldowns | undefined
  return {
    healthOf(place) {
      return findOrMake(healths, place, () => {
        return new Health(clockMs, random, (cooling) => shared?.cool({ place, ...cooling }))
      })
    },
    budgetOf: (upstream) => findOrMake(budgets, upstream, () => new RetryBudget(clockMs)),
    bindings: new Bindings(),
    group(places) {
      for (const place of places) groups.set(place, places)
      for (const place of places) {
        const early = heard.get(place)
        heard.delete(place)
        if (early) hear({ ...early.cooldown, forMs: early.untilMs - clockMs() })
      }
    },
    share(cooldowns) {
      shared = cooldowns
      cooldowns.onCooled(hear)
    },
    keepOnly(places, upstreams) {
      for (const known of [healths, groups, heard])
        for (const place of known.keys()) if (!places.has(place)) known.delete(place)
      for (const upstream of budgets.keys()) if (!upstreams.has(upstream)) budgets.delete(upstream)
    },
  }

  function hear(cooldown: Cooldown): void {
    const { place, forMs, cool } = cooldown
    const group = groups.get(place)
    if (group === undefined) {
      for (const [known, { untilMs }] of heard) if (untilMs <= clockMs()) heard.delete(known)
      heard.set(place, { cooldown, untilMs: clockMs() + forMs })
    } else if (forMs > 0 && (cool === 'now' || maySpare(place, group))) healths.get(place)?.hear(cooldown)
  }

  /** Each server spares half of a pool by what it knows: all that they tell each other may be the whole of it. */
  function maySpare(place: string, group: readonly string[]): boolean {
    const cooling = group.filter((other) => other !== place && healths.get(other)?.state !== 'ready').length
    return cooling + 1 <= Math.floor(group.length / 2)
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

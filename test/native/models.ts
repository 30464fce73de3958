import type { Model, PriceList, Prices, Route, Serving } from '../../src/catalog/model.ts'
import { type ProfileSetting, resolveProfile } from '../../src/catalog/profiles.ts'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { createPriceList } from '../../src/config/price-list.ts'

export const plainPrices: Prices = {
  ...{ inputNanos: 3n, cacheReadNanos: 3n, cacheWriteNanos: 3n, cacheWrite1hNanos: 3n },
  outputNanos: 15n,
}

/** A list of one set of prices. */
export function listOf(prices: Prices, version = 'v1'): PriceList {
  const set = { prices, version, row: 0, band: null, tier: null, geo: null }
  return createPriceList([{ fromMs: Number.NEGATIVE_INFINITY, bands: [], sets: [new Map([[' ', set]])] }])
}

/** A model as the catalog has it, called `m` here and `up` by its upstream. */
export function modelOf(wire: ClientWire, more: Partial<Model> = {}, setting: ProfileSetting = {}): Model {
  const profile = more.profile ?? resolveProfile(wire, setting)
  const serving: Serving = {
    upstreamModel: more.upstreamModel ?? 'up',
    profile,
    remoteMedia: more.remoteMedia ?? profile.remoteMedia,
    storedFiles: more.storedFiles ?? 'pass',
  }
  return {
    id: 'm',
    entryId: more.id ?? 'm',
    aliases: [],
    wire,
    ...serving,
    routes: [routeOf(serving)],
    outputTokensMax: 8192,
    contextWindow: undefined,
    prices: listOf(plainPrices),
    expectedTiers: [],
    allowedFields: new Set(),
    hostedTools: 'pass',
    implicitKey: 'off',
    affinity: 'alike',
    ...more,
  }
}

/** The upstream `sim`, or another, as it serves a model. */
export function routeOf(serving: Serving, more: Partial<Route> = {}): Route {
  return { upstream: 'sim', priority: 1, weight: 1, headers: new Map(), serving, ...more }
}

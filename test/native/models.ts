import type { Model, WireName } from '../../src/catalog/model.ts'
import { type ProfileSetting, resolveProfile } from '../../src/catalog/profiles.ts'

/** A model as the catalog has it, called `m` here and `up` by its upstream. */
export function modelOf(wire: WireName, more: Partial<Model> = {}, profile: ProfileSetting = {}): Model {
  return {
    id: 'm',
    wire,
    upstream: 'sim',
    upstreamModel: 'up',
    outputTokensMax: 8192,
    prices: { inputNanos: 3n, cacheReadNanos: 3n, cacheWriteNanos: 3n, cacheWrite1hNanos: 3n, outputNanos: 15n },
    priceVersion: 'v1',
    profile: resolveProfile(wire, profile),
    allowedFields: new Set(),
    hostedTools: 'pass',
    remoteMedia: resolveProfile(wire, profile).remoteMedia,
    storedFiles: 'pass',
    ...more,
  }
}

import { hash } from 'node:crypto'

/** Keys that each server sets for itself, or that are compared separately. All others are the same for all replicas. */
const own = ['listen', 'admin_listen', 'admin', 'state_dir', 'store', 'seal_key', 'log', 'metrics', 'telemetry']

/**
 * Makes a digest of a configuration, so that replicas can see that they run with the same one. It covers the written keys
 * and not the values made from them. So a newer version with more settings has the same digest for the same file. Secrets
 * are a part of the digest.
 */
export function digestConfig(written: Readonly<Record<string, unknown>>): string {
  const shared = Object.entries(written).filter(([key]) => !own.includes(key))
  return hash('sha256', `triwire config 1\n${stableJson(Object.fromEntries(shared))}`, 'base64url').slice(0, 16)
}

/** Writes JSON with the members sorted by name. */
function stableJson(value: unknown): string {
  return JSON.stringify(value, (_, part) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
}

import { hash } from 'node:crypto'

/** What each server says for itself, or what is compared by itself; all else is the same for all replicas of a service. */
const own = ['listen', 'admin_listen', 'admin', 'state_dir', 'store', 'seal_key', 'log', 'metrics', 'telemetry']

/**
 * One word for what a configuration says, for replicas to see that they run with the same one. Of what is written and not of
 * what becomes of it: a newer triwire with more settings has the same word for the same file. Secrets are in it as a part of
 * the one digest.
 */
export function digestConfig(written: Readonly<Record<string, unknown>>): string {
  const shared = Object.entries(written).filter(([key]) => !own.includes(key))
  return hash('sha256', `triwire config 1\n${stableJson(Object.fromEntries(shared))}`, 'base64url').slice(0, 16)
}

/** Members in the order of their names. */
function stableJson(value: unknown): string {
  return JSON.stringify(value, (_, part) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )
}

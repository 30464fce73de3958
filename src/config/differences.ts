import { hash } from 'node:crypto'
import type { Config } from './config.ts'
import { providerOf, spellSignIn } from './sign-in.ts'
import { spellTelemetry } from './telemetry.ts'
import { formatAddress } from './values.ts'

/**
 * Lists the changed keys for which a reload does not suffice, so that a restart is needed (ruling X10).
 * @param before the configuration at the start
 */
export function needsRestart(before: Config, next: Config): string[] {
  const isOther = {
    listen: formatAddress(before.listen) !== formatAddress(next.listen),
    tls: (before.tls === undefined) !== (next.tls === undefined),
    admin_listen: formatAddress(before.adminListen) !== formatAddress(next.adminListen),
    admin:
      before.adminUrl !== next.adminUrl ||
      before.adminReplicaUrl !== next.adminReplicaUrl ||
      (before.adminTls === undefined) !== (next.adminTls === undefined),
    store: nameOf(before) !== nameOf(next),
    sign_in: spellSignIn(before.signIn) !== spellSignIn(next.signIn),
    // With SQLite `state_dir` is always the folder of the store.
    state_dir: next.store.engine === 'postgres' && before.stateDir !== next.stateDir,
    reporting: JSON.stringify(before.reporting) !== JSON.stringify(next.reporting),
    webhooks: spellWebhooks(before) !== spellWebhooks(next),
    telemetry: spellTelemetry(before.telemetry) !== spellTelemetry(next.telemetry),
    seal_key: before.sealKey?.reveal() !== next.sealKey?.reveal(),
    log: JSON.stringify(before.log) !== JSON.stringify(next.log),
    'limits.connections_max': before.limits.connectionsMax !== next.limits.connectionsMax,
    'timeouts.headers': before.timeouts.headersMs !== next.timeouts.headersMs,
    'timeouts.keep_alive': before.timeouts.keepAliveMs !== next.timeouts.keepAliveMs,
    'timeouts.settle_deadline': before.timeouts.settleDeadlineMs !== next.timeouts.settleDeadlineMs,
  }
  return Object.entries(isOther).flatMap(([key, is]) => (is ? [key] : []))
}

/**
 * Returns the configuration that applies after a reload. Of the keys that need a restart (`needsRestart`), those that
 * are read while the server runs keep their values (ruling X10).
 */
export function keepFixed(next: Config, before: Config): Config {
  const { listen, store, sealKey, reporting, adminUrl } = before
  const tls = before.tls && (next.tls ?? before.tls)
  const adminTls = before.adminTls && (next.adminTls ?? before.adminTls)
  const signIn = before.signIn && { ...(next.signIn ?? before.signIn), ...providerOf(before.signIn) }
  return { ...next, listen, store, sealKey, reporting, adminUrl, tls, adminTls, signIn }
}

function spellWebhooks({ webhooks }: Config): string {
  return webhooks
    .map(({ url, secret, events, belowNanos, proxy, ca }) =>
      [url.reveal(), secret.reveal(), ...events, belowNanos, proxy?.url.reveal(), ca].join(' '),
    )
    .join('\n')
}

/** Returns the address of the store with its password, because a new password needs a restart too. */
function nameOf({ store }: Config): string {
  return store.engine === 'sqlite' ? store.path : store.url.reveal()
}

/** Keys that replicas may set differently, and keys that are compared elsewhere. All other keys must be the same. */
const own = ['listen', 'admin_listen', 'admin', 'state_dir', 'store', 'seal_key', 'log', 'metrics', 'telemetry']

/**
 * Makes a digest of a configuration, by which replicas notice that their configurations differ. It covers the keys in
 * the file, secrets included, but no defaults. So a newer version with more settings makes the same digest of the same
 * file.
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

import type { Config } from './config.ts'
import { spellTelemetry } from './telemetry.ts'
import { formatAddress } from './values.ts'

/* Settings that a server keeps from its start, even if its file has changed (ruling X10). */

/** Lists the keys that differ and take effect only at the next start. @param before the configuration of the start */
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
    // With SQLite it is always the store's own folder.
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

function spellWebhooks({ webhooks }: Config): string {
  return webhooks
    .map(({ url, secret, events, belowNanos }) => [url.reveal(), secret.reveal(), ...events, belowNanos].join(' '))
    .join('\n')
}

/** The address of the store. It has the password, so a new password needs a restart. */
function nameOf({ store }: Config): string {
  return store.engine === 'sqlite' ? store.path : store.url.reveal()
}

import type { Config } from './config.ts'
import { spellTelemetry } from './telemetry.ts'
import { formatAddress } from './values.ts'

/* What stays as it was at the start of a server, though its file says otherwise by now (ruling X10). */

/** Keys by which a configuration differs that are not heeded before the next start. @param before with which the server was started */
export function needsRestart(before: Config, next: Config): string[] {
  const isOther = {
    listen: formatAddress(before.listen) !== formatAddress(next.listen),
    tls: (before.tls === undefined) !== (next.tls === undefined),
    admin_listen: formatAddress(before.adminListen) !== formatAddress(next.adminListen),
    admin: before.adminUrl !== next.adminUrl || (before.adminTls === undefined) !== (next.adminTls === undefined),
    store: nameOf(before) !== nameOf(next),
    // With SQLite it is the store's own folder.
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

/** Of its store, its password too: a new one is another one. */
function nameOf({ store }: Config): string {
  return store.engine === 'sqlite' ? store.path : store.url.reveal()
}

/** A configuration as a server has it in force that was started with an earlier one. */
export function asStartedWith(first: Config, next: Config): Config {
  const { listen, adminListen, adminUrl, store, stateDir, reporting, webhooks, telemetry, sealKey, log } = first
  const { headersMs, keepAliveMs, settleDeadlineMs } = first.timeouts
  return {
    ...next,
    ...{ listen, adminListen, adminUrl, store, stateDir, reporting, webhooks, telemetry, sealKey, log },
    // A certificate is renewed; whether there is one stays.
    tls: first.tls && (next.tls ?? first.tls),
    adminTls: first.adminTls && (next.adminTls ?? first.adminTls),
    limits: { ...next.limits, connectionsMax: first.limits.connectionsMax },
    timeouts: { ...next.timeouts, headersMs, keepAliveMs, settleDeadlineMs },
  }
}

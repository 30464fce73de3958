import { createMetricsHandler } from '../admin/metrics.ts'
import type { Config } from '../config/config.ts'
import { isLoopback } from '../config/values.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { RecordListener, Tracing } from '../gateway/record.ts'
import { version } from '../host/version.ts'
import type { Log } from '../log/log.ts'
import { expositionType } from '../telemetry/exposition.ts'
import { families } from '../telemetry/families.ts'
import { Counter, type Family } from '../telemetry/instruments.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import type { Otlp } from '../telemetry/otlp/otlp.ts'
import { passOn } from '../telemetry/trace-context.ts'
import type { ConnectionWatch } from '../upstream/target.ts'

/** The metrics and traces of a server, for the operator's monitoring. */
export type Telemetry = {
  /** The listeners that count. They must get the record of every request. */
  listeners: readonly RecordListener[]
  tracing: Tracing | undefined
  /** The 99th percentile of the event loop's delay in about the last minute, in ms. */
  readLagMs(): number
  /** Begins to report on a gateway. @param more metrics of other modules @returns the handler for `/metrics` */
  watch(gateway: Gateway, more: readonly Family[]): ReturnType<typeof createMetricsHandler>
  /** Sends the data that is not sent yet, for at most two seconds. Nothing is counted after that. */
  close(): Promise<void>
}

/**
 * Opens the metrics. The code that sends them is loaded only if the configuration names a receiver.
 * @param config the configuration at the start
 * @param current returns the configuration in use
 * @param replica the name of this server among the servers of its store; undefined if it is the only one
 */
export async function openTelemetry(
  config: Config,
  current: () => Config,
  log: Log,
  replica?: string,
): Promise<Telemetry> {
  const metrics = createMetrics(version, replica)
  const otlp = await openOtlp()
  return {
    listeners: otlp ? [metrics.note, otlp.note] : [metrics.note],
    readLagMs: metrics.readLagMs,
    tracing: otlp?.tracing ?? (config.telemetry.propagate ? passOn : undefined),
    watch(gateway, more) {
      metrics.watch(gateway, [...more, ...(otlp?.families ?? [])])
      return createMetricsHandler({
        isLoopback: isLoopback(config.adminListen),
        token: () => current().metrics.token?.reveal(),
        contentType: expositionType,
        write: async () => metrics.write(),
        reportBug: (bug) => log.event('error', 'bug', { error: bug.stack }),
      })
    },
    async close() {
      await otlp?.close()
      metrics.stop()
    },
  }

  async function openOtlp(): Promise<Otlp | undefined> {
    const { telemetry: settings } = config
    if (!settings.traces && !settings.metrics) return undefined
    const { startOtlp } = await import('../telemetry/otlp/otlp.ts')
    const others = () => metrics.families
    return startOtlp({
      settings,
      version,
      others,
      config: current,
      log: (event, fields) => log.event('error', event, fields),
    })
  }
}

const everyMs = 60_000

/**
 * Counts the cases in which an upstream sent bytes without a request (ruling Y14). A broken upstream may send such
 * bytes after each answer, so it gets at most one log line a minute. `before` in a line is the number of cases since
 * the last line. An upstream without cases counts 0 from its start. Without that, an alert on the growth of the count
 * would miss the first case.
 * @param clockMs a monotonic clock
 */
export function createUnaskedLog(log: Log['event'], clockMs: () => number) {
  const counter = new Counter(families.unasked)
  const lines = new Map<string, { loggedMs: number; before: number }>()
  const note: ConnectionWatch['onUnasked'] = (upstream, place) => {
    counter.add(1, upstream)
    const last = lines.get(upstream)
    const nowMs = clockMs()
    if (last !== undefined && nowMs - last.loggedMs < everyMs) last.before++
    else {
      log('error', 'upstream_unasked', { upstream, place, ...(last?.before && { before: last.before }) })
      lines.set(upstream, { loggedMs: nowMs, before: 0 })
    }
  }
  /** Begins to count for these upstreams. */
  const watch = (upstreams: Iterable<string>) => {
    for (const upstream of upstreams) counter.add(0, upstream)
  }
  return { note, watch, families: [counter] }
}

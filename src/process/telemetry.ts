import type { Config } from '../config/config.ts'
import { isLoopback } from '../config/values.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { RecordListener } from '../gateway/record.ts'
import type { ScrapedMetrics } from '../http/admin-metrics.ts'
import { expositionType } from '../telemetry/exposition.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { version } from './version.ts'

/** What a server tells its operator's monitoring. */
export type Telemetry = {
  /** Is to hear of every request. */
  note: RecordListener
  /** From now on it tells of this gateway. @returns what a scraper gets of it */
  watch(gateway: Gateway): ScrapedMetrics
  /** Nothing is counted any more. */
  close(): Promise<void>
}

/** @param config as of the start */
export function openTelemetry(config: Config): Telemetry {
  const metrics = createMetrics(version)
  return {
    note: metrics.note,
    watch(gateway) {
      metrics.watch(gateway)
      return {
        isLoopback: isLoopback(config.adminListen),
        token: () => gateway.snapshots.current.config.metrics.token?.reveal(),
        contentType: expositionType,
        write: metrics.write,
      }
    },
    async close() {
      metrics.stop()
    },
  }
}

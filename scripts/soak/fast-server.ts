/*
 * Runs a gateway with fast clocks (`fast-clock.ts`), built as `serve` builds it. Only its overload watch uses the real
 * clock, because the machine is not faster. The command line is `serve --config PATH`. It prints its address.
 */

import { loadConfig } from '../../src/config/load.ts'
import { calmCollector, tidyWhenIdle } from '../../src/host/collector.ts'
import { createLoadWatch } from '../../src/host/load-watch.ts'
import { createLog } from '../../src/log/log.ts'
import { openStoreOf } from '../../src/process/open-store.ts'
import { startServer } from '../../src/process/server.ts'
import { trueMs } from './fast-clock.ts'

const config = loadConfig({ config: process.argv.at(-1)! })
const log = createLog({ level: config.log.level, isPretty: false, nowMs: Date.now })
const onFatal = (error: Error) => {
  throw error
}
const { store } = await openStoreOf(config, { clockMs: () => performance.now(), onFatal, log: log.event })
const server = await startServer({ config, store, log, load: createLoadWatch(trueMs) })
calmCollector()
tidyWhenIdle()
console.log(`listens on http://127.0.0.1:${server.address.port}`)
process.once('SIGINT', async () => {
  await server.drain(0, 0)
  await store.close()
  await log.flush()
  process.exit()
})

import { fuzzGateway } from '../test/support/fuzz-gateway.ts'
import { startTestGateway } from '../test/support/gateway.ts'

// node bin/node.mjs scripts/fuzz-gateway.ts [count] [seed]
//
// Sends mutated bodies to all paths of a whole gateway, with the simulator as upstream. There must be no 5xx, no hang,
// no bill for a refusal, and no uncaught exception. Otherwise the exit code is 1, and the bodies are printed.

const count = Number(process.argv[2] ?? 100_000)
const seed = Number(process.argv[3] ?? 1)
const gateway = await startTestGateway({ config: { limits: { requests_per_minute: 1e9 } }, credit: '1000000' })
const started = performance.now()
let asked = 0
for (let round = 0; asked < count; round++) {
  const report = await fuzzGateway(gateway, Math.min(10_000, count - asked), seed + round)
  asked += report.asked
  gateway.simulator.requests.length = 0
  const statuses = [...report.statuses].sort().map(([status, times]) => `${status}: ${times}`)
  const seconds = ((performance.now() - started) / 1_000).toFixed(0)
  console.log(`${asked} asked in ${seconds} s; ${statuses.join(', ')}; slowest ${report.slowestMs.toFixed(0)} ms`)
  for (const fault of report.faults) console.log(fault)
  if (report.faults.length > 0) process.exitCode = 1
}
await gateway.close()

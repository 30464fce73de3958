/*
 * Keeps a gateway at saturation while its timers and windows run on a clock that is 48 times as fast. So half an hour
 * has the windows, the sweeps and the rotations of a day. The load has all pairs of wires, JSON and streams, and turns
 * of agents. In the last third the memory may grow by 2 %, and the ledger must have every answer.
 *
 *     node bin/node.mjs scripts/soak-fast.ts [--minutes 30] [--speed 48]
 */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startBench, type TestedServer } from '../bench/servers.ts'
import { type Taking, take } from '../bench/take.ts'
import { readTree } from '../bench/usage.ts'
import { workloads } from '../bench/workloads.ts'

const { values: options } = parseArgs({
  options: { minutes: { type: 'string', default: '30' }, speed: { type: 'string', default: '48' } },
})
const totalMs = Number(options.minutes) * 60_000
const growthMax = 0.02
/** The accepted share of wrong answers. On a busy machine, a gateway at saturation refuses some (reliability §7). */
const wrongMax = 0.01
/** Without large bodies, which would dominate the measured memory. */
const rows = workloads.filter(({ name }) => /^(1 KB|60 KB|stream)/.test(name))
const requestsOf = { request: 3_000, event: 300 }

process.env['SOAK_SPEED'] = options.speed
process.env['SOAK_FROM_MS'] = String(Date.now())
const [clock, launcher] = ['fast-clock.ts', 'fast-server.ts'].map((file) => join(import.meta.dirname, 'soak', file))
// A commit is not faster, so its deadline is five real seconds.
const config = { timeouts: { settle_deadline: `${5 * Number(options.speed)}s` } }
const bench = await startBench({
  variants: [{ name: 'fast', flags: ['--import', clock!], launcher: launcher!, config }],
})
const troubles: string[] = []
const samples: { ms: number; rssMb: number }[] = []
const startedMs = performance.now()
const elapsed = () => performance.now() - startedMs
try {
  const server = bench.servers.find(({ name }) => name === 'fast')!
  const before = server.readBills!()
  const sampling = setInterval(() => samples.push({ ms: elapsed(), rssMb: readTree(server.pid).rssMb }), 1_000)
  const { asked, answers } = await load(server)
  clearInterval(sampling)
  const booked = server.readBills!().count - before.count
  if (answers < asked * (1 - wrongMax)) troubles.push(`of ${asked} requests ${answers} were answered`)
  if (booked !== answers) troubles.push(`of ${answers} answers ${booked} are in the ledger`)
  const [earlier, later] = [meanOf(4 / 6, 5 / 6), meanOf(5 / 6, 1)]
  const growth = later / earlier - 1
  if (growth > growthMax) troubles.push(`memory grew by ${(growth * 100).toFixed(1)} % in the last third`)
  const days = (elapsed() * Number(options.speed)) / 86_400_000
  console.log(
    `${options.minutes} min, ${days.toFixed(1)} days by its clock: ${answers} answers; MB of each sixth: ` +
      `${[0, 1, 2, 3, 4, 5].map((n) => meanOf(n / 6, (n + 1) / 6).toFixed(0)).join(', ')}; the last third grew by ${(growth * 100).toFixed(2)} %`,
  )
} finally {
  await bench.close()
}
for (const trouble of troubles) console.log(`FAIL: ${trouble}`)
if (troubles.length > 0) process.exitCode = 1

/** Runs one row after the other until the end. @returns the number of requests, and of answers with 200 */
async function load(server: TestedServer): Promise<{ asked: number; answers: number }> {
  const answered = new Map<string, number>()
  const tell = (trouble: string) => console.error(trouble)
  let asked = 0
  for (let at = 0; elapsed() < totalMs; at++) {
    const workload = rows[at % rows.length]!
    const taking: Taking = { bench, workload, tell, isStrict: false, answered, others: [] }
    await take(taking, server, requestsOf[workload.unit])
    asked += requestsOf[workload.unit]
    console.error(`${Math.round(elapsed() / 1_000)} s: ${samples.at(-1)?.rssMb.toFixed(0)} MB behind ${workload.name}`)
  }
  return { asked, answers: answered.get(server.name)! }
}

/** Returns the mean memory in a part of the time, in MB. @param from the beginning and the end as shares of the time */
function meanOf(from: number, to: number): number {
  const within = samples.filter(({ ms }) => ms >= from * totalMs && ms < to * totalMs)
  return within.reduce((sum, { rssMb }) => sum + rssMb, 0) / within.length
}

/*
 * Measures what an admission in PostgreSQL costs, by the number of accounts in one call: the CPU of the server's
 * processes, and of this process, which asks as a replica does. A request asks for a hold and counts in its account's
 * rate limit. Its release goes with the next call.
 *
 *     node bin/node.mjs bench/admission.bench.ts [calls]
 */
import { readFileSync } from 'node:fs'
import { openShared, startReplica } from '../test/replicas/cluster.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { readNumbers } from './options.ts'

const [calls = 0] = readNumbers('node bin/node.mjs bench/admission.bench.ts [calls]', 2_000)
const accountsMax = 1_000
const ticksPerSecond = 100

const cluster = await startPostgres()
const store = await openShared(cluster, 'bench')
await store.operator.query(
  `INSERT INTO triwire.accounts (id, name, state, revision, created_ms)
   SELECT 'acct_' || lpad(n::text, 16, '0'), 'n' || n, 'active', 1, 1 FROM generate_series(1, $1) n`,
  [accountsMax],
)
await store.operator.query(
  `INSERT INTO triwire.balances (account_id, balance) SELECT id, 1000000000000000 FROM triwire.accounts`,
)
const replicas = [await startReplica(store.shared, { name: 'one' }), await startReplica(store.shared, { name: 'two' })]

console.log('accounts a call   server µs   Node µs   (CPU an admission)   p50 ms   p99 ms')
for (const accounts of [1, 2, 4, 8, 16]) {
  await run(accounts, Math.ceil(calls / 4))
  const { serverUs, nodeUs, p50, p99 } = await run(accounts, calls)
  console.log(
    [accounts, serverUs.toFixed(0), nodeUs.toFixed(0), '', p50.toFixed(2), p99.toFixed(2)]
      .map((part, n) => String(part).padStart([15, 12, 10, 23, 9, 9][n]!))
      .join(''),
  )
}
for (const replica of replicas) await replica.stop()
await store.operator.close()
cluster.remove()

/** Sends requests through one replica. The other one holds credit of each account before, so that calls read shares. */
async function run(accounts: number, count: number) {
  let next = 0
  const take = (replica: (typeof replicas)[number]) => {
    const asked: Promise<unknown>[] = []
    for (let n = 0; n < accounts; n++) {
      next = (next + 2) % accountsMax
      const id = `acct_${String(next + 1).padStart(16, '0')}`
      asked.push(replica.ask(id, 1_000n, { requestsPerMinute: 1_000_000 }).then(() => replica.release(id, 1_000n)))
    }
    return Promise.all(asked)
  }
  for (let n = 0; n < accountsMax / 2; n += accounts) await take(replicas[1]!)
  const took: number[] = []
  const [server, node] = [serverTicks(), process.cpuUsage()]
  for (let n = 0; n < count; n++) {
    const startedMs = performance.now()
    await take(replicas[0]!)
    took.push(performance.now() - startedMs)
  }
  const { user, system } = process.cpuUsage(node)
  const admissions = count * accounts
  took.sort((a, b) => a - b)
  return {
    serverUs: ((serverTicks() - server) * 1e6) / ticksPerSecond / admissions,
    nodeUs: (user + system) / admissions,
    p50: took[Math.floor(took.length / 2)]!,
    p99: took[Math.floor(took.length * 0.99)]!,
  }
}

/** The CPU of all processes of the server so far. */
function serverTicks(): number {
  let ticks = 0
  for (const pid of cluster.pids()) {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
      ticks += Number(fields[11]) + Number(fields[12])
    } catch {
      // The process has ended.
    }
  }
  return ticks
}

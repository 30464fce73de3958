/*
 * Measures the cost of a store in PostgreSQL. First two replicas post debits at a fixed rate. The results are the
 * times, and the CPU of the serving threads, of all threads and of PostgreSQL. Then the whole gateway runs on
 * PostgreSQL and on SQLite, in turns, at saturation. PostgreSQL shares the cores of this machine, so times are upper
 * bounds.
 *
 *     node bin/node.mjs bench/postgres.bench.ts [debits a second, default 2000] [seconds, default 10]
 */
import { fork } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readStorePlace } from '../src/config/store-place.ts'
import { openBooks } from '../src/store/open-books.ts'
import { openPostgresStore } from '../src/store/postgres/open.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { marksOf } from './answers.ts'
import { billOf } from './bill.ts'
import { readNumbers } from './options.ts'
import { requestsOf } from './request.ts'
import { startBench } from './servers.ts'
import { putLoad } from './tools.ts'
import { readCpu } from './usage.ts'
import { workloads } from './workloads.ts'

const accountsCount = 100
const warmSeconds = 3
const replicas = 2

type Told = { tookMs: number[]; mainUs: number; allUs: number; count: number }

async function measure(): Promise<void> {
  const usage = 'node bin/node.mjs bench/postgres.bench.ts [debits a second] [seconds]'
  const [rate = 0, seconds = 0] = readNumbers(usage, 2_000, 10)
  // Durable as in production: the disk's sync is part of the figure.
  const postgres = await startPostgres({ settings: ['fsync = on', 'synchronous_commit = on'] })
  try {
    const url = postgres.createDatabase('bench')
    const { books, close } = await openBooks(readStorePlace(url, '.'))
    const accounts: { id: string; keyId: string }[] = []
    for (let i = 0; i < accountsCount; i++) {
      const { id } = await books.createAccount(`account ${i}`, 1_000_000_000_000_000n)
      accounts.push({ id, keyId: (await books.createKey(id)).id })
    }
    await close()
    const idleUs = await postgresUs(postgres.pids, seconds * 1_000)
    const children = Array.from({ length: replicas }, (_, number) =>
      fork(import.meta.filename, [], {
        env: {
          ...process.env,
          BENCH_REPLICA: JSON.stringify({ url, accounts, rate: rate / replicas, seconds, number } satisfies Steady),
        },
        serialization: 'advanced',
      }),
    )
    const answers = children.map(
      (child) => new Promise<Told>((resolve) => child.once('message', (told) => resolve(told as Told))),
    )
    await new Promise((resolve) => setTimeout(resolve, warmSeconds * 1_000))
    const busyUs = await postgresUs(postgres.pids, seconds * 1_000)
    const told = await Promise.all(answers)
    const tookMs = told.flatMap((one) => one.tookMs).sort((a, b) => a - b)
    const count = told.reduce((sum, one) => sum + one.count, 0)
    const perDebit = (us: number) => Math.round((us / count) * 10) / 10
    console.log(
      JSON.stringify({
        debits: count,
        perSecond: Math.round(count / seconds),
        p50Ms: at(tookMs, 50),
        p99Ms: at(tookMs, 99),
        mainUs: perDebit(told.reduce((sum, one) => sum + one.mainUs, 0)),
        allThreadsUs: perDebit(told.reduce((sum, one) => sum + one.allUs, 0)),
        postgresUs: perDebit(busyUs - idleUs),
      }),
    )
    await measureGateways(postgres.createDatabase('gateway'))
  } finally {
    postgres.remove()
  }
}

function at(sorted: readonly number[], percent: number): number {
  return Math.round((sorted[Math.floor((sorted.length * percent) / 100)] ?? 0) * 10) / 10
}

/**
 * Returns the CPU of all processes of PostgreSQL over a time, in µs. Sessions that end during this time do not count.
 */
async function postgresUs(pids: () => number[], ms: number): Promise<number> {
  const before = sumOf(pids())
  await new Promise((resolve) => setTimeout(resolve, ms))
  const after = sumOf(pids())
  return [...after].reduce((sum, [pid, us]) => sum + us - (before.get(pid) ?? 0), 0)
}

/** The CPU of each process in µs, as the scheduler counts it. */
function sumOf(pids: readonly number[]): Map<number, number> {
  return new Map(
    pids.flatMap((pid) => {
      try {
        return [[pid, Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')[0]) / 1_000] as const]
      } catch {
        return []
      }
    }),
  )
}

type Steady = {
  url: string
  accounts: readonly { id: string; keyId: string }[]
  rate: number
  seconds: number
  number: number
}

/** One replica: debits come at a fixed rate, even if earlier ones are not durable yet. */
async function postSteadily({ url, accounts, rate, seconds, number }: Steady): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'triwire-bench-'))
  const store = await openPostgresStore({
    url,
    shown: 'bench',
    introduction: { name: `bench-${number}`, version: '0', configDigest: 'bench', sealFingerprint: 'bench' },
    stateDir: join(folder, `replica-${number}`),
    settleDeadlineMs: 5_000,
    clockMs: () => performance.now(),
    onFatal(error: Error) {
      throw error
    },
    log: () => {},
  })
  const tookMs: number[] = []
  let count = 0
  await keepOn(warmSeconds * 1_000, () => post(false))
  const idleMain = await idle()
  const [main, all] = [process.threadCpuUsage(), process.cpuUsage()]
  await keepOn(seconds * 1_000, () => post(true))
  const [mainAfter, allAfter] = [process.threadCpuUsage(main), process.cpuUsage(all)]
  const mainUs = mainAfter.user + mainAfter.system - idleMain * seconds
  process.send?.({ tookMs, mainUs, allUs: allAfter.user + allAfter.system, count } satisfies Told)
  await store.close()
  rmSync(folder, { recursive: true, force: true })
  process.disconnect?.()

  /** The cost of the timing loop itself, in µs a second. */
  async function idle(): Promise<number> {
    const before = process.threadCpuUsage()
    await keepOn(1_000, () => {
      debitOf(accounts[count % accounts.length]!)
    })
    const { user, system } = process.threadCpuUsage(before)
    return user + system
  }

  function post(isCounted: boolean): void {
    const debit = debitOf(accounts[Math.floor(Math.random() * accounts.length)]!)
    const begun = performance.now()
    if (isCounted) count++
    void store.ledger.debit(debit).then(() => {
      if (isCounted) tookMs.push(performance.now() - begun)
    })
  }

  function keepOn(forMs: number, act: () => void): Promise<void> {
    return new Promise((resolve) => {
      const begun = performance.now()
      let next = begun
      const timer = setInterval(() => {
        const now = performance.now()
        for (; next <= now; next += (-Math.log(1 - Math.random()) * 1_000) / rate) act()
        if (now - begun < forMs) return
        clearInterval(timer)
        resolve()
      }, 1)
    })
  }
}

function debitOf({ id, keyId }: { id: string; keyId: string }) {
  return { ...billOf(keyId), accountId: id }
}

async function measureGateways(url: string): Promise<void> {
  const bench = await startBench({ database: url })
  try {
    const workload = workloads.find(({ name }) => name === '1 KB, chat, 32 conn.')!
    const tested = bench.servers.filter(({ name }) => name === 'gateway' || name === 'postgres')
    const connections = 32
    for (let round = 0; round < 4; round++) {
      for (const server of tested) {
        const requests = round === 0 ? 40_000 : 15_000
        const before = readCpu(server.pid)
        const { seconds } = await putLoad(bench.tools, {
          port: server.port,
          requests: requestsOf(workload, server),
          connections,
          count: requests,
          marks: marksOf(workload.answer, workload.wire),
        })
        const after = readCpu(server.pid)
        const perRequest = (from: number, to: number) => Math.round((to - from) / requests / 100) / 10
        console.log(
          JSON.stringify({
            round,
            store: server.name === 'gateway' ? 'sqlite' : 'postgres',
            allThreadsUs: perRequest(before.allNs, after.allNs),
            mainUs: perRequest(before.mainNs, after.mainNs),
            perSecond: Math.round(requests / seconds),
          }),
        )
      }
    }
  } finally {
    await bench.close()
  }
}

const role = process.env['BENCH_REPLICA']
if (role === undefined) await measure()
else await postSteadily(JSON.parse(role))

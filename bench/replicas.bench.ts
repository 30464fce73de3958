/*
 * Measures what PostgreSQL costs for each request of several small replicas: processes that only admit and post, each
 * at a fixed rate. Prints the CPU of PostgreSQL and its commits for each request, the CPU of a replica, and how long a
 * request waited for its admission and its debit. With --compare the replicas of another checkout or commit take turns
 * with ours on one server: only the ratio of one run counts. After each turn it compares the ledger with what the replicas
 * posted. `waitedUs` is the time for which PostgreSQL wanted a processor and got none: if it is longer than its
 * CPU, the machine had other work.
 */
import { fork } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ApiKey } from '../src/accounts/account.ts'
import { readStorePlace } from '../src/config/store-place.ts'
import { openBooks } from '../src/store/open-books.ts'
import type { openPostgresStore } from '../src/store/postgres/open.ts'
import { type Postgres, startPostgres } from '../test/support/postgres.ts'
import { billOf } from './bill.ts'
import { readOptions } from './options.ts'
import { checkOut } from './servers.ts'

const usage = `Usage: node bin/node.mjs bench/replicas.bench.ts [options]

  --replicas N    processes (default 4)
  --rate N        requests a second of each (default 300)
  --seconds N     of one turn (default 10)
  --rounds N      turns of each (default 3)
  --compare REF   another commit or checkout takes turns with this one`

const accountsCount = 400
const warmSeconds = 3

/** One replica of a turn. */
type Turn = {
  root: string
  url: string
  accounts: readonly { id: string; keyId: string }[]
  rate: number
  seconds: number
  name: string
}

/**
 * @property refused the database did not answer in time, as on a machine that is much too small
 * @property spooled debits that waited so long that they were written to the spool; some may reach the database later
 */
type Measured = Record<'admitMs' | 'postMs' | 'allMs', number[]> &
  Record<'cpuUs' | 'posted' | 'refused' | 'spooled', number>

async function measure(): Promise<void> {
  const text = { type: 'string' } as const
  const options = readOptions(usage, { replicas: text, rate: text, seconds: text, rounds: text, compare: text })
  const [replicas, rate, seconds, rounds] = [
    Number(options.replicas ?? 4),
    Number(options.rate ?? 300),
    Number(options.seconds ?? 10),
    Number(options.rounds ?? 3),
  ]
  const folder = mkdtempSync(join(tmpdir(), 'triwire-bench-'))
  const roots = [['here', join(import.meta.dirname, '..')]]
  if (options.compare !== undefined) roots.push(['before', checkOut(options.compare, folder)])
  // Durable as in production: the disk's sync is part of the figure.
  const postgres = await startPostgres({ settings: ['fsync = on', 'synchronous_commit = on'] })
  const figures = new Map<string, { postgresUs: number[]; p50Ms: number[] }>()
  try {
    const accounts = await createAccounts(postgres.createDatabase('bench'))
    for (let round = 0; round < rounds; round++) {
      for (const [name, root] of roots) {
        // Replicas of earlier turns would be among those that each admission looks at.
        const database = `turn_${round}_${name}`
        postgres.run(postgres.copying('bench', database))
        const url = postgres.url.replace(/postgres$/, database)
        const turn = { root: root!, url, accounts, rate, seconds }
        const { count, ...row } = await takeTurn(postgres, replicas, { ...turn, name: name! })
        const booked = postgres.run(`SELECT count(*) FROM triwire.entries WHERE kind = 'debit'`, database)
        if (Number(booked) < count || Number(booked) > count + row.spooled)
          throw new Error(`${count} debits were posted, and the ledger has ${booked}`)
        console.log(JSON.stringify({ round, name, ...row }))
        const kept = figures.get(name!) ?? { postgresUs: [], p50Ms: [] }
        figures.set(name!, kept)
        kept.postgresUs.push(row.postgresUs)
        kept.p50Ms.push(row.p50Ms)
      }
    }
    const medians = Array.from(figures, ([name, { postgresUs, p50Ms }]) => ({
      name,
      postgresUs: middle(postgresUs),
      p50Ms: middle(p50Ms),
    }))
    console.log(JSON.stringify({ medians }))
  } finally {
    postgres.remove()
    rmSync(folder, { recursive: true })
  }
}

async function createAccounts(url: string): Promise<{ id: string; keyId: string }[]> {
  const { books, close } = await openBooks(readStorePlace(url, '.'))
  const accounts: { id: string; keyId: string }[] = []
  for (let i = 0; i < accountsCount; i++) {
    const { id } = await books.createAccount(`account ${i}`, 1_000_000_000_000_000n)
    accounts.push({ id, keyId: (await books.createKey(id)).id })
  }
  await close()
  return accounts
}

async function takeTurn(postgres: Postgres, replicas: number, turn: Turn) {
  const children = Array.from({ length: replicas }, (_, number) => {
    const mine: Turn = { ...turn, name: `${turn.name}-${number}` }
    const env = { ...process.env, BENCH_REPLICA: JSON.stringify(mine) }
    return fork(import.meta.filename, [], { env, serialization: 'advanced' })
  })
  const messages = children.map((child) => {
    const [ready, done] = [Promise.withResolvers<void>(), Promise.withResolvers<Measured>()]
    child.on('message', (message) => (message === 'warm' ? ready.resolve() : done.resolve(message as Measured)))
    child.once('exit', () => done.reject(new Error('a replica ended')))
    return { ready: ready.promise, done: done.promise }
  })
  await Promise.all(messages.map(({ ready }) => ready))
  const ended = Promise.all(children.map((child) => new Promise((resolve) => child.once('exit', resolve))))
  for (const child of children) child.send('go')
  const database = new URL(turn.url).pathname.slice(1)
  const before = { ...readProcesses(postgres), commits: commitsOf(postgres, database) }
  const all = await Promise.all(messages.map(({ done }) => done))
  const after = { ...readProcesses(postgres), commits: commitsOf(postgres, database) }
  for (const child of children) child.send('end')
  await ended
  const count = all.reduce((sum, { posted }) => sum + posted, 0)
  const measured = all.reduce((sum, { allMs }) => sum + allMs.length, 0)
  const perRequest = (whole: number) => Math.round(whole / measured)
  const percentile = (pick: (one: Measured) => number[], percent: number) =>
    at(
      all.flatMap(pick).sort((a, b) => a - b),
      percent,
    )
  return {
    count,
    perSecond: Math.round(measured / turn.seconds),
    postgresUs: perRequest(between(before.cpuUs, after.cpuUs)),
    commits: Math.round(((after.commits - before.commits) * 100) / measured) / 100,
    refused: all.reduce((sum, { refused }) => sum + refused, 0),
    spooled: all.reduce((sum, { spooled }) => sum + spooled, 0),
    waitedUs: perRequest(between(before.waitedUs, after.waitedUs)),
    replicaUs: perRequest(all.reduce((sum, { cpuUs }) => sum + cpuUs, 0)),
    admitP50Ms: percentile(({ admitMs }) => admitMs, 50),
    postP50Ms: percentile(({ postMs }) => postMs, 50),
    p50Ms: percentile(({ allMs }) => allMs, 50),
    p99Ms: percentile(({ allMs }) => allMs, 99),
  }
}

function commitsOf(postgres: Postgres, database: string): number {
  return Number(postgres.run(`SELECT xact_commit FROM pg_stat_database WHERE datname = '${database}'`))
}

type ByProcess = ReadonlyMap<number, number>

/** The CPU of each process in µs, and the time for which it wanted a processor and got none, as the scheduler counts them. */
function readProcesses(postgres: Postgres): { cpuUs: ByProcess; waitedUs: ByProcess } {
  const [cpuUs, waitedUs] = [new Map<number, number>(), new Map<number, number>()]
  for (const pid of postgres.pids()) {
    try {
      const [cpuNs, waitedNs] = readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ').map(Number)
      cpuUs.set(pid, cpuNs! / 1_000)
      waitedUs.set(pid, waitedNs! / 1_000)
    } catch {
      // The process has ended.
    }
  }
  return { cpuUs, waitedUs }
}

function between(before: ByProcess, after: ByProcess): number {
  return Array.from(after, ([pid, us]) => us - (before.get(pid) ?? 0)).reduce((sum, us) => sum + us, 0)
}

function at(sorted: readonly number[], percent: number): number {
  return Math.round((sorted[Math.floor((sorted.length * percent) / 100)] ?? 0) * 10) / 10
}

function middle(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)]!
}

/** One replica: requests come at random moments at a fixed rate, even if earlier ones have not ended yet. */
async function serve({ root, url, accounts, rate, seconds, name }: Turn): Promise<void> {
  const module: { openPostgresStore: typeof openPostgresStore } = await import(join(root, 'src/store/postgres/open.ts'))
  const folder = mkdtempSync(join(tmpdir(), 'triwire-bench-'))
  const clockMs = () => performance.now()
  const fail = (error: Error) => {
    throw error
  }
  const store = await module.openPostgresStore({
    ...{ url, shown: 'bench', stateDir: folder, settleDeadlineMs: 5_000, clockMs, onFatal: fail, log: () => {} },
    introduction: { name, version: '0', configDigest: 'bench', sealFingerprint: 'bench' },
  })
  const admission = store.openAdmission({
    ...{ requestsPerMinute: () => 1_000_000, isShedding: () => false, clockMs, nowMs: Date.now },
  })
  const keys = accounts.map(
    ({ id, keyId }): ApiKey => ({
      ...{ id: keyId, prefix: 'bench', expiresMs: undefined, account: { id, name: id, state: 'active' } },
    }),
  )
  const measured: Measured = { admitMs: [], postMs: [], allMs: [], cpuUs: 0, posted: 0, refused: 0, spooled: 0 }
  const open = new Set<Promise<void>>()
  await keepOn(warmSeconds * 1_000, false)
  process.send?.('warm')
  await new Promise((resolve) => process.once('message', resolve))
  const cpu = process.cpuUsage()
  await keepOn(seconds * 1_000, true)
  await Promise.all(open)
  const { user, system } = process.cpuUsage(cpu)
  process.send?.({ ...measured, cpuUs: user + system } satisfies Measured)
  await new Promise((resolve) => process.once('message', resolve))
  await store.close()
  rmSync(folder, { recursive: true })
  process.disconnect!()

  async function request(isCounted: boolean): Promise<void> {
    const key = keys[Math.floor(Math.random() * keys.length)]!
    const beganMs = performance.now()
    const admitted = await admit(key).catch(() => undefined)
    if (!admitted?.ok) {
      measured.refused++
      return
    }
    const admittedMs = performance.now()
    // `account` is for --compare: debits of older commits have it instead of `accountId`.
    const debit = { ...billOf(key.id), accountId: key.account.id, account: key.account }
    const posting = await store.ledger.debit(debit)
    admitted.release()
    const postedMs = performance.now()
    if (posting === 'spooled') measured.spooled++
    else measured.posted++
    if (!isCounted) return
    measured.admitMs.push(admittedMs - beganMs)
    measured.postMs.push(postedMs - admittedMs)
    measured.allMs.push(postedMs - beganMs)
  }

  async function admit(key: ApiKey) {
    const entered = await admission.enter(key)
    return entered.ok ? entered.admit(50_000_000n) : entered
  }

  function keepOn(forMs: number, isCounted: boolean): Promise<void> {
    return new Promise((resolve) => {
      const begunMs = performance.now()
      let nextMs = begunMs
      const timer = setInterval(() => {
        const nowMs = performance.now()
        for (; nextMs <= nowMs; nextMs += (-Math.log(1 - Math.random()) * 1_000) / rate) {
          const one = request(isCounted).finally(() => open.delete(one))
          open.add(one)
        }
        if (nowMs - begunMs < forMs) return
        clearInterval(timer)
        resolve()
      }, 1)
    })
  }
}

const role = process.env['BENCH_REPLICA']
if (role === undefined) await measure()
else await serve(JSON.parse(role))

import { before } from 'node:test'
import type { DeskAnswer } from '../../src/accounts/desk.ts'
import { AdmissionDesk } from '../../src/store/postgres/admission-desk.ts'
import { admit, tell } from '../../src/store/postgres/admit.ts'
import { type Database, openDatabase, type Transaction } from '../../src/store/postgres/database.ts'
import type { SqlFunction } from '../../src/store/postgres/functions.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { Presence } from '../../src/store/postgres/presence.ts'
import { sharingFunctions } from '../../src/store/postgres/sharing.ts'
import { atEnd } from '../support/at-end.ts'
import { type Postgres, startPostgres, withoutPostgres } from '../support/postgres.ts'
import { turn } from '../support/waiting.ts'

/*
 * Several replicas on one real PostgreSQL, in one process: each has a desk, a presence and connections of its own. What a
 * request costs is booked by the plainest of ledgers, a line of `balances`: what the ledger itself does is its own tests'.
 */

/** One cluster for a file. */
export function clusterOfFile(): () => Postgres {
  let cluster: Postgres | undefined
  before(async () => {
    if (withoutPostgres()) return
    cluster = await startPostgres()
    atEnd(() => cluster!.remove())
  })
  return () => cluster!
}

export type Verdicts = Record<string, number>

/** A text replaced in a function of ours, in a copy with a name of its own. */
export type Edit = readonly [from: string | RegExp, to: string]

export type StoreOptions = { edits?: readonly Edit[]; settings?: Record<string, string>; leaseMs?: number }

/** A database with the schema of ours, and as many replicas on it as a test wants. */
export async function openShared(cluster: Postgres, name: string, options: StoreOptions = {}) {
  const url = cluster.createDatabase(name)
  const functions = { admit: edit(admit, options.edits ?? []), tell: edit(tell, options.edits ?? []) }
  const operator = openDatabase({ url, max: 2, patienceMs: 20_000, purpose: 'test' })
  operator.query('SELECT 1').catch(() => {})
  atEnd(() => operator.close())
  await migrate(operator, name, [...sharingFunctions, ...Object.values(functions)].filter(isFirst))
  return {
    url,
    operator,
    functions,
    leaseMs: options.leaseMs ?? 10_000,
    settings: options.settings ?? {},
    async createAccount(id: string, balance: bigint): Promise<string> {
      await operator.query(
        `INSERT INTO triwire.accounts (id, name, state, revision, created_ms) VALUES ($1, $1, 'active', 1, 1)`,
        [id],
      )
      await operator.query('INSERT INTO triwire.balances (account_id, balance) VALUES ($1, $2)', [id, balance])
      return id
    },
    async balance(id: string): Promise<bigint> {
      const [row] = await operator.query('SELECT balance FROM triwire.balances WHERE account_id = $1', [id])
      return (row as { balance: bigint }).balance
    },
    /** As a crash of the database leaves them. */
    emptyUnlogged: () => operator.query('TRUNCATE triwire.shares, triwire.present, triwire.epoch, triwire.failures'),
  }
}

export type Shared = Awaited<ReturnType<typeof openShared>>

/** @param wrap what stands between a replica and its connections. */
export async function startReplica(shared: Shared, name: string, wrap = (database: Transaction) => database) {
  const open = (max: number, purpose: string) => {
    const settings = { synchronous_commit: 'off', ...shared.settings }
    const database = openDatabase({ url: shared.url, max, patienceMs: 2_000, purpose, settings })
    atEnd(() => database.close())
    return database
  }
  const [lanes, control, ledger] = [open(2, 'admission'), open(1, 'control'), open(2, 'ledger')]
  const waiting = new Map<number, (answer: DeskAnswer) => void>()
  let lastId = 0
  const desk = new AdmissionDesk({
    database: wrap(lanes),
    clockMs: () => performance.now(),
    leaseMs: shared.leaseMs,
    functions: shared.functions,
    answer(answers) {
      for (const answer of answers) {
        waiting.get(answer.id)!(answer)
        waiting.delete(answer.id)
      }
    },
  })
  const differing: (readonly string[])[] = []
  const presence = new Presence({
    database: wrap(control),
    introduction: { name, version: '0.2.0', configDigest: 'c', sealFingerprint: 's' },
    tell: (identity) => desk.tell(identity),
    forgetIdle: () => desk.forgetIdle(),
    onConfigDiffers: (others) => differing.push(others),
    onReach: () => {},
    beatMs: Math.min(1_000, shared.leaseMs / 4),
  })
  const identity = await presence.start()
  const replica = { name, identity, desk, presence, differing, ask, take, spend, release, stop, databases: { lanes, control, ledger } }
  atEnd(stop)
  return replica

  function ask(accountId: string, holdNanos: bigint, more: { limit?: number; places?: boolean } = {}): Promise<DeskAnswer> {
    const id = ++lastId
    const place = more.places === false ? { accountMs: 0, keyMs: undefined } : ('take' as const)
    return new Promise((resolve) => {
      waiting.set(id, resolve)
      desk.take([{ say: 'ask', ask: { id, accountId, requestsPerMinute: more.limit ?? 300, holdNanos, place } }])
    })
  }

  /** So many at once. */
  async function take(accountId: string, count: number, holdNanos = 1n, limit = 300): Promise<Verdicts> {
    return countOf(await Promise.all(Array.from({ length: count }, () => ask(accountId, holdNanos, { limit }))))
  }

  /** So many at once, each of which costs something, is debited, and lets go. */
  async function spend(
    accountId: string,
    count: number,
    holdNanos: bigint,
    costNanos: bigint,
    { releasesFirst = false } = {},
  ): Promise<Verdicts> {
    const one = async () => {
      const answer = await ask(accountId, holdNanos, { limit: 1_000_000 })
      if (answer.verdict !== 'admitted') return answer
      await turn()
      if (releasesFirst) release(accountId, holdNanos)
      await debit(ledger, accountId, costNanos, releasesFirst)
      if (!releasesFirst) release(accountId, holdNanos)
      return answer
    }
    return countOf(await Promise.all(Array.from({ length: count }, one)))
  }

  function release(accountId: string, holdNanos: bigint): void {
    desk.take([{ say: 'release', accountId, keyId: undefined, holdNanos }])
  }

  /** It vanishes from the sight of the others, as one that is killed: nothing is told. */
  function stop(): void {
    desk.close()
    const gone = presence as unknown as { close(): Promise<void> }
    void gone
  }
}

export type Replica = Awaited<ReturnType<typeof startReplica>>

/** @param isLate forces what a release before the debit must not be seen by. */
async function debit(ledger: Database, accountId: string, nanos: bigint, isLate: boolean): Promise<void> {
  if (isLate) await ledger.query('SELECT pg_sleep(0.02)')
  await ledger.query('UPDATE triwire.balances SET balance = balance - $2, seq = seq + 1 WHERE account_id = $1', [
    accountId,
    nanos,
  ])
}

export function startReplicas(shared: Shared, count = 3): Promise<Replica[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => startReplica(shared, `replica-${index}`)))
}

export function countOf(answers: readonly { verdict: string }[]): Verdicts {
  const counts: Verdicts = {}
  for (const { verdict } of answers) counts[verdict] = (counts[verdict] ?? 0) + 1
  return counts
}

export function sumOf(all: readonly Verdicts[]): Verdicts {
  const sum: Verdicts = {}
  for (const counts of all)
    for (const [verdict, count] of Object.entries(counts)) sum[verdict] = (sum[verdict] ?? 0) + count
  return sum
}

/** A copy of a function with pieces of its text replaced. @throws where a piece is not in any of them. */
function edit({ name, create }: SqlFunction, edits: readonly Edit[]): SqlFunction {
  const text = edits.reduce((text, [from, to]) => text.replace(from, to), create)
  if (text === create) return { name, create }
  return { name: `${name}_edited`, create: text.replace(name, `${name}_edited`) }
}

function isFirst({ name }: SqlFunction, index: number, all: readonly SqlFunction[]): boolean {
  return all.findIndex((other) => other.name === name) === index
}

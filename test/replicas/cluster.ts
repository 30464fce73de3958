import { before } from 'node:test'
import type { DeskAnswer } from '../../src/accounts/desk.ts'
import { AdmissionDesk } from '../../src/store/postgres/admission-desk.ts'
import { admit, tell } from '../../src/store/postgres/admit.ts'
import { type Database, openDatabase, type Transaction } from '../../src/store/postgres/database.ts'
import { migrate, type SqlFunction } from '../../src/store/postgres/migrate.ts'
import { Presence } from '../../src/store/postgres/presence.ts'
import { sharingFunctions } from '../../src/store/postgres/sharing-desk.ts'
import { atEnd } from '../support/at-end.ts'
import { type Postgres, startPostgres, withoutPostgres } from '../support/postgres.ts'

/*
 * Several replicas on one real PostgreSQL: each has a desk, a presence and connections of its own. What a request costs is
 * booked by the plainest of ledgers, a line of `balances`: what the ledger itself does is its own tests'.
 */

/** How long connections wait: longer than a gateway's, so that a busy machine fails no statement. */
const statementMs = 20_000

/** One cluster for a file. */
export function clusterOfFile(): () => Postgres {
  let cluster: Postgres | undefined
  before(async () => {
    if (withoutPostgres()) return
    cluster = await startPostgres()
  })
  return () => cluster!
}

/** What a store is like that several replicas share; how it is reached by any process. */
export type Shared = {
  url: string
  leaseMs: number
  /** How long a replica's desk waits: longer than a gateway's, so that a busy machine changes no verdict. */
  patienceMs: number
  functions: { admit: SqlFunction; tell: SqlFunction }
  /** Of the sessions that ask for admission. */
  settings: Record<string, string>
}

/** A piece of a function's text, replaced in a copy of a name of its own. */
export type Edit = readonly [from: string, to: string]

export type SharedOptions = {
  edits?: readonly Edit[]
  settings?: Record<string, string>
  leaseMs?: number
  patienceMs?: number
  /** What the database says of all its sessions that say nothing else. */
  defaults?: Record<string, string>
}

/** A database with our schema, and what an operator does in it. */
export async function openShared(cluster: Postgres, name: string, options: SharedOptions = {}) {
  const { edits = [], settings = {}, leaseMs = 10_000, patienceMs = 20_000 } = options
  const url = cluster.createDatabase(name)
  for (const [setting, value] of Object.entries(options.defaults ?? {}))
    cluster.run(`ALTER DATABASE "${name}" SET ${setting} = '${value}'`)
  const functions = { admit: edit(admit, edits), tell: edit(tell, edits) }
  const operator = openDatabase({ url, max: 2, patienceMs: statementMs, purpose: 'test', onLost: () => {} })
  atEnd(() => operator.close())
  await migrate(operator, name, [...new Set([...sharingFunctions, functions.admit, functions.tell])])
  const shared: Shared = { url, leaseMs, patienceMs, functions, settings }
  let accounts = 0
  return {
    ...shared,
    shared,
    operator,
    async createAccount(balance: bigint, id = `acct_${String(++accounts).padStart(16, '0')}`): Promise<string> {
      await operator.query(
        `INSERT INTO triwire.accounts (id, name, state, revision, created_ms) VALUES ($1, $1, 'active', 1, 1)`,
        [id],
      )
      await operator.query('INSERT INTO triwire.balances (account_id, balance) VALUES ($1, $2)', [id, balance])
      return id
    },
    async balanceOf(id: string): Promise<bigint> {
      const [row] = await operator.query('SELECT balance FROM triwire.balances WHERE account_id = $1', [id])
      return (row as { balance: bigint }).balance
    },
    /** As a crash of the database leaves them. */
    emptyUnlogged: () => operator.query('TRUNCATE triwire.shares, triwire.present, triwire.epoch, triwire.failures'),
  }
}

/** How often each verdict was given. */
export type Verdicts = Record<string, number>

export type ReplicaOptions = {
  name?: string
  sealFingerprint?: string
  configDigest?: string
  /** What stands between a desk and its connections. */
  wrap?: (database: Transaction) => Transaction
  clockMs?: () => number
}

/** A sweep at some moment of its own would be in the way of a test's: of two at once one does nothing. */
const neverMs = 2 ** 31 - 1

export async function startReplica(shared: Shared, options: ReplicaOptions = {}) {
  const { name = 'replica', wrap = (database) => database, clockMs = () => performance.now() } = options
  const lanes = open(2, 'admission', { synchronous_commit: 'off', ...shared.settings })
  const [control, ledger] = [open(1, 'control'), open(2, 'ledger')]
  const waiting = new Map<number, (answer: DeskAnswer) => void>()
  const differing: (readonly string[])[] = []
  const troubles: string[] = []
  let lastId = 0
  const desk = new AdmissionDesk({
    database: wrap(lanes),
    clockMs,
    leaseMs: shared.leaseMs,
    patienceMs: shared.patienceMs,
    functions: shared.functions,
    onTrouble: (_error, code) => troubles.push(code),
    answer(answers) {
      for (const answer of answers) {
        waiting.get(answer.id)?.(answer)
        waiting.delete(answer.id)
      }
    },
  })
  const presence = new Presence({
    database: control,
    introduction: {
      name,
      version: '0.2.0',
      configDigest: options.configDigest ?? 'one',
      sealFingerprint: options.sealFingerprint ?? 'one',
    },
    tell: (identity) => desk.tell(identity),
    forgetIdle: () => desk.forgetIdle(),
    onConfigDiffers: (others) => differing.push(others),
    beatMs: Math.min(1_000, shared.leaseMs / 4),
    sweepMs: neverMs,
  })
  let stopping: Promise<void> | undefined
  atEnd(stop)
  const identity = await presence.start()
  // Behind the one of its start.
  await presence.sweep()
  return { identity, desk, presence, differing, troubles, ask, take, spend, release, stop }

  function open(max: number, purpose: string, settings: Record<string, string> = {}): Database {
    return openDatabase({ url: shared.url, max, patienceMs: statementMs, purpose, settings, onLost: () => {} })
  }

  function ask(accountId: string, holdNanos: bigint, more: Partial<Asked> = {}): Promise<DeskAnswer> {
    const id = ++lastId
    const answered = new Promise<DeskAnswer>((resolve) => void waiting.set(id, resolve))
    const asked: Asked = { requestsPerMinute: 300, place: 'take', ...more }
    desk.take([{ say: 'ask', ask: { id, accountId, holdNanos, ...asked } }])
    return answered
  }

  /** So many at once. */
  async function take(accountId: string, count: number, holdNanos = 1n): Promise<Verdicts> {
    return countOf(await Promise.all(Array.from({ length: count }, () => ask(accountId, holdNanos))))
  }

  /**
   * So many, thirty at once, each of which is debited when it has run, and lets go of its hold then. The next thirty ask
   * while the debits of those before are under way.
   */
  async function spend(accountId: string, count: number, costs: Costs): Promise<Verdicts> {
    const verdicts: Verdicts[] = []
    const debits: Promise<void>[] = []
    for (let left = count; left > 0; left -= 30) {
      const asked = Array.from({ length: Math.min(30, left) }, () => ask(accountId, costs.holdNanos, unlimited))
      const answers = await Promise.all(asked)
      verdicts.push(countOf(answers))
      for (const { verdict } of answers) if (verdict === 'admitted') debits.push(settle(accountId, costs))
    }
    await Promise.all(debits)
    return sumOf(verdicts)
  }

  async function settle(accountId: string, { holdNanos, costNanos, releasesFirst }: Costs): Promise<void> {
    if (releasesFirst) release(accountId, holdNanos)
    await ledger.query(
      `UPDATE triwire.balances SET balance = balance - $2, seq = seq + 1
       WHERE account_id = $1 AND pg_sleep(0.002) IS NOT NULL`,
      [accountId, costNanos],
    )
    if (!releasesFirst) release(accountId, holdNanos)
  }

  function release(accountId: string, holdNanos: bigint): void {
    desk.take([{ say: 'release', accountId, keyId: undefined, holdNanos }])
  }

  function stop(): Promise<void> {
    stopping ??= (async () => {
      await presence.close()
      desk.close()
      await Promise.all([lanes.close(), control.close(), ledger.close()])
    })()
    return stopping
  }
}

type Asked = Pick<
  Extract<Parameters<AdmissionDesk['take']>[0][number], { say: 'ask' }>['ask'],
  'requestsPerMinute' | 'place' | 'budgetNanos' | 'key' | 'person'
>

const unlimited = { requestsPerMinute: 1_000_000 }

/** @property releasesFirst a fault: the hold goes before the debit is in the ledger. */
export type Costs = { holdNanos: bigint; costNanos: bigint; releasesFirst?: boolean }

export type Replica = Awaited<ReturnType<typeof startReplica>>

/** Three, one after the other. */
export async function startReplicas(shared: Shared, options: ReplicaOptions = {}): Promise<Replica[]> {
  const replicas: Replica[] = []
  for (const number of [1, 2, 3]) replicas.push(await startReplica(shared, { name: `replica-${number}`, ...options }))
  return replicas
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

/** @returns the function itself where none of the pieces is in it. */
function edit(original: SqlFunction, edits: readonly Edit[]): SqlFunction {
  const { name, create } = original
  const text = edits.reduce((text, [from, to]) => text.replaceAll(from, to), create)
  return text === create ? original : { name: `${name}_edited`, create: text.replace(name, `${name}_edited`) }
}

import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { percentile } from '../attack/report.ts'
import { get, keepAsking, type Seen, tally } from './clients.ts'
import { judgeBooks } from './deaths.ts'
import { type Finding, finding, formatCounts, type Trial } from './report.ts'
import type { Payer, Replica, Setting } from './setting.ts'

/** How long a foreign transaction locks the rows, and the undisturbed time before and after it, in ms. */
const [lockedMs, quietMs] = [15_000, 2_000]

/** The rate of requests of each account. */
const perSecond = 10

/** A foreign transaction locks the rows of some accounts. This must not affect any other account (ruling Y16). */
export const lockedRows: readonly Trial[] = [
  {
    name: 'one locked row',
    demand:
      'somebody holds the balance row of one of six accounts for 15 s: no other account is refused or spooled, /readyz stays 200; the debits of that account come later, each once',
    run: (setting) => lockRows(setting, { accounts: 6, locked: 1 }),
  },
  {
    name: 'five locked rows and a start',
    demand: 'the same with five of twelve, and with a replica that is killed and started while they are locked',
    run: (setting) => lockRows(setting, { accounts: 12, locked: 5, restarts: true }),
  },
]

type Locking = { accounts: number; locked: number; restarts?: boolean }

async function lockRows(setting: Setting, { accounts, locked, restarts = false }: Locking): Promise<Finding[]> {
  const replicas = await Promise.all([1, 2].map(() => setting.startReplica()))
  const payers: Payer[] = []
  for (let i = 0; i < accounts; i++) payers.push(await setting.makePayer())
  const alive = [...replicas]
  const stops = payers.map(({ key }) =>
    keepAsking(
      () => alive,
      () => ({ key }),
      perSecond,
    ),
  )
  await pause(quietMs)
  const unlock = await lock(setting.url, payers.slice(0, locked))
  const watched = watchReadiness(alive)
  let spooledBefore: string[] = []
  if (restarts) {
    // After this time, the spool of the replica that is killed has debits of the locked accounts.
    await pause(lockedMs / 2)
    const [victim] = alive.splice(1, 1)
    spooledBefore = unsettledAccounts(victim!)
    await victim!.kill()
    alive.push(await setting.startReplica({ name: victim!.name }))
    await pause(lockedMs / 2)
  } else await pause(lockedMs)
  const readiness = await watched()
  await unlock()
  await pause(quietMs)
  const seen = await Promise.all(stops.map((stop) => stop()))
  const [theirs, others] = [seen.slice(0, locked).flat(), seen.slice(locked).flat()]
  const unsettled = new Set([...alive.flatMap(unsettledAccounts), ...spooledBefore])
  const besides = payers.slice(locked).filter(({ accountId }) => unsettled.has(accountId))
  // A connection that broke because its replica was killed does not count as a refusal.
  const refused = others.filter(({ status }) => status !== 200 && !(restarts && status === 0))
  return [
    finding(refused.length === 0, `the others: ${tell(others)}`),
    finding(besides.length === 0, `others with overdue debits: ${besides.length}`),
    finding(
      (tally(theirs)[500] ?? 0) > 0 &&
        Object.keys(tally(theirs)).every((status) => ['0', '200', '500'].includes(status)),
      `the locked: ${tell(theirs)}`,
    ),
    finding(
      Object.keys(readiness).every((status) => status === '200'),
      `/readyz: ${formatCounts(readiness)}`,
    ),
    finding((await Promise.all(alive.map(untilSettled))).every(Boolean), 'all is settled afterwards'),
    ...(await judgeBooks(setting, [...theirs, ...others])),
  ]
}

/** Locks rows, as an administrator's forgotten transaction does. @returns a function that unlocks them */
async function lock(url: string, payers: readonly Payer[]): Promise<() => Promise<void>> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query('BEGIN')
  const { rowCount } = await client.query('SELECT FROM triwire.balances WHERE account_id = ANY ($1) FOR UPDATE', [
    payers.map(({ accountId }) => accountId),
  ])
  if (rowCount !== payers.length) throw new Error(`${rowCount} rows are locked`)
  return async () => {
    await client.query('ROLLBACK')
    await client.end()
  }
}

/** Polls `/readyz` of living replicas. @returns a function that stops this, and returns how often each status came */
export function watchReadiness(alive: readonly Replica[]): () => Promise<Record<number, number>> {
  const probes: Promise<{ status: number }>[] = []
  const timer = setInterval(() => {
    for (const { adminUrl } of alive) probes.push(get(`${adminUrl}/readyz`))
  }, 250)
  return async () => {
    clearInterval(timer)
    const counts: Record<number, number> = {}
    for (const { status } of await Promise.all(probes)) counts[status] = (counts[status] ?? 0) + 1
    return counts
  }
}

/** Returns the accounts whose debits are overdue according to a replica's log. */
function unsettledAccounts(replica: Replica): string[] {
  return replica.readEvents('ledger_unsettled').flatMap(({ accounts }) => (accounts ?? ['*']) as string[])
}

/** @returns whether within ten seconds no debit of a replica waits for the ledger any more */
export async function untilSettled({ adminUrl }: Replica): Promise<boolean> {
  for (let tries = 0; tries < 100; tries++) {
    const text = await (await fetch(`${adminUrl}/metrics`)).text()
    const isZero = (name: string) =>
      new RegExp(`^triwire_ledger_${name}_debits(?:\\{replica="[^"]*"\\})? 0$`, 'm').test(text)
    if (isZero('spooled') && isZero('waiting')) return true
    await pause(100)
  }
  return false
}

function tell(seen: readonly Seen[]): string {
  const answered = seen.filter(({ status }) => status === 200).map(({ ms }) => ms)
  const [p50, p99, max] = [50, 99, 100].map((part) => Math.round(percentile(answered, part)))
  return `${formatCounts(tally(seen))}; answered within ${p50}, ${p99}, ${max} ms (p50, p99, all)`
}

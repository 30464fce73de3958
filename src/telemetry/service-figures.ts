import type { Gateway } from '../gateway/gateway.ts'
import { resultOf } from './attempt-results.ts'
import { type FamilyFacts, families } from './families.ts'
import { type Family, Histogram, Reading } from './instruments.ts'

/** The most series for accounts and for keys. Monitoring systems accept no more from one process. */
const [accountsMax, keysMax] = [10_000, 10_000]

/** Makes the metrics of the service's present state and of the ledger's commits. */
export function serviceFigures(gateway: Gateway): Family[] {
  const { deliveries, ledger, snapshots, directory, admission, lastAnswers } = gateway
  const commit = new Histogram(families.commit)
  ledger.onDurable((tookMs) => commit.observe(tookMs / 1_000))
  return [
    new Reading(families.requestsActive, (set) => set(deliveries.size)),
    new Reading(families.streamsActive, (set) => {
      let streams = 0
      for (const { record } of deliveries) if (record.stream) streams++
      set(streams)
    }),
    new Reading(families.held, (set) => {
      let nanos = 0n
      for (const { record } of deliveries) nanos += record.holdNanos ?? 0n
      set(Number(nanos) / 1e9)
    }),
    byResult(families.cooling, () => readInState(gateway, 'cooling')),
    byResult(families.onTrial, () => readInState(gateway, 'trial')),
    byResult(families.cooldowns, () => readCooldowns(gateway)),
    new Reading(families.credential, (set) => {
      const { config, keyOf } = snapshots.current
      for (const { name, accounts } of config.upstreams.values())
        for (const account of accounts) {
          const leftMs = keyOf(account).credential?.state.leftMs
          if (leftMs !== undefined) set(leftMs / 1_000, name, account.name)
        }
    }),
    new Reading(families.available, (set) => {
      for (const [model, count] of countAvailable(gateway)) set(count, model)
    }),
    new Reading(families.failing, (set) => {
      for (const { id } of snapshots.current.config.catalog.entries) set(lastAnswers.isFailing(id) ? 1 : 0, id)
    }),
    commit,
    new Reading(families.writable, (set) => set(ledger.whyBlocked() === undefined ? 1 : 0)),
    new Reading(families.blocked, (set) => set(ledger.backlog().blockedAccounts)),
    new Reading(families.waiting, (set) => set(ledger.backlog().waiting)),
    new Reading(families.oldest, (set) => set(ledger.backlog().oldestMs / 1_000)),
    new Reading(families.spooled, (set) => set(ledger.backlog().spooled)),
    new Reading(families.accountBalance, (set) => {
      if (!snapshots.current.config.metrics.accounts) return
      let left = accountsMax
      for (const { id, name } of directory.listKnown()) {
        if (left-- === 0) return
        const standing = admission.look(id)
        if (standing) set(Number(standing.balanceNanos) / 1e9, name)
      }
    }),
    new Reading(families.keyBudget, (set) => {
      if (!snapshots.current.config.metrics.keys) return
      for (const { account, name, ratio } of readBudgets(gateway)) set(ratio, account, name)
    }),
  ]
}

type UsedBudget = { account: string; name: string; ratio: number }

/**
 * Lists the used share of each budget. A rotated key and its successors share one budget, which has the name of the key
 * listed last.
 */
function readBudgets({ directory, admission }: Gateway): Iterable<UsedBudget> {
  const used = new Map<string, UsedBudget>()
  for (const { bounds, label, prefix, account } of directory.listKnownKeys()) {
    const { budget } = bounds ?? {}
    if (bounds === undefined || budget === undefined || (used.size >= keysMax && !used.has(bounds.scope))) continue
    const spent = budget.nanos - admission.lookBudget({ ...bounds, budget })
    const name = label === undefined ? prefix : `${label} (${prefix})`
    used.set(bounds.scope, { account: account.name, name, ratio: Number(spent) / Number(budget.nanos) })
  }
  return used.values()
}

type CauseCount = readonly [upstream: string, cause: string, count: number]

/** Makes a metric family that counts causes, with one series for each upstream and result. */
function byResult(facts: FamilyFacts, read: () => CauseCount[]): Family {
  return new Reading(facts, (set) => {
    const sums = new Map<string, Map<string, number>>()
    for (const [upstream, cause, count] of read()) {
      const results = sums.get(upstream) ?? new Map<string, number>()
      const result = resultOf(cause)
      sums.set(upstream, results.set(result, (results.get(result) ?? 0) + count))
    }
    for (const [upstream, results] of sums) for (const [result, count] of results) set(count, upstream, result)
  })
}

/** Counts how often this process put an upstream account into cooldown. */
function readCooldowns({ snapshots }: Gateway): CauseCount[] {
  const { cooldowns } = snapshots.current.pool
  return [...cooldowns].flatMap(([upstream, causes]) =>
    Array.from(causes, ([cause, count]): CauseCount => [upstream, cause, count]),
  )
}

/** Counts the upstream accounts that are cooling down, or on trial. */
function readInState({ snapshots }: Gateway, wanted: 'cooling' | 'trial'): CauseCount[] {
  const { pool, config } = snapshots.current
  const rows = pool.list(config.catalog.entries).filter(({ state }) => state === wanted)
  return rows.map(({ upstream, cause = '' }) => [upstream, cause, 1])
}

/** Counts usable upstream accounts for every model of the catalog. Models without any count 0. */
function countAvailable({ snapshots }: Gateway): Map<string, number> {
  const { pool, config } = snapshots.current
  const counts = new Map(config.catalog.entries.map(({ id }) => [id, 0]))
  for (const { model, state } of pool.list(config.catalog.entries)) {
    // After its cooldown an account is on trial: the next request tries it. So it counts as usable.
    if (state === 'ready' || state === 'trial') counts.set(model, counts.get(model)! + 1)
  }
  return counts
}

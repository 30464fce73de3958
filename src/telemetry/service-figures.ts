import type { Gateway } from '../gateway/gateway.ts'
import { resultOf } from './attempt-results.ts'
import { families } from './families.ts'
import { type Family, Histogram, Reading } from './instruments.ts'

/** The most series for accounts and for keys. No monitoring takes more from one process. */
const [accountsMax, keysMax] = [10_000, 10_000]

/** Metrics of the present state of the service, and of the ledger's commits. */
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
    ...(
      [
        ['cooling', 'cooling'],
        ['onTrial', 'trial'],
      ] as const
    ).map(
      ([family, state]) =>
        new Reading(families[family], (set) => {
          for (const [upstream, causes] of countInState(gateway, state))
            for (const [cause, count] of causes) set(count, upstream, cause)
        }),
    ),
    new Reading(families.cooldowns, (set) => {
      for (const [upstream, causes] of countCooldowns(gateway))
        for (const [cause, count] of causes) set(count, upstream, cause)
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

/** Lists the used share of budgets, one for each line of rotated keys, with the name of the key listed last. */
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

/** Counts cooldowns by upstream and then by result. */
function countCooldowns({ snapshots }: Gateway): Map<string, Map<string, number>> {
  const counts = new Map<string, Map<string, number>>()
  for (const [upstream, causes] of snapshots.current.pool.cooldowns)
    for (const [cause, count] of causes) add(counts, upstream, cause, count)
  return counts
}

function add(counts: Map<string, Map<string, number>>, upstream: string, cause: string, count: number): void {
  const causes = counts.get(upstream) ?? new Map<string, number>()
  const word = resultOf(cause)
  counts.set(upstream, causes.set(word, (causes.get(word) ?? 0) + count))
}

/** Counts accounts that are cooling or on trial by upstream and then by result. */
function countInState({ snapshots }: Gateway, wanted: 'cooling' | 'trial'): Map<string, Map<string, number>> {
  const { pool, config } = snapshots.current
  const counts = new Map<string, Map<string, number>>()
  for (const { upstream, state, cause = '' } of pool.list(config.catalog.entries)) {
    if (state === wanted) add(counts, upstream, cause, 1)
  }
  return counts
}

/** Counts usable accounts for every model of the catalog, also if there are none. */
function countAvailable({ snapshots }: Gateway): Map<string, number> {
  const { pool, config } = snapshots.current
  const counts = new Map(config.catalog.entries.map(({ id }) => [id, 0]))
  for (const { model, state } of pool.list(config.catalog.entries)) {
    // After its cooldown, an account is tried by the next request.
    if (state === 'ready' || state === 'trial') counts.set(model, counts.get(model)! + 1)
  }
  return counts
}

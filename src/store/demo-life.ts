import { createBooks } from '../accounts/books.ts'
import { createCalendar } from '../accounts/calendar.ts'
import { nanosPerCredit } from '../accounts/credit.ts'
import type { Debit } from '../accounts/ledger.ts'
import type { Reporting } from '../accounts/usage/reporting.ts'
import { createTraffic, type TrafficRecord } from '../accounts/usage/traffic.ts'
import { createRandom } from './seeded-random.ts'
import { beginsWith } from './sqlite/look-at.ts'
import { openStore } from './sqlite/store.ts'

/*
 * Thirty days of generated activity, for the demo of the console. The same end time always gives the same activity,
 * except for the ids of accounts and keys.
 */

/** The actor of the demo's audit records. A file with such records is known to be a demo. */
const demoActor = 'demo'

const days = 30
const [hourMs, dayMs, weekMs] = [3_600_000, 86_400_000, 7 * 86_400_000]

/** Each account, with the credits of its first invoice and of each weekly invoice after it. */
const accounts = [
  ...([
    ['acme', 60, 40],
    ['globex', 60, 30],
    ['initech', 50, 25],
    ['umbrella', 50, 20],
  ] as const),
  ...([
    ['hooli', 40, 20],
    ['stark', 40, 15],
    ['wayne', 30, 15],
    ['tyrell', 20, 0],
  ] as const),
] as const
/** This account soon runs out of credit. Four days before the end of the demo's data, it gets credit for five days. */
const dry = { account: 'tyrell', credits: 20, hour: (days - 4) * 24, lastsDays: 5 }
const labels = ['ci', 'laptop', 'nightly'] as const

/** Each model with its wire and its share of the requests. */
const models = [
  ...([
    ['large', 'messages', 5],
    ['small', 'chat', 4],
    ['coder', 'responses', 2],
    ['drafts', 'chat', 1],
  ] as const),
] as const

/** The budget of this key is spent long before the end of the thirty days. */
const budgeted = { account: 'wayne', label: 'ci', nanos: 3n * nanosPerCredit }
/** This key sends far more requests in the last two hours. */
const runaway = { account: 'globex', label: 'nightly', requests: 60 }
/** This model fails for `hours` hours, from `fromHour` on. */
const outage = { model: 'coder', fromHour: 17 * 24 + 9, hours: 3 }

/** Prices in nano-credits for a million tokens: multiples of a million, so that each token costs a whole number. */
const rates = {
  ...{ inputNanos: 3_000_000_000n, cacheReadNanos: 300_000_000n, outputNanos: 15_000_000_000n },
  ...{ cacheWriteNanos: 3_750_000_000n, cacheWrite1hNanos: 6_000_000_000n },
}

type DemoKey = { accountId: string; account: string; keyId: string; label: string }

/** Whether a file is a demo. It is only read, because it may be of somebody else. @throws if it is no store */
export function isDemoLife(path: string): boolean {
  return beginsWith({ actor: demoActor, operation: 'account.create' }, path)
}

/**
 * Makes a store with thirty days of activity that end at `nowMs`. The entries are made by the code that a server uses.
 * After each simulated hour, other work can run.
 * @param path a file that does not exist yet
 * @throws StoreError
 */
export async function makeDemoLife(
  path: string,
  { nowMs: endMs, reporting, seed = 7 }: { nowMs: number; reporting: Reporting; seed?: number },
): Promise<void> {
  const startMs = Math.floor(endMs / hourMs) * hourMs - days * dayMs
  let atMs = startMs
  const store = openStore(path, { nowMs: () => atMs, zone: reporting })
  try {
    const calendar = createCalendar(reporting)
    store.adoptReporting(reporting, startMs)
    const books = createBooks(store, () => atMs, { actor: demoActor }, calendar)
    const keys: DemoKey[] = []
    for (const [name, credits] of accounts) {
      const { id } = await books.createAccount(name, BigInt(credits) * nanosPerCredit)
      for (const label of labels) {
        const hasBudget = name === budgeted.account && label === budgeted.label
        const wishes = { label, ...(hasBudget && { budget: { nanos: budgeted.nanos, per: undefined } }) }
        keys.push({ accountId: id, account: name, keyId: (await books.createKey(id, wishes)).id, label })
      }
    }
    const traffic = createTraffic(() => atMs)
    const life = new DemoLife(keys, seed)
    for (let hour = 0; atMs <= endMs; hour++, atMs += hourMs) {
      if (hour > 0 && (atMs - startMs) % weekMs === 0)
        for (const [name, , weekly] of accounts)
          if (weekly > 0) await books.credit(name, BigInt(weekly) * nanosPerCredit, `invoice ${name} ${hour / 168}`)
      if (hour === dry.hour) {
        const { balanceNanos } = await books.findAccount(dry.account)
        const dailyNanos = (BigInt(dry.credits) * nanosPerCredit - balanceNanos) / BigInt(days - 4)
        const wantedNanos = dailyNanos * BigInt(dry.lastsDays)
        await books.credit(dry.account, wantedNanos - balanceNanos, `invoice ${dry.account}`)
      }
      const isLast = endMs - atMs < 2 * hourMs
      const { debits, refused } = life.live(hour, atMs, isLast)
      store.postDebits(debits)
      for (const debit of debits) traffic.note(life.recordOf(debit))
      for (const one of refused) traffic.note(one)
      if (hour % 24 === 0 || isLast) {
        store.writeTraffic(traffic.take())
        while (store.fold(5_000) > 0) await pause()
      }
      await pause()
    }
    atMs = endMs
    store.touchKeys(keys.map(({ keyId }) => [keyId, endMs - hourMs] as const))
    while (store.fold(5_000) > 0) await pause()
  } finally {
    store.close()
  }
}

/** Lets other work of the thread run first. */
function pause(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Makes the requests of each hour, from seeded random numbers. */
class DemoLife {
  readonly #keys: readonly DemoKey[]
  readonly #random: () => number
  #spentNanos = 0n

  constructor(keys: readonly DemoKey[], seed: number) {
    this.#keys = keys
    this.#random = createRandom(seed)
  }

  live(hour: number, atMs: number, isLast: boolean) {
    const debits: Debit[] = []
    const refused: TrafficRecord[] = []
    for (let left = this.#requestsOf(atMs); left > 0; left--) {
      const key = this.#keys[Math.floor(this.#random() ** 1.7 * this.#keys.length)]!
      const debit = this.#debitOf(key, atMs, 1)
      const isDown = debit.model === outage.model && hour >= outage.fromHour && hour < outage.fromHour + outage.hours
      if (isDown) refused.push({ ...this.recordOf(debit), ...failed })
      else if (this.#mayPay(key, debit.amountNanos)) debits.push(debit)
      else refused.push({ ...this.recordOf(debit), ...unpaid })
    }
    const wild = this.#keys.find(({ account, label }) => account === runaway.account && label === runaway.label)!
    if (isLast) for (let at = 0; at < runaway.requests; at++) debits.push(this.#debitOf(wild, atMs, 4))
    return { debits, refused }
  }

  recordOf({ accountId, keyId, model, clientWire, modelWire, upstream, outcome, usage }: Debit): TrafficRecord {
    const firstByteMs = 250 + 1_800 * this.#random() ** 3
    return {
      ...{
        walk: 'infer',
        status: 200,
        settled: 'posted',
        accountId,
        keyId,
        model,
        wire: clientWire,
        modelWire,
        upstream,
      },
      ...{ outcome, firstByteMs },
      endMs: firstByteMs + usage.outputTokens * (8 + 8 * this.#random()),
    }
  }

  /** The number of requests of an hour: most by day, fewer on Sundays. */
  #requestsOf(atMs: number): number {
    const at = new Date(atMs)
    const day = Math.max(0.08, Math.sin(((at.getUTCHours() - 6) / 24) * 2 * Math.PI) + 0.5)
    return Math.ceil(day * (at.getUTCDay() === 0 ? 0.35 : 1) * 20 * (0.6 + this.#random() * 0.8))
  }

  /** Takes the amount from the key's budget, if the key has one. @returns false if the budget is used up */
  #mayPay({ account, label }: DemoKey, nanos: bigint): boolean {
    if (account !== budgeted.account || label !== budgeted.label) return true
    if (this.#spentNanos >= budgeted.nanos) return false
    this.#spentNanos += nanos
    return true
  }

  #debitOf({ accountId, keyId }: DemoKey, atMs: number, times: number): Debit {
    const [model, modelWire] = this.#model()
    const inputTokens = Math.floor(2_000 + this.#random() * 9_000) * times
    const cacheReadTokens = Math.floor(this.#random() * 24_000) * times
    const outputTokens = Math.floor(150 + this.#random() * 1_800) * times
    const amountNanos =
      (BigInt(inputTokens) * rates.inputNanos +
        BigInt(cacheReadTokens) * rates.cacheReadNanos +
        BigInt(outputTokens) * rates.outputNanos) /
      1_000_000n
    const isSound = this.#random() < 0.97
    return {
      ...{ requestId: this.#requestId(atMs), accountId, keyId, model, modelWire, amountNanos },
      clientWire: this.#random() < 0.7 ? modelWire : 'chat',
      ...{ upstream: 'demo', upstreamAccount: 'main', pricedCalls: 0, calls: undefined },
      usage: {
        ...{ inputTokens, cacheReadTokens, outputTokens, cacheWriteTokens: 0, cacheWrite1hTokens: 0 },
        ...{ reasoningTokens: Math.floor(outputTokens * 0.3), estimated: false },
      },
      ...{ usageSource: 'final', priceVersion: 'demo', prices: rates },
      outcome: isSound ? 'ok' : this.#random() < 0.5 ? 'client_abort' : 'upstream_cut',
      createdMs: atMs,
    }
  }

  #model(): (typeof models)[number] {
    let left = this.#random() * models.reduce((sum, [, , share]) => sum + share, 0)
    for (const one of models) {
      left -= one[2]
      if (left < 0) return one
    }
    return models[0]
  }

  /** Makes an id in the format of `newRequestId`. */
  #requestId(atMs: number): string {
    const digits = Array.from({ length: 19 }, () => Math.floor(this.#random() * 16).toString(16)).join('')
    return `req_${atMs.toString(16).padStart(12, '0')}7${digits.slice(0, 3)}8${digits.slice(3, 18)}`
  }
}

const failed = { status: 502, settled: undefined, code: 'upstream_error', outcome: 'upstream_error' }
const unpaid = { status: 402, settled: undefined, code: 'insufficient_credits', outcome: 'refused' }

import { setTimeout as pause } from 'node:timers/promises'
import { parseCredits } from '../../src/accounts/credit.ts'
import { createKey } from '../../src/accounts/keys.ts'
import { percentile } from '../attack/report.ts'
import { ask, keepAsking, type Seen, tally } from './clients.ts'
import { type Finding, finding, formatCounts, type Size, type Trial } from './report.ts'
import type { Replica, Setting } from './setting.ts'

export const changes: readonly Trial[] = [
  {
    name: 'a key just made',
    demand: 'works on its first request on every replica, 1,000 of 1,000, under load',
    run: useNewKeys,
  },
  {
    name: 'revoke, suspend, credit',
    demand: 'everywhere ≤ 100 ms p99, quiet',
    run: heedChanges,
  },
  {
    name: 'guessed keys',
    demand: '100,000 guessed keys: ≤ 200 look-ups a second, valid clients’ p99 ≤ 2 ×',
    options: { settings: [`shared_preload_libraries = 'pg_stat_statements'`] },
    run: guess,
  },
]

function startThree(setting: Setting): Promise<Replica[]> {
  return Promise.all([1, 2, 3].map(() => setting.startReplica()))
}

async function useNewKeys(setting: Setting, size: Size): Promise<Finding[]> {
  const replicas = await startThree(setting)
  const payer = await setting.makePayer()
  const stop = keepAsking(
    () => replicas,
    () => ({ key: payer.key }),
    60,
  )
  const keys = size === 'whole' ? 1_000 : 100
  const seen: Seen[] = []
  for (let i = 0; i < keys; i++) {
    const { key } = await setting.books.createKey(payer.account)
    seen.push(...(await Promise.all(replicas.map((replica) => ask(replica, { key })))))
  }
  await stop()
  const counts = tally(seen)
  return [finding(counts[200] === seen.length, `${keys} keys on three replicas at once: ${formatCounts(counts)}`)]
}

/** Measures on each replica the time from the end of a command to the first answer that shows its effect. */
async function heedChanges(setting: Setting, size: Size): Promise<Finding[]> {
  const replicas = await startThree(setting)
  const { books } = setting
  const rounds = size === 'whole' ? 100 : 20
  const lags: Record<string, number[]> = { revoke: [], suspend: [], activate: [], spent: [], credit: [] }
  for (let i = 0; i < rounds; i++) {
    const payer = await setting.makePayer('1')
    const { id } = await books.createKey(payer.account)
    await Promise.all(replicas.map((replica) => ask(replica, { key: payer.key })))
    const name = payer.account
    await measure('suspend', payer.key, [401], () => books.updateAccount(name, { state: 'suspended' }))
    await measure('activate', payer.key, [200], () => books.updateAccount(name, { state: 'active' }))
    await measure('spent', payer.key, [402], () => books.credit(name, -parseCredits('2'), `spent-${i}`))
    await measure('credit', payer.key, [200], () => books.credit(name, parseCredits('3'), `more-${i}`))
    const [first] = (await books.listKeys(name)).filter((key) => key.id !== id)
    // Many requests with the revoked key come from one address, which therefore also gets a 429 (ruling R4).
    await measure('revoke', payer.key, [401, 429], () => books.revokeKey(first!.id))
  }
  return Object.entries(lags).map(([what, times]) =>
    finding(
      percentile(times, 99) <= 100,
      `${what}: p50 ${percentile(times, 50).toFixed(0)} ms, p99 ${percentile(times, 99).toFixed(0)} ms`,
    ),
  )

  async function measure(what: string, key: string, heeded: number[], change: () => Promise<unknown>): Promise<void> {
    await change()
    const changedMs = performance.now()
    await Promise.all(
      replicas.map(async (replica) => {
        while (performance.now() - changedMs < 5_000) {
          const begun = performance.now()
          // A request may begin before the change and be answered after it. So the start of the request is measured.
          if (heeded.includes((await ask(replica, { key })).status)) return void lags[what]!.push(begun - changedMs)
          await pause(5)
        }
        lags[what]!.push(Number.POSITIVE_INFINITY)
      }),
    )
  }
}

async function guess(setting: Setting, size: Size): Promise<Finding[]> {
  const guesses = size === 'whole' ? 100_000 : 10_000
  const replica = await setting.startReplica({ extra: ['trusted_proxies: [127.0.0.1]'] })
  const payer = await setting.makePayer()
  const database = new URL(setting.url).pathname.slice(1)
  setting.postgres.run('CREATE EXTENSION pg_stat_statements', database)
  const pay = () =>
    keepAsking(
      () => [replica],
      () => ({ key: payer.key }),
      30,
    )
  const payQuietly = pay()
  await pause(4_000)
  const quiet = await payQuietly()
  setting.postgres.run('SELECT pg_stat_statements_reset()', database)
  const payBeside = pay()
  const begunMs = performance.now()
  let left = guesses
  const statuses: Record<number, number> = {}
  await Promise.all(
    Array.from({ length: 64 }, async () => {
      while (left-- > 0) {
        // Each request has another address. A throttled address would be refused without a question to the database.
        const ip = `10.${left >> 16}.${(left >> 8) & 255}.${left & 255}`
        const { status } = await ask(replica, { key: createKey().key, ip })
        statuses[status] = (statuses[status] ?? 0) + 1
      }
    }),
  )
  const seconds = (performance.now() - begunMs) / 1_000
  const beside = await payBeside()
  const calls = Number(
    setting.postgres.run(
      `SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query LIKE '%digest = ANY%'`,
      database,
    ),
  )
  const [before, now] = [quiet, beside].map((seen) =>
    percentile(
      seen.map(({ ms }) => ms),
      99,
    ),
  )
  return [
    finding(
      calls / seconds <= 200,
      `${guesses} guesses in ${seconds.toFixed(1)} s: ${(calls / seconds).toFixed(0)} look-ups a second`,
    ),
    finding(
      now! <= 2 * Math.max(before!, 50),
      `p99 of payers ${before!.toFixed(0)} ms, beside them ${now!.toFixed(0)} ms`,
    ),
    finding(
      tally(beside)[200] === beside.length,
      `payers ${formatCounts(tally(beside))}; guessers ${formatCounts(statuses)}`,
    ),
  ]
}

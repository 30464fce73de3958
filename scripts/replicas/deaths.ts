import { setTimeout as pause } from 'node:timers/promises'
import { priceNanos } from '../../src/catalog/model.ts'
import { ask, keepAsking, type Seen, tally, type Wire } from './clients.ts'
import { type Finding, finding, formatCounts, type Size, type Trial } from './report.ts'
import type { Replica, Setting } from './setting.ts'

/** The lease of a replica's holds, in ms (docs/scaling.md). */
const leaseMs = 10_000

const wires: readonly Wire[] = ['messages', 'chat', 'responses']

export const deaths: readonly Trial[] = [
  {
    name: 'replica killed under load',
    demand: 'kill -9 of a replica: 0 answers seen without an entry, 0 double',
    run: killReplicas,
  },
  {
    name: 'holds of a killed replica',
    demand: 'free after its lease, at most a second later, and not before',
    run: freeHolds,
  },
]

async function killReplicas(setting: Setting, size: Size): Promise<Finding[]> {
  const kills = size === 'whole' ? 1_000 : 20
  const payer = await setting.makePayer()
  const alive: Replica[] = await Promise.all([1, 2, 3].map(() => setting.startReplica()))
  let asked = 0
  const asking = () => ({ key: payer.key, wire: wires[asked++ % 3]!, stream: asked % 2 === 0 })
  const all: Seen[] = []
  for (let i = 0; i < kills; i++) {
    const stop = keepAsking(() => alive, asking, 120)
    await pause(200 + Math.random() * 400)
    const victim = alive.shift()!
    await victim.kill()
    alive.push(await setting.startReplica({ name: victim.name }))
    all.push(...(await stop()))
  }
  return [...(await judgeBooks(setting, all)), finding(alive.length === 3, `${kills} kills`)]
}

/**
 * Checks that each complete answer is in the ledger once, that no request is in it twice, and that the books are right.
 * @param verify verifies the books; the code of another triwire if a newer one has migrated the schema
 */
export async function judgeBooks(
  { books }: Setting,
  seen: readonly Seen[],
  verify = () => books.verify({ priceNanos }),
): Promise<Finding[]> {
  const whole = seen.filter(({ isWhole }) => isWhole)
  const booked = new Map<string, number>()
  for await (const { bill } of books.eachEntry()) {
    if (bill) booked.set(bill.requestId, (booked.get(bill.requestId) ?? 0) + 1)
  }
  const lost = whole.filter(({ requestId }) => !booked.has(requestId!))
  const double = [...booked.values()].filter((count) => count > 1)
  const findings = await verify()
  return [
    finding(
      lost.length === 0 && double.length === 0,
      `${formatCounts(tally(seen))}; ${whole.length} whole, ${booked.size} in the ledger, ${lost.length} lost, ${double.length} double`,
    ),
    finding(findings.length === 0, findings.length ? findings.slice(0, 3).join('; ') : 'the books are right'),
  ]
}

async function untilHeld({ postgres, url }: Setting): Promise<void> {
  const database = new URL(url).pathname.slice(1)
  while (postgres.run('SELECT coalesce(max(held), 0) FROM triwire.shares', database) === '0') await pause(20)
}

/** Kills a replica whose slow answer holds all of the credit, and measures when another replica can use the credit. */
async function freeHolds(setting: Setting): Promise<Finding[]> {
  const [first, second] = await Promise.all([setting.startReplica(), setting.startReplica()])
  const { key } = await setting.makePayer('0.001')
  const running = ask(first!, { key, model: 'slow-chat', stream: true })
  await untilHeld(setting)
  const beside = await ask(second!, { key })
  await first!.kill()
  const killedMs = performance.now()
  await running
  let freeMs: number | undefined
  while (freeMs === undefined && performance.now() - killedMs < leaseMs + 5_000) {
    const { status } = await ask(second!, { key })
    if (status === 200) freeMs = performance.now() - killedMs
    else await pause(50)
  }
  const told = freeMs === undefined ? 'never' : `after ${(freeMs / 1_000).toFixed(1)} s`
  return [
    finding(beside.status === 402, `held by another replica: ${beside.status}`),
    // A replica renews its lease every second, so the lease may have begun up to a second before the kill.
    finding(freeMs !== undefined && freeMs >= leaseMs - 1_500 && freeMs <= leaseMs + 1_000, `free ${told}`),
  ]
}

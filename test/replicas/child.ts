import { fork } from 'node:child_process'
import { atEnd } from '../support/at-end.ts'
import type { Costs, ReplicaOptions, Shared, Verdicts } from './cluster.ts'

/*
 * A replica in a process of its own, for what only a process can do: die, and have another clock.
 */

type Order =
  | { do: 'start'; shared: Shared; options: Pick<ReplicaOptions, 'name'>; skewMs: number }
  | { do: 'take'; accountId: string; count: number; holdNanos: bigint }
  | { do: 'spend'; accountId: string; count: number; costs: Costs }

export type ChildReplica = {
  take(accountId: string, count: number, holdNanos?: bigint): Promise<Verdicts>
  spend(accountId: string, count: number, costs: Costs): Promise<Verdicts>
  kill(): Promise<void>
}

/** @param skewMs what its clocks are wrong by. */
export async function startChild(shared: Shared, name: string, skewMs = 0): Promise<ChildReplica> {
  const child = fork(import.meta.filename, [], { serialization: 'advanced' })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const waiting = new Map<number, PromiseWithResolvers<Verdicts>>()
  let lastId = 0
  child.on('message', ({ id, told, error }: { id: number; told: Verdicts; error?: string }) => {
    const { resolve, reject } = waiting.get(id)!
    waiting.delete(id)
    if (error === undefined) resolve(told)
    else reject(new Error(error))
  })
  const ask = (order: Order) => {
    const answer = Promise.withResolvers<Verdicts>()
    waiting.set(++lastId, answer)
    child.send({ id: lastId, ...order })
    return answer.promise
  }
  const kill = () => {
    child.kill('SIGKILL')
    return exited
  }
  atEnd(kill)
  await ask({ do: 'start', shared, options: { name }, skewMs })
  return {
    take: (accountId, count, holdNanos = 1n) => ask({ do: 'take', accountId, count, holdNanos }),
    spend: (accountId, count, costs) => ask({ do: 'spend', accountId, count, costs }),
    kill,
  }
}

if (process.send && process.argv[1] === import.meta.filename) {
  const { startReplica } = await import('./cluster.ts')
  let replica: Awaited<ReturnType<typeof startReplica>> | undefined
  const answer = async (order: Order): Promise<Verdicts> => {
    if (order.do === 'take') return replica!.take(order.accountId, order.count, order.holdNanos)
    if (order.do === 'spend') return replica!.spend(order.accountId, order.count, order.costs)
    const now = Date.now
    Date.now = () => now() + order.skewMs
    const clockMs = () => performance.now() + order.skewMs
    replica = await startReplica(order.shared, { ...order.options, clockMs })
    return {}
  }
  process.on('message', (order: Order & { id: number }) => {
    answer(order).then(
      (told) => process.send!({ id: order.id, told }),
      (error: Error) => process.send!({ id: order.id, error: error.message }),
    )
  })
}

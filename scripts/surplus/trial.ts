import { createRandom } from '../../src/store/seeded-random.ts'

/** A trial with one upstream, which sends one surplus answer. */
export type Trial = {
  number: number
  /** The kind of the surplus answer. */
  kind: 'json' | 'stream' | '408'
  /** The time between the right answer and the surplus one, in ms. */
  lateMs: number
  /** The number of concurrent requests. Each lane sends one request after the other. */
  lanes: number
  /** Time from a request to its answer, in ms. */
  takesMs: number
  /** The number of requests of each lane. */
  requests: number
  /** The number of right answers that the upstream sends before the surplus one. */
  after: number
}

export type TrialResult = {
  trial: Trial
  requests: number
  /** The number of requests that did not get their own answer. */
  hurt: number
  /** The number of surplus answers that the gateway reported. */
  events: number
  /** Requests that failed without a foreign answer. None may do so. */
  broken: string[]
}

/** Draws trials. All combinations are equally likely, except those with slow upstreams. The seed decides the trials. */
export function drawTrials(count: number, seed: number): Trial[] {
  const random = createRandom(seed)
  const pick = <Value>(values: readonly Value[]) => values[Math.floor(random() * values.length)]!
  return Array.from({ length: count }, (_, number) => {
    const isSlow = number % 10 === 9
    const lanes = pick([1, 4])
    const requests = isSlow ? 4 : 30
    return {
      number,
      kind: pick(['json', 'stream', '408'] as const),
      lateMs: pick([0, 1, 3, 10, 30]),
      lanes,
      takesMs: isSlow ? 3_000 : 20,
      requests,
      // Some requests come before the surplus answer, so that connections are kept. Others come after it.
      after: lanes + 1 + Math.floor(random() * (isSlow ? lanes : lanes * 10)),
    }
  })
}

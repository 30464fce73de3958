import { createRandom } from '../../src/store/seeded-random.ts'

/** One upstream that sends one answer too many. */
export type Trial = {
  number: number
  /** The kind of the surplus answer. */
  kind: 'json' | 'stream' | '408'
  /** Time between the answer and the surplus one, in ms. */
  lateMs: number
  /** Requests at a time; each lane asks one after the other. */
  lanes: number
  /** Time from a request to its answer, in ms. */
  takesMs: number
  /** The number of requests of each lane. */
  requests: number
  /** The number of the upstream's answer that the surplus one follows, from 1. */
  after: number
}

export type TrialResult = {
  trial: Trial
  requests: number
  /** Requests that were answered with something other than their own answer. */
  hurt: number
  /** The number of surplus answers that the gateway reported. */
  events: number
  /** Requests that failed in another way than by a foreign answer: there may be none. */
  broken: string[]
}

/** Draws trials: each combination as often as any other, except the slow upstreams. The same seed gives the same trials. */
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
      // Early enough for others to follow, and after some that make connections stay open.
      after: lanes + 1 + Math.floor(random() * (isSlow ? lanes : lanes * 10)),
    }
  })
}

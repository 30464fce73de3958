import { billNanos, hasStreams, isStream } from './answers.ts'
import type { Bench, TestedServer } from './servers.ts'
import { connectionsOf, type Sample, type Taking, take, wait } from './take.ts'
import { readTree } from './usage.ts'
import type { Workload } from './workloads.ts'

/** The cost of a unit of work for a server, and the waiting times of its clients. */
export type Figures = {
  /** CPU of all threads, and of the main thread alone, in µs per unit. */
  usAll: number
  usMain: number
  /** Requests per second at saturation. For streams, whose pace is the upstream's, the number of streams that ended. */
  perSecond: number
  /** Time to the first byte, at that load. */
  firstMs: number
  /** Latencies of JSON answers at 30 % of saturation. In a row that has JSON answers and streams: to the first byte. */
  p50Ms: number | undefined
  p99Ms: number | undefined
  rssMb: number
  /** The median time to the end of an answer, at saturation. For a stream this is its own length, if the server keeps up. */
  tookMs: number
  /** Requests before the measurement, and those of one measurement. */
  heated: number
  requests: number
}

export type Name = TestedServer['name']

export type MeasureOptions = {
  rounds: number
  /** How long latencies are measured, in seconds; 0: not at all. */
  latencySeconds: number
  /** Reports in whole sentences what makes the figures doubtful. */
  tell: (trouble: string) => void
  /**
   * The longest times of a measurement and of the warm-up before it, in seconds, for servers of very different speeds.
   */
  limits?: { take: number; heat: number } | undefined
  /** Called for a server that fails or answers wrongly, which is then left out. Without it, the trouble is reported or ends the run. */
  giveUp?: (server: TestedServer, error: Error) => void
}

/** The server is warm if a slice of requests costs about as much as the one before: the compiler has finished. */
const settledShare = 0.04
/** With many servers in turns, this share of a measurement is run before it to warm up. */
const wokenShare = 0.3
/** The load at which latencies are measured. */
const shareOfSaturation = 0.3
/** With fewer times than this, the 99th percentile means nothing. */
const timesMin = 100
/** If other programs use more of the machine than this, times are doubtful; CPU figures tolerate more. */
const othersMax = 0.1

/** Medians of several rounds in which the warm servers take turns. */
export async function measure(
  bench: Pick<Bench, 'servers' | 'tools' | 'upstreamPid'>,
  workload: Workload,
  { rounds, latencySeconds, tell, limits, giveUp }: MeasureOptions,
): Promise<Map<Name, Figures>> {
  const before = bench.servers.map(({ readBills }) => readBills?.())
  const samples = new Map<Name, Sample[]>(bench.servers.map(({ name }) => [name, []]))
  const amounts = new Map<Name, Amounts>()
  const taking: Taking = { bench, workload, tell, isStrict: giveUp !== undefined, answered: new Map(), others: [] }
  const running = new Set(bench.servers)
  await inTurns(async (server) => void amounts.set(server.name, await heat(taking, server, limits)))
  for (let round = 0; round < rounds; round++)
    await inTurns(async (server) => {
      const { requests } = amounts.get(server.name)!
      // With many servers, this one has slept for a minute since its last turn.
      if (limits) await take(taking, server, Math.ceil(requests * wokenShare))
      samples.get(server.name)!.push(await take(taking, server, requests))
    })
  const figures = new Map<Name, Figures>()
  await inTurns(async (server) => {
    const middle = middleOf(samples.get(server.name)!)
    const isAsked = latencySeconds > 0 && !isStream(workload.answer)
    const calm = isAsked ? await wait(taking, server, middle.perSecond * shareOfSaturation, latencySeconds) : undefined
    const [p50Ms, p99] = hasStreams(workload.answer) ? [calm?.firstP50, calm?.firstP99] : [calm?.p50, calm?.p99]
    const p99Ms = calm && calm.good + calm.bad >= timesMin ? p99 : undefined
    const { rssMb } = readTree(server.pid)
    figures.set(server.name, { ...middle, ...amounts.get(server.name)!, p50Ms, p99Ms, rssMb })
  })
  const othersMost = Math.max(0, ...taking.others)
  if (othersMost > othersMax)
    tell(
      `${workload.name}: other programs used up to ${Math.round(othersMost * 100)} % of all cores, so the times are not reliable.`,
    )
  for (const [i, server] of bench.servers.entries()) compareBills(taking, server, before[i])
  return figures

  async function inTurns(work: (server: TestedServer) => Promise<void>): Promise<void> {
    for (const server of running)
      try {
        await work(server)
      } catch (error) {
        if (!giveUp) throw error
        giveUp(server, error as Error)
        running.delete(server)
      }
  }
}

type Amounts = Pick<Figures, 'heated' | 'requests'>

const slices = 4

/** Warms a server up. @returns the number of its requests, and the number for a measurement */
export async function heat(taking: Taking, server: TestedServer, limits: MeasureOptions['limits']): Promise<Amounts> {
  const { warmRequests, requests } = taking.workload
  const connections = connectionsOf(taking.workload, server)
  const amountOf = (perSecond: number, seconds: number) => Math.max(connections, Math.round(perSecond * seconds))
  const endMs = performance.now() + (limits?.heat ?? Number.POSITIVE_INFINITY) * 1_000
  let slice = limits ? connections : Math.ceil(warmRequests / slices)
  let last: Sample | undefined
  let heated = 0
  while (heated < 2 * warmRequests && performance.now() < endMs) {
    const now = await take(taking, server, slice)
    heated += slice
    const isSettled = last !== undefined && Math.abs(now.usAll / last.usAll - 1) < settledShare
    last = now
    if (heated >= warmRequests && isSettled) break
    if (limits) slice = Math.min(amountOf(now.perSecond, limits.heat / slices), warmRequests)
  }
  return { heated, requests: limits ? amountOf(last!.perSecond, limits.take) : requests }
}

/** Compares bills and answers: each answer must be one entry with the right amount. */
function compareBills(
  { workload, answered, tell }: Taking,
  { name, readBills }: TestedServer,
  bills: ReturnType<NonNullable<typeof readBills>> | undefined,
): void {
  if (!readBills || !bills) return
  const { count, nanos } = readBills()
  const [entries, billed, answers] = [count - bills.count, nanos - bills.nanos, answered.get(name) ?? 0]
  if (entries !== answers || billed !== BigInt(answers) * billNanos(workload.answer))
    tell(`${workload.name}: ${name} gave ${answers} answers and booked ${entries} debits of ${billed} nano-credits.`)
}

function middleOf(samples: readonly Sample[]): Sample {
  const of = (name: keyof Sample) => median(samples.map((sample) => sample[name]))
  return {
    usAll: of('usAll'),
    usMain: of('usMain'),
    perSecond: of('perSecond'),
    firstMs: of('firstMs'),
    tookMs: of('tookMs'),
  }
}

export function median(list: readonly number[]): number {
  const sorted = list.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

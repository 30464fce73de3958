import { hasStreams, marksOf } from './answers.ts'
import type { Figures, Name } from './measure.ts'
import { isGateway, requestsOf } from './request.ts'
import type { Bench, TestedServer } from './servers.ts'
import { putLoad, type Told } from './tools.ts'
import { readCpu, readMachine, readTree } from './usage.ts'
import { unitsOf, type Workload } from './workloads.ts'

/** A row and its state while it is measured. */
export type Taking = {
  bench: Pick<Bench, 'tools' | 'upstreamPid'>
  workload: Workload
  tell: (trouble: string) => void
  /** Whether too many wrong answers make a measurement fail. */
  isStrict: boolean
  /** The number of answers with status 200, by server. */
  answered: Map<Name, number>
  /** The share of the machine that other programs used, for each measurement. */
  others: number[]
}

/** The figures of one measurement. */
export type Sample = Pick<Figures, 'usAll' | 'usMain' | 'perSecond' | 'firstMs' | 'tookMs'>

/** The largest share of wrong answers: with more of them a figure measures something else. */
const wrongMax = 0.01

/** Measures at saturation. @throws if no answer comes, or if it is strict and too many answers are wrong */
export async function take(taking: Taking, server: TestedServer, requests: number): Promise<Sample> {
  const { upstreamPid } = taking.bench
  const machine = readMachine()
  const upstream = readCpu(upstreamPid).allNs
  const cpu = readUsed(server)
  const told = await ask(taking, server, requests)
  const after = readUsed(server)
  const ownNs = after.allNs - cpu.allNs + readCpu(upstreamPid).allNs - upstream + told.cpuSeconds * 1e9
  const { busyNs, allNs } = readMachine()
  // The ticks of /proc/stat are coarse, so the difference may be below 0 or above the time of all cores.
  const othersShare = (busyNs - machine.busyNs - ownNs) / (allNs - machine.allNs)
  taking.others.push(Math.min(1, Math.max(0, othersShare)))
  const units = requests * unitsOf(taking.workload) * 1_000
  return {
    usAll: (after.allNs - cpu.allNs) / units,
    usMain: (after.mainNs - cpu.mainNs) / units,
    perSecond: requests / told.seconds,
    firstMs: told.firstP50,
    tookMs: told.p50,
  }
}

/** Measures latencies: sends requests on a schedule. @param rate requests a second */
export function wait(taking: Taking, server: TestedServer, rate: number, seconds: number): Promise<Told> {
  return ask(taking, server, Math.ceil(rate * seconds), rate)
}

export function connectionsOf({ connections, answer }: Workload, { peer }: TestedServer): number {
  return peer && hasStreams(answer) ? Math.min(connections, peer.streamsMax) : connections
}

async function ask(taking: Taking, server: TestedServer, count: number, rate?: number): Promise<Told> {
  const { bench, workload, answered, isStrict, tell } = taking
  const { port, name } = server
  const marks = marksOf(workload.answer, isGateway(server) ? workload.wire : workload.modelWire)
  const [requests, connections] = [requestsOf(workload, server), connectionsOf(workload, server)]
  const told = await putLoad(bench.tools, { port, requests, connections, count, marks, ...(rate && { rate }) })
  answered.set(name, (answered.get(name) ?? 0) + (told.statuses['200'] ?? 0))
  const wrong = `of ${count} answers of ${name} ${told.bad} were wrong: ${JSON.stringify(told.statuses)}`
  if (isStrict && told.bad > count * wrongMax) throw new Error(wrong)
  if (told.bad > 0) tell(`${workload.name}: ${wrong}.`)
  return told
}

/** A peer may be several processes. For those that ended the system keeps only the CPU of all their threads. */
function readUsed({ pid, peer }: TestedServer): { allNs: number; mainNs: number } {
  return peer ? { allNs: readTree(pid).cpuNs, mainNs: 0 } : readCpu(pid)
}

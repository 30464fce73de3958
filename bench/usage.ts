import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

/** The CPU that a process has used so far: all its threads, and its main thread alone. */
export function readCpu(pid: number): { allNs: number; mainNs: number } {
  let allNs = 0
  for (const thread of readdirSync(`/proc/${pid}/task`)) allNs += readThread(pid, thread)
  return { allNs, mainNs: readThread(pid, String(pid)) }
}

/** The time in which the main thread of a process was ready to run and had no processor, in ns. */
export function readWaited(pid: number): number {
  return readThread(pid, String(pid), 1)
}

/** @param field 0: the time on a processor, 1: the time in which it waited for one */
function readThread(pid: number, thread: string, field = 0): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[field])
  } catch {
    // The thread has ended since the list was read.
    return 0
  }
}

/** The CPU time that all cores have used so far, and the time that they had. */
export function readMachine(): { busyNs: number; allNs: number } {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = readFileSync('/proc/stat', 'latin1')
    .split('\n', 1)[0]!
    .trim()
    .split(/ +/)
    .slice(1)
    .map(Number)
  return {
    busyNs: (user + nice + system + irq + softirq + steal) * nsPerTick,
    allNs: Number(process.hrtime.bigint()) * availableCores,
  }
}

const availableCores = availableParallelism()

/** Constants of Linux, which do not depend on its kernel's clock. */
const nsPerTick = 1e7
const bytesPerPage = 4096

/** The usage of a process and all its descendants: CPU, including those that have ended, and memory now. */
export type TreeUsage = { pids: number[]; cpuNs: number; rssMb: number }

/** Reads `/proc`, or a folder like it. A process that has ended has used nothing. */
export function readTree(root: number, proc = '/proc'): TreeUsage {
  const processes = new Map<number, Process>()
  for (const name of readdirSync(proc)) {
    const found = /^\d+$/.test(name) ? readProcess(join(proc, name, 'stat')) : undefined
    if (found) processes.set(Number(name), found)
  }
  const pids = processes.has(root) ? [root] : []
  for (const parent of pids) for (const [pid, one] of processes) if (one.parent === parent) pids.push(pid)
  const all = pids.map((pid) => processes.get(pid)!)
  return {
    pids,
    cpuNs: all.reduce((sum, { ticks }) => sum + ticks, 0) * nsPerTick,
    rssMb: (all.reduce((sum, { pages }) => sum + pages, 0) * bytesPerPage) / 2 ** 20,
  }
}

type Process = { parent: number; ticks: number; pages: number }

/** @returns undefined if it has ended since the folder was read */
function readProcess(file: string): Process | undefined {
  try {
    const text = readFileSync(file, 'latin1')
    // The second field is a name, which may itself have blanks and parentheses.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const field = (number: number) => Number(fields[number - 3])
    // The last two ticks are of children that have ended, which are no longer in the folder.
    return { parent: field(4), ticks: field(14) + field(15) + field(16) + field(17), pages: field(24) }
  } catch {
    return undefined
  }
}

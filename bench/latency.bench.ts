/*
 * Measures how long clients wait at 10, 30 and 60 % of saturation: for an answer, and for the first byte of a stream. Servers that
 * lack one cause of waiting show which part of the slowest hundredth each cause has. All get the same rate, a share of what the
 * gateway reaches:
 *
 *   bare pipe      only the system: its scheduler, its sockets, and the load itself
 *   no disk        the store is in memory, so a flush of the disk takes no time
 *   no collector   the young generation is so large that nothing is collected meanwhile
 *   neither        both
 *
 *     node bin/node.mjs bench/latency.bench.ts [--seconds 10] [--rounds 3] [--rows <part of a name>]
 */
import { existsSync } from 'node:fs'
import { readOptions } from './options.ts'
import { startBench, type TestedServer } from './servers.ts'
import { type Taking, take, wait } from './take.ts'
import type { Told } from './tools.ts'
import { readWaited } from './usage.ts'
import { type Workload, workloads } from './workloads.ts'

const usage = `node bin/node.mjs bench/latency.bench.ts [options]

  --seconds N    the length of one measurement (10)
  --rounds N     the number of measurements of each server (3)
  --rows TEXT    only the rows whose names contain TEXT`

const options = readOptions(usage, {
  seconds: { type: 'string', default: '10' },
  rounds: { type: 'string', default: '3' },
  rows: { type: 'string', default: '' },
})
const shares = [0.1, 0.3, 0.6]
/** With fewer times than this, the slowest thousandth means nothing. */
const timesMin = 2_000
/** A folder of Linux whose files are in memory. */
const memory = '/dev/shm'

const noCollector = ['--min-semi-space-size=1024', '--max-semi-space-size=1024']
const variants = [
  ...(existsSync(memory) ? [{ name: 'no disk', folder: memory }] : []),
  { name: 'no collector', flags: noCollector },
  ...(existsSync(memory) ? [{ name: 'neither', folder: memory, flags: noCollector }] : []),
]
const pairs = ['chat', 'messages → chat'].map((pair) => rowOf(`1 KB, ${pair}, 32 conn.`))
const rows = [...pairs, ...pairs.map(streamsOf)].filter(({ name }) => name.includes(options.rows))

/**
 * Medians of the rounds, in ms.
 * @property waitedUs how long the serving thread waited for a processor, in µs a request
 */
type Times = { p50: number; p99: number; p999: number | undefined; waitedUs: number }

const bench = await startBench({ variants })
try {
  const servers = bench.servers.filter(({ name }) => name !== 'nginx')
  console.log('| row | at | server | p50 ms | p99 | p99.9 | waits for the core, µs a request |')
  console.log('|---|---|---|---|---|---|---|')
  for (const workload of rows) {
    const tell = (trouble: string) => console.error(trouble)
    const taking: Taking = { bench, workload, tell, isStrict: false, answered: new Map(), others: [] }
    for (const server of servers) await take(taking, server, workload.warmRequests)
    const gateway = servers.find(({ name }) => name === 'gateway')!
    const { perSecond } = await take(taking, gateway, workload.requests)
    for (const share of shares) await measureShare(taking, servers, share, perSecond)
    const others = Math.max(...taking.others)
    console.error(`${workload.name}: other programs used up to ${Math.round(others * 100)} % of the machine.`)
  }
} finally {
  await bench.close()
}

async function measureShare(taking: Taking, servers: readonly TestedServer[], share: number, perSecond: number) {
  const rate = share * perSecond
  const found = new Map<string, Times[]>(servers.map(({ name }) => [name, []]))
  for (let round = 0; round < Number(options.rounds); round++)
    for (const server of servers) {
      const before = readWaited(server.pid)
      const told = await wait(taking, server, rate, Number(options.seconds))
      const waitedUs = (readWaited(server.pid) - before) / (told.good + told.bad) / 1_000
      found.get(server.name)!.push({ ...timesOf(taking.workload, told), waitedUs })
    }
  const middle = new Map([...found].map(([name, times]) => [name, middleOf(times)]))
  const at = `${Math.round(share * 100)} % (${Math.round(rate)} a second)`
  for (const [name, { p50, p99, p999, waitedUs }] of middle) {
    const cells = [p50.toFixed(2), p99.toFixed(1), p999?.toFixed(1) ?? '–', Math.round(waitedUs)]
    console.log(`| ${[taking.workload.name, at, name === 'bare' ? 'bare pipe' : name, ...cells].join(' | ')} |`)
  }
}

/** Returns the times that clients wait: for the first byte of a stream, or for the end of a JSON answer. */
function timesOf({ answer }: Workload, told: Told): Omit<Times, 'waitedUs'> {
  const [p50, p99, p999] =
    answer === 'mixed' ? [told.firstP50, told.firstP99, told.firstP999] : [told.p50, told.p99, told.p999]
  return { p50, p99, p999: told.good < timesMin ? undefined : p999 }
}

function middleOf(times: readonly Times[]): Times {
  const of = (name: keyof Times) => times.map((one) => one[name] ?? 0).sort((a, b) => a - b)[times.length >> 1]!
  const isMany = times.every(({ p999 }) => p999 !== undefined)
  return { p50: of('p50'), p99: of('p99'), p999: isMany ? of('p999') : undefined, waitedUs: of('waitedUs') }
}

function rowOf(name: string): Workload {
  return workloads.find((row) => row.name === name)!
}

/** The same requests for streams of 64 events, one every 5 ms. */
function streamsOf(row: Workload): Workload {
  const bodies = row.bodies.map((body) => ({ ...body, stream: true }))
  const name = row.name.replace('32 conn.', 'first byte of a stream')
  return { ...row, name, answer: 'mixed', bodies, connections: 500, requests: 2_000, warmRequests: 4_000 }
}

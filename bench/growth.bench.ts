/*
 * Measures what a request of 1 KB costs as numbers grow: of accounts, models, open streams, and entries of the ledger.
 * Each size has its own gateway, and these take turns in one run. Only the sizes of open streams share one. SQL fills
 * the stores.
 *
 *     node bin/node.mjs bench/growth.bench.ts [--axis <part of a name>] [--full] [--rounds 3] [--requests 10000] [--write]
 *
 * `--full` goes to a million accounts, 8,000 streams and ten million entries, which takes 10 GB in the temporary folder
 * and half an hour. `--write` writes the page and its plots into bench/results.
 */
import { writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { marksOf } from './answers.ts'
import { addAccounts, addEntries, addPayers } from './growth/fill.ts'
import { drawPanels, type Panel, type Point } from './growth/plot.ts'
import { readOptions } from './options.ts'
import { requestsOf } from './request.ts'
import { type Bench, startBench, type TestedServer, type Variant } from './servers.ts'
import { type Taking, take } from './take.ts'
import { startLoad } from './tools.ts'
import { readCpu, readTree } from './usage.ts'
import { type Workload, workloads } from './workloads.ts'

const usage = `node bin/node.mjs bench/growth.bench.ts [options]

  --axis TEXT     only the axes whose names contain TEXT: accounts, models, streams, entries
  --full          also the largest sizes
  --rounds N      the number of measurements of each size (3)
  --requests N    the requests of one measurement (10000)
  --write         writes the page into bench/results`

const options = readOptions(usage, {
  axis: { type: 'string', default: '' },
  full: { type: 'boolean', default: false },
  rounds: { type: 'string', default: '3' },
  requests: { type: 'string', default: '10000' },
  write: { type: 'boolean', default: false },
})
const [rounds, requests] = [Number(options.rounds), Number(options.requests)]
const workload: Workload = { ...workloads.find(({ name }) => name === '1 KB, chat, 32 conn.')!, requests }

type Axis = {
  name: string
  sizes: readonly number[]
  /** Further sizes, only with `--full`. */
  more: readonly number[]
  /** How a gateway of this size is set up; without it, one gateway has all sizes, one after the other. */
  variantOf?: (size: number) => Omit<Variant, 'name'>
  /** Why the cost grows as it does, as measured. */
  why: string
}

const axes: readonly Axis[] = [
  {
    name: 'accounts',
    sizes: [1_000, 10_000, 100_000],
    more: [1_000_000],
    variantOf: (size) => ({ fill: fillWith(addAccounts, size) }),
    why: `The cost is flat to 100,000 accounts. With a million, a request costs some 5 to 8 % more: it finds its account and key in maps,
which then no longer fit any cache of the processor, and full collections of the heap go through all of them. Memory grows by some
1.5 KB for each account with a key. However many accounts there are, a commit changes one page of them for each account that pays.`,
  },
  {
    name: 'models',
    sizes: [10, 100, 500, 2_000],
    more: [],
    variantOf: (size) => ({ models: size }),
    why: `The cost is flat. A model is found by its name in a map, and its profile is resolved when the configuration is read. Memory grows by
some 15 KB a model.`,
  },
  {
    name: 'open streams',
    sizes: [100, 1_000, 4_000],
    more: [8_000],
    why: `The cost falls by a tenth. Each stream sends a word every two seconds. The cost of the streams is measured without requests, and
subtracted. A request does not look at streams. The ticker checks the deadlines of each stream four times a second, which is a part of
the stream's own cost. With many streams the event loop is never idle, so more requests share a wake-up and a commit. A stream takes
some 22 KB.`,
  },
  {
    name: 'entries of the ledger',
    sizes: [10_000, 100_000, 1_000_000],
    more: [10_000_000],
    variantOf: (size) => ({ fill: fillWith(addEntries, size) }),
    why: `The cost is flat to ten million entries, as far as this machine can show it. Request ids and times grow at the end of their indexes, so
their pages are shared and in memory at every size. In the index by account and number, each paying account writes to its own page.
SQLite reads that page from the file again if it is no longer in its cache. This index gets one level deeper for each factor of a hundred.
Reports read folded figures and not the entries ([decision 54](../../docs/decisions/0054-reports-of-long-ledgers.md)).`,
  },
]

const troubles = new Set<string>()
let othersMost = 0
const panels: Panel[] = []
for (const axis of axes.filter(({ name }) => name.includes(options.axis))) {
  const points = await measureAxis(axis)
  panels.push({ title: axis.name, points })
  for (const { size, allUs, mainUs, rssMb } of points)
    console.log(`${axis.name} ${size}: ${allUs.toFixed(1)} µs a request (${mainUs.toFixed(1)}), ${rssMb.toFixed(0)} MB`)
}
for (const trouble of troubles) console.log(trouble)
console.log(`Other programs used up to ${Math.round(othersMost * 100)} % of the machine.`)
if (options.write) writePage()

async function measureAxis(axis: Axis): Promise<Point[]> {
  const sizes = [...axis.sizes, ...(options.full ? axis.more : [])]
  const { variantOf } = axis
  if (!variantOf) return measureStreams(sizes)
  const bench = await startBench({ variants: sizes.map((size) => ({ name: `${size}`, ...variantOf(size) })) })
  try {
    return await measureInTurns(bench, sizes)
  } finally {
    await bench.close()
  }
}

async function measureInTurns(bench: Bench, sizes: readonly number[]): Promise<Point[]> {
  const taking = takingOf(bench)
  const servers = sizes.map((size) => bench.servers.find(({ name }) => name === `${size}`)!)
  for (const server of servers) await take(taking, server, 4 * requests)
  const costs = servers.map((): { all: number; main: number }[] => [])
  for (let round = 0; round < rounds; round++)
    for (const [at, server] of servers.entries()) {
      const { usAll, usMain } = await take(taking, server, requests)
      costs[at]!.push({ all: usAll, main: usMain })
    }
  othersMost = Math.max(othersMost, ...taking.others)
  return sizes.map((size, at) => pointOf(size, costs[at]!, servers[at]!))
}

/** Measures requests beside open streams. The cost of the streams alone is measured before, and subtracted. */
async function measureStreams(sizes: readonly number[]): Promise<Point[]> {
  const bench = await startBench()
  try {
    const server = bench.servers.find(({ name }) => name === 'gateway')!
    const taking = takingOf(bench)
    await take(taking, server, 4 * requests)
    const points: Point[] = []
    for (const size of sizes) {
      const streams = await openStreams(bench, server, size)
      const costs: { all: number; main: number }[] = []
      for (let round = 0; round < rounds; round++) {
        const idle = await measureIdle(server)
        const startedMs = performance.now()
        const { usAll, usMain } = await take(taking, server, requests)
        const each = ((performance.now() - startedMs) * 1_000) / requests
        costs.push({ all: usAll - idle.all * each, main: usMain - idle.main * each })
      }
      points.push(pointOf(size, costs, server))
      streams.stop()
      await streams.told.catch(() => {})
      await pause(5_000)
    }
    othersMost = Math.max(othersMost, ...taking.others)
    return points
  } finally {
    await bench.close()
  }
}

/** Opens streams that send a word every two seconds, and waits long enough for all of them to be open. */
async function openStreams(bench: Bench, server: TestedServer, count: number) {
  const slow: Workload = {
    ...workload,
    answer: 'stream-slow',
    bodies: workload.bodies.map((body) => ({ ...body, stream: true })),
  }
  const asked = { port: server.port, requests: requestsOf(slow, server), connections: count, count }
  const streams = startLoad(bench.tools, { ...asked, marks: marksOf('stream-slow', 'chat') })
  streams.told.catch(() => {})
  // Some 2,000 streams a second are opened, and a machine that is busy takes longer.
  await pause(5_000 + count * 2)
  return streams
}

/** @returns the share of a processor that a server uses by itself */
async function measureIdle({ pid }: TestedServer): Promise<{ all: number; main: number }> {
  const [before, startedMs] = [readCpu(pid), performance.now()]
  await pause(6_000)
  const [after, tookNs] = [readCpu(pid), (performance.now() - startedMs) * 1e6]
  return { all: (after.allNs - before.allNs) / tookNs, main: (after.mainNs - before.mainNs) / tookNs }
}

function takingOf(bench: Bench): Taking {
  return { bench, workload, tell: (trouble) => troubles.add(trouble), isStrict: false, answered: new Map(), others: [] }
}

function pointOf(size: number, costs: readonly { all: number; main: number }[], server: TestedServer): Point {
  const middle = (list: number[]) => list.sort((a, b) => a - b)[list.length >> 1]!
  const [allUs, mainUs] = [middle(costs.map(({ all }) => all)), middle(costs.map(({ main }) => main))]
  return { size, allUs, mainUs, rssMb: readTree(server.pid).rssMb }
}

function fillWith(add: (path: string, count: number) => void, count: number) {
  return async (path: string) => {
    const keys = await addPayers(path)
    add(path, count)
    return keys
  }
}

function writePage(): void {
  const folder = join(import.meta.dirname, 'results')
  const tables = panels.map(({ title, points }) => {
    const rows = points.map(
      ({ size, allUs, mainUs, rssMb }) =>
        `| ${size.toLocaleString('en')} | ${allUs.toFixed(0)} | ${mainUs.toFixed(0)} | ${rssMb.toFixed(0)} |`,
    )
    const { why } = axes.find(({ name }) => name === title)!
    return `## ${title}\n\n| ${title} | µs a request | serving thread | RSS, MB |\n|---|---|---|---|\n${rows.join('\n')}\n\n${why}`
  })
  const [core] = cpus()
  const page = `# What a request costs as a gateway grows

Written by \`bench/growth.bench.ts\` on ${new Date().toISOString().slice(0, 10)}: ${cpus().length} cores (${core?.model.trim()}), Node ${process.versions.node}. µs of CPU of a request of 1 KB (chat, 32
connections, 500 paying accounts in turn), medians of ${rounds} rounds of ${requests} requests; all sizes of an axis took turns in one run. Other
programs used up to ${Math.round(othersMost * 100)} % of the machine${othersMost > 0.1 ? ', so only the ratios within an axis are reliable' : ''}.

![µs a request by size](growth.svg)

${tables.join('\n\n')}
`
  writeFileSync(join(folder, 'growth.md'), page)
  writeFileSync(join(folder, 'growth.svg'), drawPanels(panels))
}

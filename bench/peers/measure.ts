import { spawnSync } from 'node:child_process'
import { cpus, release } from 'node:os'
import { type AnswerName, piecesOf } from '../answers.ts'
import { type Figures, type MeasureOptions, measure } from '../measure.ts'
import { isGateway } from '../request.ts'
import { type Bench, startBench, type TestedServer } from '../servers.ts'
import { readTree } from '../usage.ts'
import { type Workload, workloads } from '../workloads.ts'
import { readProblem } from './install.ts'
import type { Run, ServerTold } from './page.ts'
import type { Peer } from './peer.ts'
import { probe } from './probe.ts'
import { type RunningPeer, startPeer } from './start.ts'

/** The rows of the benchmark that peers are measured on too. The page has more figures of the first two and of the first stream. */
export const rowNames: readonly string[] = [
  '1 KB, chat, 32 conn.',
  '1 KB, chat, 1 conn.',
  '60 KB agent, chat, 32 conn.',
  '1 MB image, chat, 4 conn.',
  '1 KB, messages → chat, 32 conn.',
  'stream, 1 a piece, chat',
  'stream, 8 a piece, chat',
  'stream, 1 a piece, messages → chat',
  '60 KB agent, messages → chat, 32 conn.',
  'stream, 1 a piece, chat, chunks of openai',
  "LiteLLM's profile, chat, 64 conn.",
  "LiteLLM's profile, messages → chat, 64 conn.",
]

/** The time for which p50 and p99 at 30 % of saturation are measured, on the first row. */
const latencySeconds = 4
/** A stream that takes longer than the pipe's by this factor does not keep its pace: its pieces are joined. */
const lateMax = 1.25

export type PeersOptions = {
  /** Selects rows by a part of their names. */
  rows: string
  limits: NonNullable<MeasureOptions['limits']>
  rounds: number
  /** Called after each row with all results so far. */
  keep: (run: Run) => void
}

/** Measures all rows of all servers. A peer is started once for each answer of its upstream, and ended after the rows that use it. */
export async function measurePeers(peers: readonly Peer[], options: PeersOptions): Promise<Run> {
  const rows = rowNames.filter((name) => name.includes(options.rows)).map(rowOf)
  const bench = await startBench()
  const running: RunningPeer[] = []
  try {
    for (const server of bench.servers) server.name = titles[server.name] ?? server.name
    const servers = new Map<string, ServerTold>()
    for (const server of bench.servers) servers.set(server.name, tellOurs(server))
    for (const peer of peers) servers.set(peer.name, tellPeer(peer))
    const run: Run = { about: tellAbout(options), rows: rows.map(tellRow), servers: [...servers.values()], remarks: [] }
    for (const [answer, ofAnswer] of Map.groupBy(rows, (row) => row.answer)) {
      running.push(...(await startAll(peers, bench, answer, ofAnswer, servers)))
      for (const row of ofAnswer) {
        const { take, heat } = options.limits
        // A server that has run one row is warm for the others, too.
        const limits = { take, heat: row === ofAnswer[0] ? heat : heat / 2 }
        await measureRow(row, { bench, running, servers, run, options: { ...options, limits } })
        options.keep(run)
      }
      for (const { stop } of running.splice(0)) await stop()
    }
    return run
  } finally {
    for (const { stop } of running) await stop()
    await bench.close()
  }
}

type Setting = {
  bench: Bench
  running: readonly RunningPeer[]
  servers: ReadonlyMap<string, ServerTold>
  run: Run
  options: PeersOptions
}

/** Measures a row. A server that cannot serve it gives a reason, and is left out. */
async function measureRow(row: Workload, { bench, running, servers, run, options }: Setting): Promise<void> {
  const able: TestedServer[] = []
  for (const server of [...bench.servers, ...running.map((one) => one.server)]) {
    const { why, pieces } = await probe(server, row)
    if (why === undefined) able.push(server)
    else leaveOut(server, new Error(why))
    // This server had no other requests, so pieces that arrived together were gathered. That saves work and makes clients wait.
    const sent = piecesOf(row.answer)
    if (why === undefined && pieces < sent / 2)
      tell(
        `${row.name}: ${server.name} joins pieces of a stream: the model sent ${sent} pieces, and the client got ${pieces}.`,
      )
  }
  const { limits, rounds } = options
  const seconds = row.name === rowNames[0] ? latencySeconds : 0
  const limited = { limits, rounds, latencySeconds: seconds, tell, giveUp: leaveOut }
  const figures = await measure({ ...bench, servers: able }, row, limited)
  for (const [name, found] of figures) servers.get(name)!.cells[row.name] = found
  tellLate(row, figures, tell)
  console.error(`${row.name}: ${[...figures].map(([name, { usAll }]) => `${name} ${usAll.toFixed(1)}`).join(', ')}`)

  function leaveOut({ name }: TestedServer, { message }: Error): void {
    servers.get(name)!.cells[row.name] = message
    console.error(`${row.name}: ${name}: ${message}`)
  }

  function tell(trouble: string): void {
    run.remarks.push(trouble)
    console.error(trouble)
  }
}

function tellLate(row: Workload, figures: ReadonlyMap<string, Figures>, tell: (trouble: string) => void): void {
  const pace = figures.get('bare')?.tookMs
  if (row.unit !== 'event' || !pace) return
  for (const [name, { tookMs }] of figures) {
    const times = tookMs / pace
    if (times > lateMax)
      tell(
        `${row.name}: each stream took ${times.toFixed(1)} times as long through ${name} as through the bare pipe. So ${name} sent some pieces of the stream together.`,
      )
  }
}

function tellRow({ name, unit, wire, modelWire }: Workload): Run['rows'][number] {
  return { name, unit, wire, modelWire }
}

function rowOf(name: string): Workload {
  const row = workloads.find((one) => one.name === name)
  if (!row) throw new Error(`the benchmark has no row ${name}`)
  return row
}

/** Starts servers one after the other, so that each has the core for its start. */
async function startAll(
  peers: readonly Peer[],
  bench: Bench,
  answer: AnswerName,
  rows: readonly Workload[],
  servers: ReadonlyMap<string, ServerTold>,
): Promise<RunningPeer[]> {
  const running: RunningPeer[] = []
  for (const peer of peers) {
    const told = servers.get(peer.name)!
    try {
      const problem = readProblem(peer)
      if (problem !== undefined) throw new Error(problem)
      const started = await startPeer(peer, bench, answer)
      running.push(started)
      told.startedMs ??= started.startedMs
      told.idleMb ??= started.idleMb
    } catch (error) {
      for (const { name } of rows) told.cells[name] = (error as Error).message
      console.error(`${peer.name}: ${(error as Error).message}`)
    }
  }
  return running
}

/** The name of our gateway in a table with others. */
const titles: Readonly<Record<string, string>> = { gateway: 'triwire' }

function tellOurs(server: TestedServer): ServerTold {
  return {
    name: server.name === 'bare' ? 'bare pipe' : server.name,
    what: 'of this checkout (Node)',
    has: isGateway(server)
      ? 'checks a key and its rate limit, reserves credit, writes a durable debit for each request into SQLite, keeps metrics, and writes its log to a file'
      : '',
    isPipe: !isGateway(server),
    idleMb: readTree(server.pid).rssMb,
    ...(server.startedMs && { startedMs: server.startedMs }),
    cells: {},
  }
}

function tellPeer({ name, language, source, has, streamsMax }: Peer): ServerTold {
  const node = source.from === 'npm' && source.node ? ` ${source.node}` : ''
  const what = `${source.version} (${language}${node}, from ${source.from})`
  const less =
    streamsMax === undefined
      ? ''
      : `; it gets ${streamsMax} streams at once, because it cannot keep up with the upstream if there are more`
  return { name, what, has: `${has}${less}`, isPipe: false, cells: {} }
}

function tellAbout({ limits, rounds }: PeersOptions): string {
  const nginx = spawnSync('nginx', ['-v'], { encoding: 'utf8' }).stderr?.trim().split('/')[1]
  const [core] = cpus()
  return `Measured on ${new Date().toISOString().slice(0, 10)}: ${cpus().length} cores (${core?.model.trim()}), Linux ${release()}, \
Node ${process.versions.node}${nginx ? `, nginx ${nginx}` : ''}. Medians of ${rounds} rounds of ${limits.take} s, after a warm-up of \
up to ${limits.heat} s. In each round with streams, at least one whole set of streams is measured from beginning to end.`
}

import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createKey } from '../../src/accounts/keys.ts'
import { percentile } from '../attack/report.ts'
import { ask, get, keepAsking, type Seen, tally } from './clients.ts'
import { judgeBooks } from './deaths.ts'
import type { LineState } from './line.ts'
import { untilSettled, watchReadiness } from './locked-rows.ts'
import { type Finding, finding, formatCounts, type Trial } from './report.ts'
import type { Payer, Replica, Setting } from './setting.ts'

const [refusedMs, unreadyMs, readyMs] = [2_200, 5_000, 4_000]
/** How long the database cannot be reached, in ms. */
const awayMs = 6_000
/** A little longer than the time after which debits that the database does not accept count as overdue, in ms. */
const overdueMs = 6_000

/** A fault of the database, and the way to end it. */
type Fault = {
  begin(setting: Setting, replicas: readonly Replica[]): void
  end(setting: Setting, replicas: readonly Replica[]): void
  /** Whether the database still answers during the fault. */
  isPassable?: boolean
}

const byLine = (state: LineState): Pick<Fault, 'begin' | 'end'> => ({
  begin: (_, replicas) => {
    for (const { line } of replicas) line.become(state)
  },
  end: (_, replicas) => {
    for (const { line } of replicas) line.become('passes')
  },
})

const signal = ({ postgres }: Setting, name: 'SIGSTOP' | 'SIGCONT') => {
  for (const pid of postgres.pids()) process.kill(pid, name)
}

const faults: Record<string, Fault> = {
  'PostgreSQL killed': {
    begin: ({ postgres }) => postgres.stop('immediate'),
    end: ({ postgres }) => postgres.start(),
  },
  'PostgreSQL frozen': {
    begin: (setting) => signal(setting, 'SIGSTOP'),
    end: (setting) => signal(setting, 'SIGCONT'),
  },
  'packets swallowed': byLine('swallows'),
  'accepted and hung up': byLine('hangs up'),
  'answers lost': byLine('loses answers'),
  'each packet 200 ms late': { ...byLine('late'), isPassable: true },
}

const isRoot = process.getuid?.() === 0

export const database: readonly Trial[] = [
  ...Object.entries(faults).map(
    ([name, fault]): Trial => ({
      name,
      demand:
        'refusals within 2.2 s and only 500; models list and token count go on; /readyz 503 within 5 s; 0 lost; ready ≤ 4 s after',
      run: (setting) => (fault.isPassable ? slowDown(setting, fault) : takeAway(setting, fault)),
    }),
  ),
  ...[false, true].map(
    (isLog): Trial => ({
      name: isLog ? 'disk full, the log needs more' : 'disk full',
      demand: isLog
        ? 'answers that run end, what comes is refused with 500 only, /readyz 503; 0 lost; ready ≤ 4 s after there is space'
        : 'answers that run end, what their account asks next is refused with 500 only, /readyz stays 200 since the spool takes the debits (ruling Y16); 0 lost; answered ≤ 4 s after there is space',
      options: {
        diskMb: isRoot ? 160 : undefined,
        settings: ['max_wal_size = 32MB', 'min_wal_size = 32MB', 'wal_recycle = off'],
      },
      run: (setting) => fillDisk(setting, isLog),
    }),
  ),
]

async function begin(setting: Setting): Promise<[Replica[], Payer]> {
  const payer = await setting.makePayer()
  return [await Promise.all([1, 2].map(() => setting.startReplica())), payer]
}

async function slowDown(setting: Setting, fault: Fault): Promise<Finding[]> {
  const [replicas, { key }] = await begin(setting)
  fault.begin(setting, replicas)
  const stop = keepAsking(
    () => replicas,
    () => ({ key }),
    30,
  )
  await pause(awayMs)
  fault.end(setting, replicas)
  const seen = await stop()
  const counts = tally(seen)
  return [
    finding(counts[200] === seen.length, `${formatCounts(counts)}, p99 ${ms(percentile(times(seen), 99))}`),
    ...(await judgeBooks(setting, seen)),
  ]
}

async function takeAway(setting: Setting, fault: Fault): Promise<Finding[]> {
  const [replicas, { key }] = await begin(setting)
  const stopBefore = keepAsking(
    () => replicas,
    () => ({ key }),
    60,
  )
  await pause(1_000)
  fault.begin(setting, replicas)
  const beganMs = performance.now()
  const unready = replicas.map((replica) => untilStatus(replica, 503, unreadyMs + 2_000))
  // Requests that ran already may end in any way. Later ones are answered, or refused in time.
  const before = await Promise.all([pause(300)]).then(stopBefore)
  const during: Promise<Seen>[] = []
  const sides: Promise<{ status: number; ms: number }>[] = []
  while (performance.now() - beganMs < awayMs) {
    for (const replica of replicas) {
      during.push(ask(replica, { key }))
      during.push(ask(replica, { key: unknownKey }))
      sides.push(get(`${replica.url}/v1/models`), count(replica, key))
    }
    await pause(200)
  }
  const refused = await Promise.all(during)
  const answered = await Promise.all(sides)
  fault.end(setting, replicas)
  const endedMs = performance.now()
  const ready = await Promise.all(replicas.map((replica) => untilStatus(replica, 200, 15_000)))
  const firstOk = await untilAnswered(replicas[0]!, key, endedMs)
  const counts = tally(refused)
  const late = refused.filter(({ status, ms }) => status !== 200 && ms > refusedMs)
  const told = (values: readonly (number | undefined)[]) => values.map((value) => ms(value)).join(', ')
  const others = Object.keys(counts).filter((status) => !['200', '500'].includes(status))
  return [
    finding(
      others.length === 0 && (counts[500] ?? 0) > 0,
      `${formatCounts(counts)}; before ${formatCounts(tally(before))}`,
    ),
    finding(late.length === 0, `refused within ${ms(Math.max(0, ...times(refused)))}`),
    finding(
      answered.every(({ status }) => status === 200),
      `models list and token count: ${formatCounts(Object.fromEntries([200, 429, 500, 0].map((status) => [status, answered.filter((one) => one.status === status).length])))}`,
    ),
    finding(
      (await Promise.all(unready)).every((at) => at !== undefined && at - beganMs <= unreadyMs),
      `/readyz 503 after ${told((await Promise.all(unready)).map((at) => at && at - beganMs))}`,
    ),
    finding(
      ready.every((at) => at !== undefined && at - endedMs <= readyMs),
      `ready after ${told(ready.map((at) => at && at - endedMs))}, answered after ${ms(firstOk)}`,
    ),
    ...(await judgeBooks(setting, [...before, ...refused])),
  ]
}

/**
 * Fills the disk of the database until debits are overdue, and then frees it.
 * @param isLog whether the write-ahead log needs another file meanwhile. Without space for it, the database ends itself
 */
async function fillDisk(setting: Setting, isLog: boolean): Promise<Finding[]> {
  if (!isRoot) return [finding(true, 'left out: only root can make a disk of its own')]
  const { postgres } = setting
  const [replicas, { key }] = await begin(setting)
  const load = () =>
    keepAsking(
      () => replicas,
      () => ({ key }),
      60,
    )
  const stopBefore = load()
  await pause(1_000)
  const before = await stopBefore()
  const filler = join(postgres.folder, 'data', 'filler')
  const during = load()
  const unready = isLog ? replicas.map((replica) => untilStatus(replica, 503, 30_000)) : [pause(overdueMs)]
  const watched = watchReadiness(replicas)
  const refill = setInterval(() => fill(filler), 50)
  const beganMs = performance.now()
  fill(filler)
  if (isLog) endLogFiles(setting)
  const at = await Promise.all(unready)
  await pause(4_000)
  const last = await Promise.all(replicas.map(({ adminUrl }) => get(`${adminUrl}/readyz`)))
  const readiness = await watched()
  clearInterval(refill)
  rmSync(filler)
  const endedMs = performance.now()
  // The database has ended itself because of the fault, so it is started again, as an operator would do.
  if (isLog) startAnew(setting)
  const ready = await Promise.all(replicas.map((replica) => untilStatus(replica, 200, 15_000)))
  const firstOk = await untilAnswered(replicas[0]!, key, endedMs)
  const seen = await during()
  await Promise.all(replicas.map(untilSettled))
  const counts = tally(seen)
  const others = Object.keys(counts).filter((status) => !['200', '500'].includes(status))
  const tell = (times: readonly (number | undefined)[], since: number) =>
    times.map((time) => ms(time && time - since)).join(', ')
  return [
    finding(others.length === 0 && (counts[500] ?? 0) > 0, formatCounts(counts)),
    finding(
      isLog
        ? at.every((time) => time !== undefined) && last.every(({ status }) => status === 503)
        : Object.keys(readiness).every((status) => status === '200'),
      isLog
        ? `/readyz 503 after ${tell(at as (number | undefined)[], beganMs)}`
        : `/readyz: ${formatCounts(readiness)}`,
    ),
    finding(
      [...ready.map((time) => time && time - endedMs), firstOk].every((time) => time !== undefined && time <= readyMs),
      `ready after ${tell(ready, endedMs)}, answered after ${ms(firstOk)}; ${countWords(replicas, 'ledger_trouble')}`,
    ),
    ...(await judgeBooks(setting, [...before, ...seen])),
  ]
}

function startAnew({ postgres }: Setting): void {
  try {
    postgres.stop('immediate')
  } catch {
    // The database ended by itself.
  }
  postgres.start()
}

/** Uses up the files of the write-ahead log that exist already, so that the database needs a new one. */
function endLogFiles({ postgres }: Setting): void {
  try {
    for (let i = 0; i < 8; i++) postgres.run("SELECT pg_logical_emit_message(false, 'full', 'one'), pg_switch_wal()")
  } catch {
    // The database has ended itself.
  }
}

/** Writes to a file until its disk is full. */
function fill(path: string): void {
  const piece = Buffer.alloc(65_536)
  const file = openSync(path, 'a')
  try {
    for (;;) if (writeSync(file, piece) === 0) return
  } catch {
    // The disk is full.
  } finally {
    closeSync(file)
  }
}

/** The texts that replicas logged for an event, each text once. */
function countWords(replicas: readonly Replica[], event: string): string {
  const told = new Set(replicas.flatMap((replica) => replica.readEvents(event).map(({ error }) => String(error))))
  return [...told].join('; ')
}

/** A well-formed key that nobody has. Only a look into the database shows that it is invalid. */
const unknownKey = createKey().key

async function count({ url }: Replica, key: string): Promise<{ status: number; ms: number }> {
  const begun = performance.now()
  const answer = await fetch(`${url}/v1/messages/count_tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sim-chat', messages: [{ role: 'user', content: 'Hello' }] }),
  }).catch(() => undefined)
  await answer?.text()
  return { status: answer?.status ?? 0, ms: performance.now() - begun }
}

/** @returns the time at which `/readyz` first had the status, by the clock of `performance` */
export async function untilStatus(
  { adminUrl }: Replica,
  status: number,
  patienceMs: number,
): Promise<number | undefined> {
  const begun = performance.now()
  while (performance.now() - begun < patienceMs) {
    if ((await get(`${adminUrl}/readyz`)).status === status) return performance.now()
    await pause(25)
  }
  return undefined
}

async function untilAnswered(replica: Replica, key: string, sinceMs: number): Promise<number | undefined> {
  while (performance.now() - sinceMs < 15_000) {
    if ((await ask(replica, { key })).status === 200) return performance.now() - sinceMs
    await pause(25)
  }
  return undefined
}

function times(seen: readonly Seen[]): number[] {
  return seen.map(({ ms }) => ms)
}

function ms(value: number | undefined): string {
  return value === undefined ? 'never' : `${Math.round(value)} ms`
}

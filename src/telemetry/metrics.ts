import { readdirSync, readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { missNanos } from '../catalog/model.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { CallRecord, RecordListener } from '../gateway/record.ts'
import type { Usage } from '../inference/usage.ts'
import { resultOf } from './attempt-results.ts'
import { writeExposition } from './exposition.ts'
import { type FamilyFacts, families, processFamilies } from './families.ts'
import { Counter, type Family, Histogram, Reading, withFourth } from './instruments.ts'

/** The metrics of a process, for scrapers. */
type Metrics = {
  /** Receives the record of a request. Must be called for every request. */
  note: RecordListener
  /** All families, in the order in which they are written. */
  readonly families: readonly Family[]
  /** Returns all metrics in the Prometheus text format, as the answer to a scrape. */
  write(): string
  /** Adds the metrics of this gateway. Called once. @param more metric families of other modules */
  watch(gateway: Gateway, more?: readonly Family[]): void
  /** Returns the 99th percentile of the event loop's delay over about the last minute, in ms. */
  readLagMs(): number
  stop(): void
}

/**
 * Creates the metrics of this process.
 * @param version the version of triwire
 * @param replica the name of this server among the servers of its store; undefined if it is the only one
 */
export function createMetrics(version: string, replica?: string): Metrics {
  const figures = createRequestFigures()
  const loop = watchLoop()
  const build = new Reading(families.build, (set) => set(1, version, process.version.slice(1)))
  const all: Family[] = [build, ...figures.families, ...processFigures(loop)]
  return {
    note: figures.note,
    families: all,
    write: () => writeExposition(all, replica),
    watch: (gateway, more = []) => void all.splice(1 + figures.families.length, 0, ...serviceFigures(gateway), ...more),
    readLagMs: () => loop.read().p99 * 1_000,
    stop: loop.stop,
  }
}

/** Makes the metrics of the whole process, including all its threads. */
function processFigures(loop: LoopWatch): Family[] {
  const startedSeconds = Math.round(Date.now() / 1_000 - process.uptime())
  const read: Record<keyof typeof processFamilies, () => number | undefined> = {
    cpuUser: () => process.cpuUsage().user / 1e6,
    cpuSystem: () => process.cpuUsage().system / 1e6,
    cpu() {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    },
    started: () => startedSeconds,
    resident: () => tryTo(() => process.memoryUsage.rss()),
    // The folder is itself open while it is read, so it is subtracted.
    openFds: () => tryTo(() => readdirSync('/proc/self/fd').length - 1),
    maxFds: () => tryTo(readMaxFds),
    lagMean: () => loop.read().mean,
    lagMax: () => loop.read().max,
    lagP50: () => loop.read().p50,
    lagP90: () => loop.read().p90,
    lagP99: () => loop.read().p99,
    heapTotal: () => tryTo(() => process.memoryUsage().heapTotal),
    heapUsed: () => tryTo(() => process.memoryUsage().heapUsed),
    external: () => tryTo(() => process.memoryUsage().external),
  }
  return Object.entries(read).map(([name, look]) => {
    return new Reading(processFamilies[name as keyof typeof processFamilies], (set) => {
      const value = look()
      if (value !== undefined) set(value)
    })
  })
}

function readMaxFds(): number | undefined {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
  return soft === undefined ? undefined : Number(soft)
}

/** Returns undefined if the system lacks the figure, or if no file descriptor is free to read it (faults F-P11). */
function tryTo(look: () => number | undefined): number | undefined {
  try {
    return look()
  } catch {
    return undefined
  }
}

/** The time between two measurements of the event loop, in ms. */
const resolutionMs = 20
/**
 * After each period of this length, in ms, the older of the two histograms is emptied. The other histogram is then the
 * older one. Only the older one is read, so its figures always cover the last 30 to 60 s.
 */
const turnMs = 30_000

/** The delay of the event loop, in seconds. */
type LoopLag = { mean: number; max: number; p50: number; p90: number; p99: number }

type LoopWatch = { read(): LoopLag; stop(): void }

/** Measures the delay of the event loop. */
function watchLoop(): LoopWatch {
  let [older, younger] = [open(), open()]
  const timer = setInterval(() => {
    older.reset()
    ;[older, younger] = [younger, older]
  }, turnMs)
  timer.unref()
  return {
    read: () => ({
      mean: lagOf(older.mean),
      max: lagOf(older.max),
      p50: lagOf(older.percentile(50)),
      p90: lagOf(older.percentile(90)),
      p99: lagOf(older.percentile(99)),
    }),
    stop() {
      clearInterval(timer)
      older.disable()
      younger.disable()
    },
  }
}

function open() {
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs })
  histogram.enable()
  return histogram
}

/**
 * Converts a measurement in ns to a delay in seconds. Node measures the time between two calls of a timer, so the
 * timer's interval is subtracted. An empty histogram has no percentile (NaN) and counts as 0.
 */
function lagOf(nanos: number): number {
  return Number.isFinite(nanos) ? Math.max(0, nanos / 1e9 - resolutionMs / 1_000) : 0
}

/** Metrics of requests. Each request is counted when it ends. */
type RequestFigures = { note(record: CallRecord): void; families: readonly Family[] }

/** Counts requests when their records are complete. So counting costs nothing while requests run. */
function createRequestFigures(): RequestFigures {
  const requests = new Counter(families.requests)
  const refusals = new Counter(families.refusals)
  const tokens = new Counter(families.tokens)
  const reasoningTokens = new Counter(families.reasoningTokens)
  const credits = new Counter(families.credits)
  const duration = new Histogram(families.duration)
  const firstByte = new Histogram(families.firstByte)
  const attempts = new Counter(families.attempts)
  const losses = new Counter(families.losses)
  const [fallbacks, doubts] = [new Counter(families.fallbacks), new Counter(families.doubts)]
  const [moved, movedCredits] = [new Counter(families.moved), new Counter(families.movedCredits)]
  const answers = { tokens, reasoningTokens, credits, duration, firstByte }
  const all = { requests, refusals, ...answers, attempts, fallbacks, moved, movedCredits, losses, doubts }
  return { note, families: Object.values(all) }

  function note(record: CallRecord): void {
    const { walk, model = '', outcome = 'ok', code } = record
    const wire = walk === 'infer' ? record.wire! : ''
    requests.add(1, wire, model, outcome)
    if (code !== undefined) refusals.add(1, code, reasonOf(record))
    if (walk !== 'infer') return
    if (record.status === 200) noteAnswer(record, wire, model)
    if (record.tries) for (const { upstream, cause, status } of record.tries) noteTry(upstream, cause, status)
    if (record.hops)
      for (const { from, to, cause } of record.hops) fallbacks.add(1, record.alias, from, withFourth(to, cause))
    if (record.moved) noteMove(record, record.moved, model)
    if (record.losses) for (const { field } of record.losses) losses.add(1, pairOf(record), nameOf(field))
    if (record.flags) for (const flag of record.flags) doubts.add(1, model, flag)
    // If the debit was refused, no money was booked.
    if (record.usage && record.settled !== 'refused') noteBill(record, record.usage, model)
  }

  function noteAnswer({ firstByteMs, endMs }: CallRecord, wire: string, model: string): void {
    if (firstByteMs !== undefined) firstByte.observe(firstByteMs / 1_000, wire, model)
    if (endMs !== undefined) duration.observe(endMs / 1_000, wire, model)
  }

  function noteTry(upstream: string, cause: string | undefined, status: number | undefined): void {
    const result = cause !== undefined ? resultOf(cause) : status === undefined ? 'abandoned' : 'ok'
    attempts.add(1, upstream, result)
  }

  function noteBill({ costNanos = 0n }: CallRecord, usage: Usage, model: string): void {
    addTokens(usage.inputTokens, model, 'input')
    addTokens(usage.cacheReadTokens, model, 'cache_read')
    addTokens(usage.cacheWriteTokens - usage.cacheWrite1hTokens, model, 'cache_write')
    addTokens(usage.cacheWrite1hTokens, model, 'cache_write_1h')
    addTokens(usage.outputTokens, model, 'output')
    if (usage.reasoningTokens > 0) reasoningTokens.add(usage.reasoningTokens, model)
    credits.add(Number(costNanos) / 1e9, model)
  }

  function noteMove({ usage, prices }: CallRecord, why: string, model: string): void {
    moved.add(1, model, why)
    if (usage && prices) movedCredits.add(Number(missNanos(prices, usage)) / 1e9, model)
  }

  function addTokens(count: number, model: string, kind: string): void {
    if (count > 0) tokens.add(count, model, kind)
  }
}

/** Returns the reason of a refusal as a fixed word. Several causes at upstreams have the same word. */
function reasonOf({ reason, cause }: CallRecord): string {
  if (reason !== undefined) return reason
  if (cause === undefined) return ''
  return cause.startsWith('upstream_') ? resultOf(cause) : cause
}

const pairs = new Map<string, Map<string, string>>()

/**
 * Returns the pair of wires as a label. The same string is reused, because a new one would be hashed at each lookup.
 */
function pairOf(record: CallRecord): string {
  const [wire, modelWire] = [record.wire!, record.modelWire!]
  const ofWire = pairs.get(wire) ?? new Map<string, string>()
  const pair = ofWire.get(modelWire) ?? `${wire}-to-${modelWire}`
  pairs.set(wire, ofWire.set(modelWire, pair))
  return pair
}

/** The longest name of a field, in characters. A longer name is counted as `other`. */
const fieldCharactersMax = 64

function nameOf(field: string): string {
  return field.length <= fieldCharactersMax ? field : 'other'
}

/** The most series for accounts and for keys. Monitoring systems accept no more from one process. */
const [accountsMax, keysMax] = [10_000, 10_000]

/** Makes the metrics of the service's present state and of the ledger's commits. */
function serviceFigures(gateway: Gateway): Family[] {
  const { deliveries, ledger, snapshots, directory, admission, lastAnswers } = gateway
  const commit = new Histogram(families.commit)
  ledger.onDurable((tookMs) => commit.observe(tookMs / 1_000))
  return [
    new Reading(families.requestsActive, (set) => set(deliveries.size)),
    new Reading(families.streamsActive, (set) => {
      let streams = 0
      for (const { record } of deliveries) if (record.stream) streams++
      set(streams)
    }),
    new Reading(families.held, (set) => {
      let nanos = 0n
      for (const { record } of deliveries) nanos += record.holdNanos ?? 0n
      set(Number(nanos) / 1e9)
    }),
    byResult(families.cooling, () => readInState(gateway, 'cooling')),
    byResult(families.onTrial, () => readInState(gateway, 'trial')),
    byResult(families.cooldowns, () => readCooldowns(gateway)),
    new Reading(families.credential, (set) => {
      const { config, keyOf } = snapshots.current
      for (const { name, accounts } of config.upstreams.values())
        for (const account of accounts) {
          const leftMs = keyOf(account).credential?.state.leftMs
          if (leftMs !== undefined) set(leftMs / 1_000, name, account.name)
        }
    }),
    new Reading(families.available, (set) => {
      for (const [model, count] of countAvailable(gateway)) set(count, model)
    }),
    new Reading(families.failing, (set) => {
      for (const { id } of snapshots.current.config.catalog.entries) set(lastAnswers.isFailing(id) ? 1 : 0, id)
    }),
    commit,
    new Reading(families.writable, (set) => set(ledger.whyBlocked() === undefined ? 1 : 0)),
    new Reading(families.blocked, (set) => set(ledger.backlog().blockedAccounts)),
    new Reading(families.waiting, (set) => set(ledger.backlog().waiting)),
    new Reading(families.oldest, (set) => set(ledger.backlog().oldestMs / 1_000)),
    new Reading(families.spooled, (set) => set(ledger.backlog().spooled)),
    new Reading(families.accountBalance, (set) => {
      if (!snapshots.current.config.metrics.accounts) return
      let left = accountsMax
      for (const { id, name } of directory.listKnown()) {
        if (left-- === 0) return
        const standing = admission.look(id)
        if (standing) set(Number(standing.balanceNanos) / 1e9, name)
      }
    }),
    new Reading(families.keyBudget, (set) => {
      if (!snapshots.current.config.metrics.keys) return
      for (const { account, name, ratio } of readBudgets(gateway)) set(ratio, account, name)
    }),
  ]
}

type UsedBudget = { account: string; name: string; ratio: number }

/**
 * Lists the used share of each budget. A rotated key and its successors share one budget. The budget gets the name of
 * the key that the directory lists last.
 */
function readBudgets({ directory, admission }: Gateway): Iterable<UsedBudget> {
  const used = new Map<string, UsedBudget>()
  for (const { bounds, label, prefix, account } of directory.listKnownKeys()) {
    const { budget } = bounds ?? {}
    if (bounds === undefined || budget === undefined || (used.size >= keysMax && !used.has(bounds.scope))) continue
    const spent = budget.nanos - admission.lookBudget({ ...bounds, budget })
    const name = label === undefined ? prefix : `${label} (${prefix})`
    used.set(bounds.scope, { account: account.name, name, ratio: Number(spent) / Number(budget.nanos) })
  }
  return used.values()
}

type CauseCount = readonly [upstream: string, cause: string, count: number]

/** Makes a metric family that counts causes, with one series for each upstream and result. */
function byResult(facts: FamilyFacts, read: () => CauseCount[]): Family {
  return new Reading(facts, (set) => {
    const sums = new Map<string, Map<string, number>>()
    for (const [upstream, cause, count] of read()) {
      const results = sums.get(upstream) ?? new Map<string, number>()
      const result = resultOf(cause)
      sums.set(upstream, results.set(result, (results.get(result) ?? 0) + count))
    }
    for (const [upstream, results] of sums) for (const [result, count] of results) set(count, upstream, result)
  })
}

/** Counts how often this process put an upstream account into cooldown. */
function readCooldowns({ snapshots }: Gateway): CauseCount[] {
  const { cooldowns } = snapshots.current.pool
  return [...cooldowns].flatMap(([upstream, causes]) =>
    Array.from(causes, ([cause, count]): CauseCount => [upstream, cause, count]),
  )
}

/** Counts the upstream accounts that are cooling down, or on trial. */
function readInState({ snapshots }: Gateway, wanted: 'cooling' | 'trial'): CauseCount[] {
  const { pool, config } = snapshots.current
  const rows = pool.list(config.catalog.entries).filter(({ state }) => state === wanted)
  return rows.map(({ upstream, cause = '' }) => [upstream, cause, 1])
}

/** Counts usable upstream accounts for every model of the catalog. A model without a usable account has the count 0. */
function countAvailable({ snapshots }: Gateway): Map<string, number> {
  const { pool, config } = snapshots.current
  const counts = new Map(config.catalog.entries.map(({ id }) => [id, 0]))
  for (const { model, state } of pool.list(config.catalog.entries)) {
    // After its cooldown an account is on trial, so the next request tries it. Therefore it counts as usable.
    if (state === 'ready' || state === 'trial') counts.set(model, counts.get(model)! + 1)
  }
  return counts
}

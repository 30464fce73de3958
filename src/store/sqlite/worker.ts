/*
 * The ledger's thread. SQLite blocks the thread that waits for it, so the server's only connection belongs to this
 * thread. `queue.ts` has the work for the ledger, and `connection.ts` repairs the connection after a failure.
 */
import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { StoreSilent } from '../../accounts/account.ts'
import { type ClockNews, ClockWatch } from '../../accounts/clock.ts'
import type { FoundDebit } from '../../accounts/entries.ts'
import { foldEveryMs, type Reporting } from '../../accounts/usage/reporting.ts'
import { refuseNarrowDisk } from '../files/place.ts'
import { createSteadyClock } from '../files/steady-clock.ts'
import { DamageError, explainErrors, StoreError } from '../files/store-error.ts'
import { type Answers, formThreeBegun, openThreadEnd, unpackDebit } from '../serving/thread.ts'
import { createFeed } from './accounts.ts'
import { busyCode, Connection, type ConnectionNews, type RunOutcome } from './connection.ts'
import { watchFiles } from './file-watch.ts'
import { Folder } from './folder.ts'
import { Queue } from './queue.ts'
import { drainSpool, openStore, type Store } from './store.ts'

export type WorkerOptions = {
  path: string
  busyMs: number
  pollMs: number
  /** How often new entries are summed into figures, in ms. Undefined means the usual interval. */
  foldMs?: number | undefined
  /** Whether to post the debits that an earlier run left in the spool. Only a server's first worker does so. */
  drainsSpool: boolean
  /** The time zone of the days in reports, and how long figures for reports are kept. */
  reporting: Reporting
  /**
   * How far the wall clock and the steady clock were apart when the previous thread accepted the wall clock (ruling
   * Y15).
   */
  offsetMs?: number | undefined
  /** For tests: the ms to add to the wall clock and to the steady clock. */
  turned?: Float64Array | undefined
}

const { path, busyMs, pollMs, foldMs, drainsSpool, reporting, offsetMs, turned = [0, 0] } = workerData as WorkerOptions
const { say, serve, flush } = openThreadEnd()
const runMs = createSteadyClock()
const nowMs = () => Date.now() + turned[0]!
const clock = new ClockWatch(() => runMs() + turned[1]!, offsetMs)
let troubleMs = Number.NEGATIVE_INFINITY

/** The largest file that the start checks, in about half a second. Only `ledger verify` checks a larger file. */
const lookThroughBytes = 67_108_864

try {
  explainErrors(path, start)
} catch (error) {
  const refusal = new StoreError((error as Error).message)
  // After `close` the server waits until this thread ends. So the thread exits at once, even if `start` left work open.
  serve({ answers: { open: () => Promise.reject(refusal), close: async () => process.exit() } })
}

function start(): void {
  const onBegun = () => say('log', formThreeBegun)
  const options = { busyMs, isServer: true, create: false, zone: reporting, nowMs, onBegun }
  const store = openStore(path, { ...options, create: true })
  const files = watchFiles(path)
  files.note()
  refuseDamage(store)
  // A thread that replaces another one does not check the zone, because the first thread has checked it.
  if (drainsSpool) store.refuseOtherZone(reporting.timeZone, path)
  const connection = new Connection({ store, reopen: () => openStore(path, options), files, say: report })
  let isDrained = !drainsSpool
  const { newestMs } = judge(store)
  let feed = createFeed()
  drain(store)
  readFeed(store)
  const accounts = store.findMisfits()
  const fields = { accounts, cure: 'run triwire ledger verify' }
  if (accounts.length) say('log', { level: 'error', event: 'ledger_mismatch', fields })
  // `Folder` makes the first commit. If this commit fails, the connection is opened again. `Folder` judges which
  // figures are old by the time of an accepted clock, or else by the time of the newest entry.
  const keptMs = () => clock.expectedMs ?? newestMs ?? nowMs()
  const folder = new Folder({ connection, reporting, say: report, nowMs: keptMs, everyMs: foldMs ?? foldEveryMs })
  const mayDate = () => isDrained && clock.believes(nowMs())
  const queue = new Queue({ connection, later, mayDate, refuseNarrowDisk: () => refuseNarrowDisk(dirname(path)) })
  const poll = setInterval(() => {
    if (clock.isDue(nowMs())) connection.read(judge)
    if (!isDrained) connection.write(drain)
    look()
  }, pollMs)
  const answers: Partial<Answers> = {
    open: async () => ({ isReached: true }),
    post(debits) {
      folder.note(debits.length)
      return queue.post(debits.map(unpackDebit))
    },
    withdraw: async (debits) => queue.withdraw(debits),
    giveBack: (requestIds) => queue.giveBack(requestIds),
    async findDebit(requestId) {
      let debit: FoundDebit | undefined
      const outcome = connection.read((opened) => {
        debit = opened.atOnce.findDebit(requestId)
      })
      refuseUnread(outcome)
      return debit
    },
    lookUp: async () => refuseUnread(look()),
    traffic: async (cells) => folder.noteTraffic(cells),
    async close() {
      clearInterval(poll)
      queue.close()
      folder.close()
      connection.close()
      // The last answers are sent before the port closes.
      setImmediate(() => parentPort!.close())
    },
  }
  serve({ answers, orders: { uses: (uses) => connection.write((opened) => opened.touchKeys(uses)) } })

  /** Reads changes that the command line made. They take effect within a second (F-C45). */
  function look(): RunOutcome {
    return connection.read(readFeed)
  }

  /** Sends changes page by page, so that this thread never holds the keys of a whole store. */
  function readFeed(opened: Store): void {
    for (const { accounts, keys, hasForeignKeys } of feed.read(opened)) {
      if (accounts.length === 0) continue
      say('changes', { accounts, keys, hasForeignKeys, isAnew: false })
      flush()
    }
  }

  function judge(opened: Store): ClockNews {
    const news = clock.judge(opened.readClock())
    say('clock', news)
    return news
  }

  /** Posts the spool once. While the clock is in doubt, posts nothing, because the clock dates entries (ruling Y15). */
  function drain(opened: Store): void {
    if (isDrained || !clock.believes(nowMs())) return
    const recovery = drainSpool(path, opened, () => connection.makeDurable())
    isDrained = true
    say('drained', undefined)
    if (!recovery) return
    say('log', { level: recovery.aside ? 'error' : 'info', event: 'crash_recovery', fields: { ...recovery } })
    // Balances and spending that were sent before lack these debits, so the next reading sends all accounts again.
    feed = createFeed()
  }
}

function refuseUnread(outcome: RunOutcome): undefined {
  if (outcome !== 'done') throw new StoreSilent('the store cannot be read')
}

/** Reports trouble at most once a second. A locked file causes fifty failed tries in a second. */
function report(news: ConnectionNews): void {
  const runningMs = performance.now()
  if (news.type === 'lost') say('lost', { message: news.message })
  else if (runningMs - troubleMs >= 1_000) {
    troubleMs = runningMs
    const event = news.code === busyCode ? 'ledger_busy' : 'ledger_trouble'
    say('trouble', { event, fields: { error: news.message } })
  }
}

/** Refuses a damaged file (faults F-S6). */
function refuseDamage(store: Store): void {
  if (statSync(path).size > lookThroughBytes) return
  const damage = store.findDamage()
  if (damage !== undefined) throw new DamageError(`${path} is damaged (${damage}): restore a backup`)
}

/** Runs a function after a pause. Without `pauseMs`, the messages that have already arrived are handled first. */
function later(run: () => void, pauseMs?: number): void {
  if (pauseMs === undefined) setImmediate(run)
  else setTimeout(run, pauseMs)
}

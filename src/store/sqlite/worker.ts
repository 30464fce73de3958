/*
 * The ledger's thread. It owns the server's one connection, because SQLite waits by blocking its thread. `queue.ts` has the
 * work for the ledger, `connection.ts` the cures of a connection after a failure.
 */
import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { type ClockNews, ClockWatch } from '../../accounts/clock.ts'
import type { FoundDebit } from '../../accounts/entries.ts'
import { foldEveryMs } from '../../accounts/usage/reporting.ts'
import { DamageError, explainErrors } from '../files/cures.ts'
import { refuseNarrowDisk } from '../files/place.ts'
import { createSteadyClock } from '../files/steady-clock.ts'
import { Connection } from './connection.ts'
import { drainSpool } from './drain-spool.ts'
import { createFeed } from './feed.ts'
import { watchFiles } from './file-watch.ts'
import { Folder } from './folder.ts'
import { Queue } from './queue.ts'
import { openStore, type Store } from './store.ts'
import type { FromLedgerThread, ToLedgerThread, WorkerOptions } from './thread-messages.ts'

const { path, busyMs, pollMs, foldMs, drainsSpool, reporting, offsetMs, turned = [0, 0] } = workerData as WorkerOptions
const port = parentPort!
const runMs = createSteadyClock()
const nowMs = () => Date.now() + turned[0]!
const clock = new ClockWatch(() => runMs() + turned[1]!, offsetMs)

/** A file up to here is looked through at the start, which takes half a second or so; a larger one by `ledger verify` only. */
const lookThroughBytes = 67_108_864

try {
  explainErrors(path, start)
} catch (error) {
  // A clone of an error keeps its message and not its class.
  say({ type: 'refused', error: error as Error })
  // Whatever was begun by then: what is left of it must not keep the thread, for whose end the server waits.
  process.exit()
}

function start(): void {
  const options = { busyMs, isServer: true, create: false, zone: reporting, nowMs }
  const store = openStore(path, { ...options, create: true })
  const files = watchFiles(path)
  files.note()
  refuseDamage(store)
  // A thread that follows one which died goes on: whose days they are was judged at the start.
  if (drainsSpool) store.refuseOtherZone(reporting.timeZone, path)
  const connection = new Connection({ store, reopen: () => openStore(path, options), files, say })
  let isDrained = !drainsSpool
  const { newestMs } = judge(store)
  drain(store)
  const feed = createFeed()
  const [changes, misfits] = [feed.read(store)!, store.findMisfits()]
  // This commit is the first to write, and if it fails this store is closed. A clock in doubt deletes no figures of
  // reports.
  const keptMs = () => clock.expectedMs ?? newestMs ?? nowMs()
  const folder = new Folder({ connection, reporting, say, nowMs: keptMs, everyMs: foldMs ?? foldEveryMs })
  say({ type: 'ready', changes, misfits })
  const mayDate = () => isDrained && clock.believes(nowMs())
  const queue = new Queue({ connection, say, later, mayDate, refuseNarrowDisk: () => refuseNarrowDisk(dirname(path)) })
  const poll = setInterval(() => {
    look()
    if (clock.isDue(nowMs())) connection.read(judge)
    if (!isDrained) connection.write(drain)
  }, pollMs)
  port.on('message', (message: ToLedgerThread) => {
    if (message.type === 'post') {
      queue.post(message.debits)
      folder.note(message.debits.length)
    } else if (message.type === 'traffic') say({ type: 'counted', isWritten: folder.noteTraffic(message.cells) })
    else if (message.type === 'withdraw') queue.withdraw(message.debits)
    else if (message.type === 'giveBack') queue.giveBack(message.requestIds)
    else if (message.type === 'look') say({ type: 'looked', isRead: look() })
    else if (message.type === 'find') find(message.requestId)
    else if (message.type === 'uses') connection.write((opened) => opened.touchKeys(message.uses))
    else {
      clearInterval(poll)
      queue.close()
      folder.close()
      connection.close()
      port.close()
    }
  })

  /** Changes of the command line count here within a second (F-C45). @returns false when they cannot be read */
  function look(): boolean {
    const outcome = connection.read((opened) => {
      const changes = feed.read(opened)
      if (changes?.accounts.length) say({ type: 'changes', changes })
    })
    return outcome === 'done'
  }

  function judge(opened: Store): ClockNews {
    const news = clock.judge(opened.readClock())
    say({ type: 'clock', news })
    return news
  }

  /** A clock in doubt dates nothing of the spool either (ruling Y15). */
  function drain(opened: Store): void {
    if (isDrained || !clock.believes(nowMs())) return
    say({ type: 'drained', recovery: drainSpool(path, opened, () => connection.makeDurable()) })
    isDrained = true
  }

  function find(requestId: string): void {
    let debit: FoundDebit | undefined
    const outcome = connection.read((opened) => {
      debit = opened.atOnce.findDebit(requestId)
    })
    say({ type: 'found', isRead: outcome === 'done', debit })
  }
}

/** Half a page is no ledger (faults F-S6). */
function refuseDamage(store: Store): void {
  if (statSync(path).size > lookThroughBytes) return
  const damage = store.findDamage()
  if (damage !== undefined) throw new DamageError(`${path} is damaged (${damage}): restore a backup`)
}

/** Every message that has already come is read before an immediate runs. */
function later(run: () => void, pauseMs?: number): void {
  if (pauseMs === undefined) setImmediate(run)
  else setTimeout(run, pauseMs)
}

function say(message: FromLedgerThread): void {
  port.postMessage(message)
}

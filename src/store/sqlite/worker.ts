/*
 * The ledger's thread. It owns the server's one connection, because SQLite waits by blocking its thread. All debits that
 * have come by the time it turns to them share one transaction, hence one sync of the disk.
 *
 * A debit stays queued until a commit that held it has returned. After a failed commit nobody knows what is on the disk:
 * the file is opened anew and the same debits are posted again; their request ids make that harmless (F-S3).
 */
import { statSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import type { DebitRow, Posted, Posting } from '../../accounts/poster.ts'
import type { Changes } from './accounts.ts'
import { createFeed } from './feed.ts'
import { explainErrors, resultCode } from './open.ts'
import { readSpool, retireSpool, spoolPath } from './spool.ts'
import { openStore, type Store } from './store.ts'

export type WorkerOptions = {
  path: string
  busyMs: number
  pollMs: number
  /** At the process' start, and not after the death of a worker: then the client still has what it spooled. */
  drainsSpool: boolean
}

export type ToWorker =
  /** Answered by `posted`, all such messages in their order. */
  | { type: 'post'; debits: readonly DebitRow[] }
  /** Answered by `looked`, behind the `changes` that it brings. */
  | { type: 'look' }
  | { type: 'uses'; uses: [keyId: string, usedMs: number][] }
  | { type: 'close' }

export type Recovery = {
  posted: number
  known: number
  rejected: number
  unreadable: number
  aside: string | undefined
}

export type FromWorker =
  | { type: 'ready'; changes: Changes; recovery: Recovery | undefined; misfits: string[] }
  | { type: 'refused'; error: Error }
  /** One commit: what became of each debit of the oldest messages that were not answered, and the balances after it. */
  | { type: 'posted'; batches: Posting[][]; balances: Posted['balances'] }
  | { type: 'changes'; changes: Changes }
  /** False: the store could not be read. */
  | { type: 'looked'; isRead: boolean }
  | { type: 'trouble'; message: string; code: number }
  /** The file is gone or another one stands in its place: what is committed now would be lost. */
  | { type: 'lost'; message: string }

const { path, busyMs, pollMs, drainsSpool } = workerData as WorkerOptions
const port = parentPort!
const busyPauseMs = 20
const reopenPauseMs = 250

const feed = createFeed()

let store: Store | undefined
let file = 0
let batches: (readonly DebitRow[])[] = []
let isScheduled = false
let isLost = false

try {
  explainErrors(path, start)
} catch (error) {
  // A clone of an error keeps its message and not its class.
  say({ type: 'refused', error: error as Error })
  port.close()
}

function start(): void {
  store = openStore(path, { busyMs, isServer: true })
  file = statSync(path).ino
  const recovery = drainsSpool ? drainSpool(store) : undefined
  const misfits = store.findMisfits()
  say({ type: 'ready', changes: feed.read(store)!, recovery, misfits })
  const poll = setInterval(readChanges, pollMs)
  port.on('message', (message: ToWorker) => {
    if (message.type === 'post') enqueue(message.debits)
    else if (message.type === 'look') say({ type: 'looked', isRead: readChanges() })
    else if (message.type === 'uses') noteUses(message.uses)
    else {
      clearInterval(poll)
      flush()
      store?.close()
      port.close()
    }
  })
}

/** Exactly once: what the crashed run had posted all the same is known by its request id. */
function drainSpool(store: Store): Recovery | undefined {
  const { debits, unreadable } = readSpool(spoolPath(path))
  if (!debits.length && !unreadable) return undefined
  const postings = store.postDebits(debits)
  const count = (...kinds: Posting[]) => postings.filter((posting) => kinds.includes(posting)).length
  const rejected = count('rejected', 'conflict')
  const aside = retireSpool(spoolPath(path), rejected + unreadable === 0)
  return { posted: count('posted'), known: count('exists'), rejected, unreadable, aside }
}

function enqueue(debits: readonly DebitRow[]): void {
  batches.push(debits)
  schedule()
}

/** Every message that has already come is read before an immediate runs. */
function schedule(pauseMs?: number): void {
  if (isScheduled) return
  isScheduled = true
  const run = () => {
    isScheduled = false
    flush()
  }
  if (pauseMs === undefined) setImmediate(run)
  else setTimeout(run, pauseMs)
}

function flush(): void {
  if (!batches.length || isLost) return
  try {
    store ??= openStore(path, { busyMs, create: false, isServer: true })
    if (isFileLost()) return
    const debits = batches.flat()
    const postings = store.postDebits(debits)
    const balances = store.readBalances(new Set(debits.map((debit) => debit.accountId)))
    const lengths = batches.map(({ length }) => length)
    batches = []
    say({ type: 'posted', batches: lengths.map((length) => postings.splice(0, length)), balances })
  } catch (error) {
    recover(error)
  }
}

function recover(error: unknown): void {
  const code = resultCode(error) || resultCode((error as Error).cause)
  say({ type: 'trouble', message: (error as Error).message, code })
  const isBusy = code === 5
  if (!isBusy) closeStore()
  if (batches.length) schedule(isBusy ? busyPauseMs : reopenPauseMs)
}

function closeStore(): void {
  try {
    store?.close()
  } catch {
    // It is replaced by a new connection either way.
  }
  store = undefined
}

function isFileLost(): boolean {
  if (statSync(path, { throwIfNoEntry: false })?.ino === file) return false
  isLost = true
  say({ type: 'lost', message: `${path} was removed or replaced while the server runs` })
  return true
}

/** What the command line changed counts here within a second (F-C45). @returns false when it cannot be known. */
function readChanges(): boolean {
  try {
    if (isLost || isFileLost()) return false
    store ??= openStore(path, { busyMs, create: false, isServer: true })
    const changes = feed.read(store)
    if (changes?.accounts.length) say({ type: 'changes', changes })
    return true
  } catch (error) {
    recover(error)
    return false
  }
}

function noteUses(uses: [keyId: string, usedMs: number][]): void {
  try {
    if (!isLost) store?.touchKeys(uses)
  } catch (error) {
    recover(error)
  }
}

function say(message: FromWorker): void {
  port.postMessage(message)
}

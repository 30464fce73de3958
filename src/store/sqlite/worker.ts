/*
 * The ledger's thread. It owns the server's one connection, because SQLite waits by blocking its thread. All debits that
 * have come by the time it turns to them share one transaction, hence one sync of the disk.
 *
 * A debit stays queued until a commit that held it has returned. After a failed commit nobody knows what is on the disk:
 * the file is opened anew and the same debits are posted again; their request ids make that harmless (F-S3).
 */
import { statSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import type { Changes } from './accounts.ts'
import type { DebitRow, Posting } from './entries.ts'
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
  | { type: 'debits'; debits: DebitRow[] }
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
  /** One commit: what became of each debit, and the balances after it. */
  | {
      type: 'posted'
      postings: [requestId: string, posting: Posting][]
      balances: [accountId: string, nanos: bigint][]
    }
  | { type: 'changes'; changes: Changes }
  | { type: 'trouble'; message: string; code: number }
  /** The file is gone or another one stands in its place: what is committed now would be lost. */
  | { type: 'lost'; message: string }

const { path, busyMs, pollMs, drainsSpool } = workerData as WorkerOptions
const port = parentPort!
const busyPauseMs = 20
const reopenPauseMs = 250

let store: Store | undefined
let file = 0
let queue: DebitRow[] = []
let isScheduled = false
let isLost = false
let revision = -1n
let dataVersion = 0n

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
  say({ type: 'ready', changes: readChanges(store), recovery, misfits })
  const poll = setInterval(pollChanges, pollMs)
  port.on('message', (message: ToWorker) => {
    if (message.type === 'debits') enqueue(message.debits)
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

function enqueue(debits: DebitRow[]): void {
  queue = queue.concat(debits)
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
  if (!queue.length || isLost) return
  try {
    store ??= openStore(path, { busyMs, create: false, isServer: true })
    if (isFileLost()) return
    const postings = store.postDebits(queue)
    const debits = queue
    const balances = store.readBalances(new Set(debits.map((debit) => debit.accountId)))
    queue = []
    say({
      type: 'posted',
      postings: debits.map((debit, index) => [debit.requestId, postings[index]!]),
      balances,
    })
  } catch (error) {
    recover(error)
  }
}

function recover(error: unknown): void {
  const code = resultCode(error) || resultCode((error as Error).cause)
  say({ type: 'trouble', message: (error as Error).message, code })
  const isBusy = code === 5
  if (!isBusy) closeStore()
  if (queue.length) schedule(isBusy ? busyPauseMs : reopenPauseMs)
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

/** What the command line changed, a key revoked for instance, counts here within a second (F-C45). */
function pollChanges(): void {
  try {
    if (isLost || isFileLost()) return
    store ??= openStore(path, { busyMs, create: false, isServer: true })
    if (store.readDataVersion() !== dataVersion) {
      const changes = readChanges(store)
      if (changes.accounts.length) say({ type: 'changes', changes })
    }
  } catch (error) {
    recover(error)
  }
}

function readChanges(store: Store): Changes {
  // First the version: a change that comes between the two is then read twice and not missed.
  dataVersion = store.readDataVersion()
  const changes = store.readChanges(revision)
  revision = changes.revision
  return changes
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

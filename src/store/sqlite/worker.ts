/*
 * The ledger's thread. It owns the server's one connection, because SQLite waits by blocking its thread. All debits that
 * have come by the time it turns to them share one transaction, hence one sync of the disk.
 *
 * A debit stays queued until a commit that held it has returned. After a failed commit nobody knows what is on the disk:
 * the file is opened anew, what its log has is made durable, and the same debits are posted again; their request ids make
 * that harmless (F-S3), and what is found of them then is on the disk (B8).
 */
import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import type { FoundDebit } from '../../accounts/entries.ts'
import type { DebitRow, Posted, Posting, Withdrawn } from '../../accounts/poster.ts'
import type { Changes } from './accounts.ts'
import { createFeed } from './feed.ts'
import { watchFiles } from './file-watch.ts'
import { DamageError, explainErrors, resultCode } from './open.ts'
import { refuseNarrowDisk } from './place.ts'
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
  /** Answered by `withdrawn`. */
  | { type: 'withdraw'; debits: readonly DebitRow[] }
  /** Answered by `givenBack`, all such messages in their order. */
  | { type: 'giveBack'; requestIds: readonly string[] }
  /** Answered by `looked`, behind the `changes` that it brings. */
  | { type: 'look' }
  /** Answered by `found`, all such messages in their order. */
  | { type: 'find'; requestId: string }
  | { type: 'uses'; uses: [keyId: string, usedMs: number][] }
  | { type: 'close' }

export type Recovery = {
  posted: number
  known: number
  /** Debits that were in the database and whose clients had been refused (ruling C13). */
  returned: number
  rejected: number
  unreadable: number
  aside: string | undefined
}

export type FromWorker =
  | { type: 'ready'; changes: Changes; recovery: Recovery | undefined; misfits: string[] }
  | { type: 'refused'; error: Error }
  /** One commit: what became of each debit of the oldest messages that were not answered, and the balances after it. */
  | { type: 'posted'; batches: Posting[][]; balances: Posted['balances'] }
  | ({ type: 'withdrawn' } & Withdrawn)
  /** One commit: which debits of the oldest messages that were not answered are given back, and the balances after it. */
  | { type: 'givenBack'; batches: string[][]; balances: Posted['balances'] }
  | { type: 'changes'; changes: Changes }
  /** False: the store could not be read. */
  | { type: 'looked'; isRead: boolean }
  | { type: 'found'; isRead: boolean; debit: FoundDebit | undefined }
  | { type: 'trouble'; message: string; code: number }
  /** A file of the store is gone or another one stands in its place: what is committed now would be lost. */
  | { type: 'lost'; message: string }

const { path, busyMs, pollMs, drainsSpool } = workerData as WorkerOptions
const port = parentPort!
const busyPauseMs = 20
const reopenPauseMs = 250

/** A file up to here is looked through at the start, which takes half a second or so; a larger one by `ledger verify` only. */
const lookThroughBytes = 67_108_864

const feed = createFeed()
const files = watchFiles(path)

let store: Store | undefined
/** A sync has failed, or a run before this one may have seen one fail: what is in the log need not be on the disk. */
let isSuspect = true
let isClosing = false
let batches: (readonly DebitRow[])[] = []
/** Of debits in `batches` those that are not to be posted any more (ruling C13). */
const withdrawn = new Set<string>()
/** Requests whose debits are to be given back where the ledger has them. */
let gifts: (readonly string[])[] = []
/**
 * A commit has failed, here or before this thread, and none has written since: the log may have more than the database
 * shows, and a later recovery may find it.
 */
let mayHideCommit = true
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
  const first = reopen(true)
  refuseDamage(first)
  tryMakeDurable(first)
  const recovery = drainsSpool ? drainSpool(first) : undefined
  const misfits = first.findMisfits()
  say({ type: 'ready', changes: feed.read(first)!, recovery, misfits })
  const poll = setInterval(readChanges, pollMs)
  port.on('message', (message: ToWorker) => {
    if (message.type === 'post') enqueue(message.debits)
    else if (message.type === 'withdraw') withdraw(message.debits)
    else if (message.type === 'giveBack') enqueueGift(message.requestIds)
    else if (message.type === 'look') say({ type: 'looked', isRead: readChanges() })
    else if (message.type === 'find') say({ type: 'found', ...find(message.requestId) })
    else if (message.type === 'uses') noteUses(message.uses)
    else {
      clearInterval(poll)
      close()
    }
  })
}

/** One more try for what waits. Who asked for the end has spooled it or will, and nothing keeps the thread (B14). */
function close(): void {
  isClosing = true
  flush()
  // In closing SQLite clears the log away, by its name: where the name is another's by now, it is left alone.
  if (!isLost) closeStore()
  port.close()
}

function reopen(create = false): Store {
  if (store) return store
  store = openStore(path, { busyMs, create, isServer: true })
  files.note()
  return store
}

/** Half a page is no ledger (faults F-S6). */
function refuseDamage(store: Store): void {
  if (statSync(path).size > lookThroughBytes) return
  const damage = store.findDamage()
  if (damage !== undefined) throw new DamageError(`${path} is damaged (${damage}): restore a backup`)
}

function makeDurable(store: Store): void {
  if (!isSuspect) return
  store.makeDurable()
  isSuspect = false
}

/** What stands in the way, another process with the lock perhaps, is met again by the first debit. */
function tryMakeDurable(store: Store): void {
  try {
    makeDurable(store)
  } catch {
    // It stays suspect.
  }
}

/** Exactly once: what the crashed run had posted all the same is known by its request id. */
function drainSpool(store: Store): Recovery | undefined {
  const { debits, returns, unreadable } = readSpool(spoolPath(path))
  if (!debits.length && !returns.length && !unreadable) return undefined
  // What is found posted is taken out of the spool.
  makeDurable(store)
  const postings = store.postDebits(debits)
  const returned = returns.length ? store.giveBack(returns).length : 0
  const count = (...kinds: Posting[]) => postings.filter((posting) => kinds.includes(posting)).length
  const rejected = count('rejected', 'conflict')
  const aside = retireSpool(spoolPath(path), rejected + unreadable === 0)
  return { posted: count('posted'), known: count('exists'), returned, rejected, unreadable, aside }
}

function enqueue(debits: readonly DebitRow[]): void {
  batches.push(debits)
  schedule()
}

function enqueueGift(requestIds: readonly string[]): void {
  gifts.push(requestIds)
  schedule()
}

/** No try is under way while a message is heard: what is not in the ledger now was never acknowledged. */
function withdraw(debits: readonly DebitRow[]): void {
  for (const { requestId } of debits) withdrawn.add(requestId)
  say({ type: 'withdrawn', ...findFates(debits) })
}

function findFates(debits: readonly DebitRow[]): Withdrawn {
  try {
    if (!isLost && !isStoreLost()) {
      const opened = reopen()
      makeDurable(opened)
      const unless = mayHideCommit ? 'unknown' : 'absent'
      const fates = debits.map(({ requestId }) => (opened.isBooked(requestId) ? 'booked' : unless))
      return { fates, balances: opened.readBalances(new Set(debits.map(({ accountId }) => accountId))) }
    }
  } catch (error) {
    recover(error)
  }
  return { fates: debits.map(() => 'unknown'), balances: [] }
}

/** Every message that has already come is read before an immediate runs. */
function schedule(pauseMs?: number): void {
  if (isScheduled || isClosing) return
  isScheduled = true
  const run = () => {
    isScheduled = false
    flush()
  }
  if (pauseMs === undefined) setImmediate(run)
  else setTimeout(run, pauseMs)
}

function flush(): void {
  if ((!batches.length && !gifts.length) || isLost) return
  try {
    const opened = reopen()
    if (isStoreLost()) return
    makeDurable(opened)
    if (batches.length) post(opened)
    if (gifts.length) giveBack(opened)
  } catch (error) {
    recover(error)
  }
}

function post(opened: Store): void {
  const given = batches.flat()
  const debits = withdrawn.size ? given.filter(({ requestId }) => !withdrawn.has(requestId)) : given
  let postings = opened.postDebits(debits)
  const balances = opened.readBalances(new Set(debits.map((debit) => debit.accountId)))
  if (mayHideCommit && postings.includes('posted')) mayHideCommit = false
  if (withdrawn.size) {
    const posted = postings.values()
    postings = given.map(({ requestId }) => (withdrawn.has(requestId) ? 'withdrawn' : posted.next().value!))
    withdrawn.clear()
  }
  const lengths = batches.map(({ length }) => length)
  batches = []
  say({ type: 'posted', batches: lengths.map((length) => postings.splice(0, length)), balances })
}

/** Answered once it is durable, and debits would be too: a page finds a place on a full disk that an entry does not find. */
function giveBack(opened: Store): void {
  const returned = new Set(opened.giveBack(gifts.flat()))
  refuseNarrowDisk(dirname(path))
  mayHideCommit = false
  const accountIds = Array.from(returned, (requestId) => opened.findEntry(requestId)!.accountId)
  const balances = opened.readBalances(new Set(accountIds))
  const answers = gifts.map((requestIds) => requestIds.filter((requestId) => returned.has(requestId)))
  gifts = []
  say({ type: 'givenBack', batches: answers, balances })
}

function recover(error: unknown): void {
  const code = resultCode(error) || resultCode((error as Error).cause)
  say({ type: 'trouble', message: (error as Error).message, code })
  const isBusy = code === 5
  if (!isBusy) {
    if (wasLost()) return
    isSuspect = true
    mayHideCommit = true
    closeStore()
  }
  if (batches.length || gifts.length) schedule(isBusy ? busyPauseMs : reopenPauseMs)
}

/** To open a log anew that somebody has cut would be to take what is left of it for the whole. */
function wasLost(): boolean {
  try {
    return store !== undefined && isAnyLost(store)
  } catch {
    // What cannot be looked at is opened anew.
    return false
  }
}

function closeStore(): void {
  // In closing SQLite may bring the log into the file, which is right only behind a log that is whole on the disk.
  if (store) tryMakeDurable(store)
  try {
    store?.close()
  } catch {
    // It is replaced by a new connection either way.
  }
  store = undefined
}

function isStoreLost(): boolean {
  const message = files.findLostStore()
  if (message === undefined) return false
  lose(message)
  return true
}

/** All files, a few times a second and whenever something fails (ruling X11). */
function isAnyLost(opened: Store): boolean {
  const message = files.findLoss(() => opened.countFrames())
  if (message === undefined) return false
  saveLog(opened)
  lose(message)
  return true
}

/** The connection still has a log that lost only its name; what it brings into the file survives the process. */
function saveLog(opened: Store): void {
  try {
    if (files.findLostStore() === undefined && files.isLogWhole(() => opened.countFrames())) opened.checkpoint()
  } catch {
    // What is on the disk is all there is.
  }
}

function lose(message: string): void {
  isLost = true
  say({ type: 'lost', message })
}

/** What the command line changed counts here within a second (F-C45). @returns false when it cannot be known. */
function readChanges(): boolean {
  try {
    if (isLost || isStoreLost()) return false
    const opened = reopen()
    if (isAnyLost(opened)) return false
    const changes = feed.read(opened)
    if (changes?.accounts.length) say({ type: 'changes', changes })
    return true
  } catch (error) {
    recover(error)
    return false
  }
}

function find(requestId: string): { isRead: boolean; debit: FoundDebit | undefined } {
  try {
    if (!isLost && !isStoreLost()) return { isRead: true, debit: reopen().findDebit(requestId) }
  } catch (error) {
    recover(error)
  }
  return { isRead: false, debit: undefined }
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

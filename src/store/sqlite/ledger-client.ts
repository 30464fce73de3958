import { Worker } from 'node:worker_threads'
import type { Account, Directory } from '../../accounts/account.ts'
import type { Debit, Ledger } from '../../accounts/ledger.ts'
import type { DebitRow, Posting } from './entries.ts'
import { lockStore } from './lock.ts'
import { StoreError } from './open.ts'
import { createPeople } from './people.ts'
import { createSpool, spoolPath } from './spool.ts'
import type { FromWorker, ToWorker, WorkerOptions } from './worker.ts'

export type LedgerOptions = {
  /** Of the SQLite file; `.lock` and `.spool` stand beside it. */
  path: string
  /** How long a debit waits for the database before it is spooled. */
  settleDeadlineMs: number
  /** Monotonic. */
  clockMs: () => number
  /** The ledger is lost: the file is gone, or its thread died twice. Drain and exit. Called once. */
  onFatal: (error: Error) => void
  log: (level: 'info' | 'error', event: string, fields: Record<string, unknown>) => void
  /** How long one try waits for another process' lock. */
  busyMs?: number
  /** How often another process' changes are looked for. */
  pollMs?: number
  /** How often `last_used` is written. */
  touchMs?: number
}

export type LedgerStats = {
  posted: number
  exists: number
  conflicts: number
  rejected: number
  commits: number
  /** Debits not yet in the database, spooled ones included. */
  unsettled: number
  /** Those of them that are past the settle deadline. */
  overdue: number
  workerRestarts: number
}

export type OpenLedger = {
  ledger: Ledger
  directory: Directory
  /** By id. The objects live as long as the process; their balances follow the store. */
  accounts: ReadonlyMap<string, Account>
  stats(): LedgerStats
  /** Settles what is under way, in the database or in the spool, and lets go of the store. */
  close(): Promise<void>
}

type Waiting = {
  row: DebitRow
  dueMs: number
  resolve(result: 'posted' | 'exists' | 'spooled'): void
  reject(error: Error): void
}

/**
 * The server's side of the store. Requests read memory only; debits go to the worker, those of one turn of the event loop
 * in one message. Every debit stays here, in `waiting` and after its deadline in `overdue`, until the worker says that it
 * is in the database: a worker that dies takes nothing with it. The spool is for the death of the process.
 * @throws StoreError when the file cannot be used or another server uses it.
 */
export async function openLedger(options: LedgerOptions): Promise<OpenLedger> {
  const { path, settleDeadlineMs, clockMs, log } = options
  // Before the store is opened, so that a newer server does not migrate it under an older one.
  const unlock = lockStore(path)

  const people = createPeople(owedNanos)
  const waiting = new Map<string, Waiting>()
  const overdue = new Map<string, DebitRow>()
  const uses = new Map<string, number>()
  const spool = createSpool(spoolPath(path))
  const counts = { posted: 0, exists: 0, conflicts: 0, rejected: 0, commits: 0, workerRestarts: 0 }
  let outbox: DebitRow[] = []
  let worker: Worker | undefined
  let isClosing = false
  let isLost = false
  let troubleMs = Number.NEGATIVE_INFINITY
  let whenSettled = () => {}

  try {
    worker = await startWorker(true)
  } catch (error) {
    unlock()
    throw error
  }
  const sweeps = setInterval(sweep, Math.max(5, Math.min(100, settleDeadlineMs / 10)))
  const touches = setInterval(sendUses, options.touchMs ?? 10_000)
  return {
    ledger: { debit, isWritable: () => !isLost && !overdue.size },
    directory: { findKey: people.findKey, touch: (key) => void uses.set(key.id, Date.now()) },
    accounts: people.accounts,
    stats: () => ({ ...counts, unsettled: waiting.size + overdue.size, overdue: overdue.size }),
    close,
  }

  function debit({ account, ...rest }: Debit): Promise<'posted' | 'exists' | 'spooled'> {
    const row: DebitRow = { ...rest, accountId: account.id }
    return new Promise((resolve, reject) => {
      if (waiting.has(row.requestId) || overdue.has(row.requestId)) {
        reject(new Error(`request ${row.requestId} is being settled already`))
        return
      }
      waiting.set(row.requestId, { row, dueMs: clockMs() + (isLost ? 0 : settleDeadlineMs), resolve, reject })
      if (!outbox.length) setImmediate(sendOutbox)
      outbox.push(row)
    })
  }

  function sendOutbox(): void {
    const debits = outbox
    outbox = []
    if (debits.length) send({ type: 'debits', debits })
  }

  function send(message: ToWorker): void {
    worker?.postMessage(message)
  }

  function sendUses(): void {
    if (uses.size) send({ type: 'uses', uses: [...uses] })
    uses.clear()
  }

  /** Spools what has waited too long. The worker goes on trying: what it posts later it posts once. */
  function sweep(): void {
    const nowMs = clockMs()
    const late: Waiting[] = []
    for (const debit of waiting.values()) {
      if (debit.dueMs > nowMs && !isLost) break
      late.push(debit)
    }
    if (!late.length) return
    for (const { row } of late) {
      waiting.delete(row.requestId)
      overdue.set(row.requestId, row)
      const account = people.accounts.get(row.accountId)
      if (account) account.balanceNanos -= row.amountNanos
    }
    const rows = late.map(({ row }) => row)
    spool.append(rows).then(
      () => {
        log('error', 'ledger_unsettled', { spooled: rows.length, overdue: overdue.size })
        for (const { resolve } of late) resolve('spooled')
      },
      (error: Error) => {
        log('error', 'ledger_unsettled', { unspooled: rows.length, overdue: overdue.size, error: error.message })
        for (const { reject } of late) reject(new Error('neither database nor spool can be written', { cause: error }))
      },
    )
  }

  function clearSpool(): void {
    spool.clear(() => !overdue.size).catch((error) => log('error', 'spool_not_cleared', { error: error.message }))
  }

  async function startWorker(drainsSpool: boolean): Promise<Worker> {
    const workerData: WorkerOptions = {
      path,
      busyMs: options.busyMs ?? 2_000,
      pollMs: options.pollMs ?? 200,
      drainsSpool,
    }
    const started = new Worker(new URL('./worker.ts', import.meta.url), { workerData, name: 'ledger' })
    const ready = Promise.withResolvers<Worker>()
    let failure: Error | undefined
    started.on('message', (message: FromWorker) => {
      if (message.type === 'ready') {
        noteStart(message)
        ready.resolve(started)
      } else if (message.type === 'refused') failure = new StoreError(message.error.message)
      else receive(message)
    })
    started.on('error', (error) => {
      failure = error as Error
    })
    started.on('exit', () => {
      const error = failure ?? new Error('the ledger thread ended')
      ready.reject(error)
      if (worker === started) replaceWorker(error)
    })
    return ready.promise
  }

  function noteStart({ changes, recovery, misfits }: Extract<FromWorker, { type: 'ready' }>): void {
    if (recovery) log(recovery.aside ? 'error' : 'info', 'crash_recovery', { ...recovery })
    if (misfits.length) log('error', 'ledger_mismatch', { accounts: misfits, cure: 'run triwire ledger verify' })
    people.apply(changes)
  }

  /** Once. A second death is no accident (F-P15). */
  function replaceWorker(error: Error): void {
    worker = undefined
    if (isClosing) return
    if (counts.workerRestarts > 0) {
      lose(error)
      return
    }
    counts.workerRestarts++
    log('error', 'ledger_worker_restart', { error: error.message })
    startWorker(false).then((started) => {
      worker = started
      // The outbox is among the waiting: what is sent twice is posted once.
      send({ type: 'debits', debits: [...overdue.values(), ...Array.from(waiting.values(), ({ row }) => row)] })
    }, lose)
  }

  function lose(error: Error): void {
    if (isLost) return
    isLost = true
    sweep()
    options.onFatal(error)
  }

  function receive(message: Exclude<FromWorker, { type: 'ready' | 'refused' }>): void {
    if (message.type === 'posted') {
      counts.commits++
      for (const [requestId, posting] of message.postings) settle(requestId, posting)
      for (const [accountId, nanos] of message.balances) people.setBalance(accountId, nanos)
      if (!waiting.size && !overdue.size) whenSettled()
    } else if (message.type === 'changes') people.apply(message.changes)
    else if (message.type === 'lost') lose(new StoreError(message.message))
    else noteTrouble(message.message, message.code)
  }

  function settle(requestId: string, posting: Posting): void {
    const debit = waiting.get(requestId)
    const row = debit?.row ?? overdue.get(requestId)
    // Settled before: it was sent again to a second worker.
    if (!row) return
    waiting.delete(requestId)
    if (overdue.delete(requestId) && !overdue.size) clearSpool()
    if (posting === 'posted') counts.posted++
    else if (posting === 'exists') counts.exists++
    else {
      if (posting === 'conflict') counts.conflicts++
      else counts.rejected++
      log('error', `ledger_${posting}`, { ...row, amountNanos: `${row.amountNanos}`, prices: undefined })
    }
    if (posting === 'rejected') debit?.reject(new Error(`the ledger cannot hold the debit of request ${requestId}`))
    else debit?.resolve(posting === 'posted' ? 'posted' : 'exists')
  }

  /** Nobody may spend what is overdue, though the database does not know of it. */
  function owedNanos(accountId: string): bigint {
    let sum = 0n
    for (const row of overdue.values()) if (row.accountId === accountId) sum += row.amountNanos
    return sum
  }

  /** At most a line a second: a locked file makes fifty tries in it. */
  function noteTrouble(error: string, code: number): void {
    const nowMs = clockMs()
    if (nowMs - troubleMs < 1_000) return
    troubleMs = nowMs
    log('error', code === 5 ? 'ledger_busy' : 'ledger_trouble', { error, unsettled: waiting.size + overdue.size })
  }

  async function close(): Promise<void> {
    const deadline = new Promise<void>((resolve) => setTimeout(resolve, settleDeadlineMs).unref())
    const settled = new Promise<void>((resolve) => {
      whenSettled = resolve
    })
    if (!isLost && waiting.size + overdue.size) await Promise.race([settled, deadline])
    isClosing = true
    sendUses()
    if (worker) {
      const ended = new Promise((resolve) => worker!.once('exit', resolve))
      send({ type: 'close' })
      await ended
    }
    clearInterval(sweeps)
    clearInterval(touches)
    // What the deadline has not yet spooled is spooled now.
    isLost = true
    sweep()
    await spool.close()
    unlock()
  }
}

import type { Account } from '../../accounts/account.ts'
import { type Balances, createBalances } from '../../accounts/balances.ts'
import { ClockBook } from '../../accounts/clock.ts'
import type { FoundDebit } from '../../accounts/entries.ts'
import { createBoundsBook } from '../../accounts/live-bounds.ts'
import { createDirectory, type LiveDirectory } from '../../accounts/live-directory.ts'
import { openLocalAdmission, openLocalThrottle } from '../../accounts/local-limits.ts'
import type { ServerStore, ServingOptions } from '../../accounts/server-store.ts'
import { Settlement, sweepOften } from '../../accounts/settlement.ts'
import { shareReadings } from '../../accounts/shared-reading.ts'
import { usualReporting } from '../../accounts/usage/reporting.ts'
import type { TrafficCell } from '../../accounts/usage/traffic.ts'
import { noteHolder } from '../files/holder.ts'
import { lockStore } from '../files/lock.ts'
import { bringSpool, realPath, refuseNoFile } from '../files/place.ts'
import { createSpool, spoolPath } from '../files/spool.ts'
import { StoreError } from '../files/store-error.ts'
import { LedgerThread, type ThreadNews } from './ledger-thread.ts'

export type LedgerOptions = ServingOptions & {
  /** Of the SQLite file; `.lock` and `.spool` stand beside it. */
  path: string
  /** How long one try waits for another process' lock. */
  busyMs?: number
  /** How often another process' changes are looked for. */
  pollMs?: number
  /** How often the ledger is folded into figures for reports. */
  foldMs?: number
  /** A test's, see `WorkerOptions`. */
  turned?: Float64Array
}

export type OpenLedger = ServerStore & {
  /** The balances and holds of the accounts, as this one server of the store knows them. */
  balances: Balances
  /** By id. The objects live as long as the process; names and states follow the store. */
  accounts: ReadonlyMap<string, Account>
}

/**
 * The server's side of the store. Requests read memory only, except for keys that memory does not hold. Debits are settled
 * through the ledger's thread, those of one turn of the event loop in one message. It resolves after a first commit, or
 * after `settleDeadlineMs` without one: then the ledger is not writable until one works.
 * @throws StoreError when the file cannot be used or another server uses it.
 */
export async function openLedger(options: LedgerOptions): Promise<OpenLedger> {
  // Before the store is opened, so that a newer server does not migrate it under an older one.
  const path = realPath(options.path)
  refuseNoFile(path)
  const unlock = lockAsHolder(path)
  const client = new LedgerClient({ ...options, path })
  const { settlement, directory, balances } = client
  const stopSweeps = sweepOften(settlement, options.settleDeadlineMs)
  const end = () => {
    stopSweeps()
    unlock()
  }
  try {
    bringSpool(options.path, path)
    await settlement.open()
  } catch (error) {
    await settlement.close().finally(end)
    throw error
  }
  const touches = setInterval(() => client.writeUses(), options.touchMs ?? 10_000)
  return {
    ledger: settlement,
    directory,
    balances,
    accounts: directory.accounts,
    openAdmission: (limits) =>
      openLocalAdmission({ balances, bounds: client.bounds, whyBlocked: (id) => settlement.whyBlocked(id) }, limits),
    openThrottle: openLocalThrottle,
    clock: client.clock,
    countAccounts: () => directory.accounts.size,
    findDebit: (requestId) => client.findDebit(requestId),
    cooldowns: undefined,
    noteTraffic: (cells) => client.noteTraffic(cells),
    sharedTraffic: undefined,
    replicas: undefined,
    reconfigure() {},
    async close() {
      client.writeUses()
      clearInterval(touches)
      await settlement.close().finally(end)
    },
  }
}

function lockAsHolder(path: string): () => void {
  const unlock = lockStore(path)
  const forget = noteHolder(path)
  return () => {
    forget()
    unlock()
  }
}

/** Ties the settlement and the directory to the thread of the day. */
class LedgerClient {
  readonly balances = createBalances()
  readonly bounds = createBoundsBook()
  readonly clock: ClockBook
  readonly directory: LiveDirectory
  readonly settlement: Settlement
  readonly #options: LedgerOptions
  #thread: LedgerThread | undefined
  #troubleMs = Number.NEGATIVE_INFINITY
  #isDrained = false

  constructor(options: LedgerOptions) {
    this.#options = options
    const { path, settleDeadlineMs, clockMs, onFatal, log, lookMs } = options
    this.clock = new ClockBook(log)
    const read = () => this.#thread!.look()
    const readAgain = shareReadings({ read, clockMs, patienceMs: lookMs })
    this.directory = createDirectory({ balances: this.balances, bounds: this.bounds, readAgain })
    this.settlement = new Settlement({
      startPoster: () => this.#startThread(),
      spool: createSpool(spoolPath(path)),
      balances: {
        set: this.balances.set,
        owe: (accountId, amountNanos, keyId) => {
          this.balances.owe(accountId, amountNanos)
          if (keyId !== undefined) this.bounds.owe(keyId, amountNanos)
        },
        spend: this.bounds.set,
      },
      whyDoubtful: () => this.clock.doubt,
      settleDeadlineMs,
      clockMs,
      onFatal,
      log,
    })
  }

  writeUses(): void {
    this.#thread!.noteUses(this.directory.takeUses())
  }

  noteTraffic(cells: readonly TrafficCell[]): Promise<boolean> {
    return this.#thread!.noteTraffic(cells)
  }

  findDebit(requestId: string): Promise<FoundDebit | undefined> {
    return this.#thread!.find(requestId)
  }

  async #startThread(): Promise<LedgerThread> {
    const { path, busyMs = 2_000, pollMs = 200, foldMs, reporting = usualReporting, turned, log } = this.#options
    const state = { drainsSpool: !this.#isDrained, offsetMs: this.clock.news?.offsetMs, turned }
    const thread = new LedgerThread({ path, busyMs, pollMs, foldMs, reporting, ...state }, (told) => this.#hear(told))
    const { changes, misfits } = await thread.ready
    if (misfits.length) log('error', 'ledger_mismatch', { accounts: misfits, cure: 'run triwire ledger verify' })
    this.directory.apply(changes)
    this.#thread = thread
    return thread
  }

  #hear(told: ThreadNews): void {
    if (told.type === 'changes') this.directory.apply(told.changes)
    else if (told.type === 'clock') this.clock.hear(told.news)
    else if (told.type === 'drained') {
      const { recovery } = told
      this.#isDrained = true
      if (recovery) this.#options.log(recovery.aside ? 'error' : 'info', 'crash_recovery', { ...recovery })
    } else if (told.type === 'lost') this.settlement.lose(new StoreError(told.message))
    else this.#noteTrouble(told.message, told.code)
  }

  /** At most a line a second: a locked file makes fifty tries in it. */
  #noteTrouble(error: string, code: number): void {
    const nowMs = this.#options.clockMs()
    if (nowMs - this.#troubleMs < 1_000) return
    this.#troubleMs = nowMs
    const event = code === 5 ? 'ledger_busy' : 'ledger_trouble'
    this.#options.log('error', event, { error, unsettled: this.settlement.unsettled })
  }
}

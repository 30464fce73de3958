import { mkdirSync } from 'node:fs'
import { StoreSilent } from '../../accounts/account.ts'
import { ClockBook } from '../../accounts/clock.ts'
import type { Ledger } from '../../accounts/ledger.ts'
import { createBoundsBook } from '../../accounts/live-bounds.ts'
import { createDirectory, type LiveDirectory } from '../../accounts/live-directory.ts'
import type { Poster } from '../../accounts/poster.ts'
import { RemoteAdmission } from '../../accounts/remote-admission.ts'
import { createRemoteThrottle } from '../../accounts/remote-throttle.ts'
import type { Introduction, ServerStore, ServingOptions } from '../../accounts/server-store.ts'
import { Settlement, sweepOften } from '../../accounts/settlement.ts'
import { shareReadings } from '../../accounts/shared-reading.ts'
import { usualReporting } from '../../accounts/usage/reporting.ts'
import { noteHolder } from '../files/holder.ts'
import { LockedError, lockStore } from '../files/lock.ts'
import { createSpool, spoolPath } from '../files/spool.ts'
import { StoreError } from '../files/store-error.ts'
import { Line } from './line.ts'
import { placeOf } from './recovery.ts'
import type { StoreThread } from './thread.ts'

export type PostgresOptions = ServingOptions & {
  url: string
  /** The same without its password (ruling X13). */
  shown: string
  /** This server's own: for its spool and its lock. It is made. */
  stateDir: string
  /** Spools below it that no server has are posted at the start too (ruling X13). Default: `stateDir`. */
  spoolsDir?: string | undefined
  introduction: Introduction
  /** How long the database is waited for, in ms: a statement, a connection. */
  patienceMs?: number
  /** So many accounts are kept in memory; others are looked up. */
  accountsMax?: number
}

/**
 * A server's side of a database that replicas share. It resolves after a first commit, or as soon as the database is known
 * to be out of reach for now. Then the store is not ready until it can be reached.
 * @throws StoreError if the database cannot be used, or another server uses `stateDir`.
 */
export async function openPostgresStore(options: PostgresOptions): Promise<ServerStore> {
  mkdirSync(options.stateDir, { recursive: true, mode: 0o700 })
  const unlock = lockState(options.stateDir)
  const client = new Client(options)
  const { settlement, directory, line } = client
  const stopSweeps = sweepOften(settlement, options.settleDeadlineMs)
  const end = () => {
    stopSweeps()
    unlock()
  }
  try {
    await client.open()
  } catch (error) {
    await settlement.close().finally(end)
    throw error
  }
  const touches = setInterval(() => client.writeUses(), options.touchMs ?? 10_000)
  const ledger: Ledger = {
    debit: (debit) => settlement.debit(debit),
    // Without the database no request is admitted, also if no debit is owed to it. A clock in doubt is the cause to report.
    whyBlocked: (accountId) =>
      (client.isReached && (accountId !== undefined || !client.admission.isStoreSilent)) ||
      client.clock.doubt !== undefined
        ? settlement.whyBlocked(accountId)
        : 'unreached',
    backlog: () => settlement.backlog(),
    onDurable: (tell) => settlement.onDurable(tell),
  }
  return {
    ledger,
    directory,
    openAdmission: (limits) => client.admission.open(limits),
    openThrottle: (limits) => createRemoteThrottle((failures) => line.ask('countFailures', failures), limits),
    clock: client.clock,
    countAccounts: () => (client.isReached ? directory.accounts.size : undefined),
    findDebit: (requestId) => line.ask('findDebit', requestId),
    cooldowns: {
      cool: (cooldown) => line.order('cool', cooldown),
      onCooled: (hear) => line.hear('cooled', hear),
      lift: (place) => line.order('lift', place),
      steer: (steering, place) => line.order('steer', { steering, place }),
      onLifted: (hear) => line.hear('lifted', hear),
    },
    noteTraffic: (cells) => line.ask('traffic', cells).then(() => true),
    sharedTraffic: {
      want: () => line.order('wantTraffic', undefined),
      onWanted: (hear) => line.hear('trafficWanted', hear),
    },
    replicas: {
      name: options.introduction.name,
      openDoor: (door) => client.introduce({ door: JSON.stringify(door) }),
      listOthers: () => line.ask('otherReplicas', undefined),
    },
    reconfigure: (configDigest) => client.introduce({ configDigest }),
    async close() {
      clearInterval(touches)
      client.writeUses()
      await settlement.close().finally(end)
    },
  }
}

function lockState(stateDir: string): () => void {
  const place = placeOf(stateDir)
  const unlock = lock(place, stateDir)
  const forget = noteHolder(place)
  return () => {
    forget()
    unlock()
  }
}

function lock(place: string, stateDir: string): () => void {
  try {
    return lockStore(place)
  } catch (cause) {
    if (!(cause instanceof LockedError)) throw cause
    throw new StoreError(
      `Another triwire server has the state_dir ${stateDir}: stop it first, or give this one a folder of its own`,
      { cause },
    )
  }
}

/** Ties settlement and directory to the thread of the day. */
class Client {
  readonly line = new Line()
  readonly bounds = createBoundsBook()
  readonly admission = new RemoteAdmission(
    (accountId) => this.settlement.whyBlocked(accountId),
    (keyId) => this.bounds.of(keyId)?.scope,
  )
  readonly clock: ClockBook
  readonly settlement: Settlement
  readonly directory: LiveDirectory
  isReached = false
  #wasReached = false
  readonly #options: PostgresOptions
  #introduction: Introduction
  readonly #answered = Promise.withResolvers<{ isReached: boolean }>()

  constructor(options: PostgresOptions) {
    this.#options = options
    this.#introduction = options.introduction
    const { stateDir, settleDeadlineMs, clockMs, onFatal, log } = options
    this.clock = new ClockBook(log)
    this.directory = this.#createDirectory()
    this.settlement = new Settlement({
      startPoster: (isFirst) => this.#startThread(isFirst),
      spool: createSpool(spoolPath(placeOf(stateDir))),
      balances: this.admission.balances,
      whyDoubtful: () => this.clock.doubt,
      settleDeadlineMs,
      clockMs,
      onFatal: (error) => {
        this.admission.disconnect(error)
        onFatal(error)
      },
      log,
    })
    this.line.hear('admission', (answers) => this.admission.hear(answers))
    this.line.hear('log', ({ level, event, fields }) => log(level, event, fields))
    this.line.hear('trouble', ({ message, code }) => {
      log('error', 'ledger_trouble', { error: message, code, unsettled: this.settlement.unsettled })
    })
    this.line.hear('held', (rows) => this.settlement.adopt(rows))
    this.line.hear('reach', ({ isReached, error }) => {
      this.isReached = isReached
      this.#wasReached ||= isReached
      if (isReached) log('info', 'store_reached', { store: options.shown })
      else log('error', 'store_unreachable', { store: options.shown, error })
    })
    this.line.hear('clock', (news) => this.clock.hear(news))
    this.line.hear('changes', (changes) => {
      if (changes.isAnew) this.directory.clear()
      this.directory.apply(changes)
    })
  }

  /** While the database cannot be reached nobody waits for a commit. */
  async open(): Promise<void> {
    const opened = this.settlement.open()
    const unreached = this.#answered.promise.then(({ isReached }) => (isReached ? opened : undefined))
    await Promise.race([opened, unreached])
  }

  /** A later thread begins with it. */
  introduce(change: Partial<Introduction>): void {
    this.#introduction = { ...this.#introduction, ...change }
    this.line.order('introduce', change)
  }

  writeUses(): void {
    const uses = this.directory.takeUses()
    if (uses.length > 0) this.line.order('uses', uses)
  }

  #createDirectory(): LiveDirectory {
    const { clockMs, lookMs, accountsMax = 100_000 } = this.#options
    let asked = new Set<string>()
    const share = shareReadings({ read, clockMs, patienceMs: lookMs })
    const line = this.line
    return createDirectory({
      balances: this.admission.balances,
      bounds: this.bounds,
      accountsMax,
      readAgain(digest) {
        asked.add(digest)
        return share()
      },
    })

    /** All who wait by then are answered by one statement. */
    async function read(): Promise<void> {
      const digests = [...asked]
      asked = new Set()
      await line.ask('lookUp', digests).catch((cause) => {
        throw new StoreSilent('the database cannot be read', { cause })
      })
    }
  }

  async #startThread(isFirst: boolean): Promise<Poster> {
    const { url, shown, stateDir, spoolsDir = stateDir } = this.#options
    const introduction = this.#introduction
    const { patienceMs = 2_000, accountsMax = 100_000, reporting = usualReporting } = this.#options
    const places = { url, shown, stateDir, spoolsDir, reporting }
    this.isReached = false
    const state = { isSuccessor: !isFirst, isRecovered: this.#wasReached, offsetMs: this.clock.news?.offsetMs }
    const thread = this.line.start({ ...places, introduction, ...state, accountsMax, patienceMs })
    this.admission.connect((orders) => this.line.order('admission', orders))
    void thread.death.then(() => this.admission.disconnect())
    try {
      this.#answered.resolve(await thread.ask('open', undefined))
    } catch (error) {
      await thread.close()
      throw error
    }
    return posterOf(thread)
  }
}

function posterOf(thread: StoreThread): Poster {
  return {
    post: (debits) => thread.ask('post', debits),
    withdraw: (debits) => thread.ask('withdraw', debits),
    giveBack: (requestIds) => thread.ask('giveBack', requestIds),
    death: thread.death,
    close: () => thread.close(),
  }
}

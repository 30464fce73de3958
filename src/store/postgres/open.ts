import type { Ledger } from '../../accounts/ledger.ts'
import { createBoundsBook } from '../../accounts/live-accounts.ts'
import { RemoteAdmission } from '../../accounts/remote-admission.ts'
import { createRemoteThrottle } from '../../accounts/remote-throttle.ts'
import type { Introduction, ServerStore, ServingOptions, SharedCooldowns } from '../../accounts/server-store.ts'
import { usualReporting } from '../../accounts/usage/reporting.ts'
import { lockAsHolder } from '../files/holder.ts'
import { LockedError, lockStore } from '../files/lock.ts'
import { StoreError } from '../files/store-error.ts'
import { StoreClient } from '../serving/client.ts'
import type { Line } from '../serving/thread.ts'
import { placeOf } from './recovery.ts'
import type { ThreadOptions } from './worker.ts'

export type PostgresOptions = ServingOptions & {
  url: string
  /** The URL without its password, for messages (ruling X13). */
  shown: string
  /** The folder of this server's spool and lock. It is created if it is missing. */
  stateDir: string
  /** A folder whose spools are posted at the start too, unless their servers still run (X13). Default: `stateDir`. */
  spoolsDir?: string | undefined
  introduction: Introduction
  /** The longest wait for a statement or a connection, in ms. */
  patienceMs?: number
  /** The most accounts to keep in memory. Other accounts are read from the database when a request needs them. */
  accountsMax?: number
}

/** The longest time that the thread may take to end, in ms. It is longer than the limits of calls to the database. */
const closeMs = 4_000

/**
 * Opens a server's side of a database that replicas share. The promise resolves after a first commit. If the database
 * cannot be reached, the promise resolves as soon as this is clear. The store then becomes ready when the database is
 * first reached.
 * @throws StoreError if the database cannot be used, or another server uses `stateDir`
 */
export async function openPostgresStore(options: PostgresOptions): Promise<ServerStore> {
  const place = placeOf(options.stateDir)
  const unlock = lockAsHolder(place, () => lockState(place, options.stateDir))
  const { client, admission, introduce, reached } = createClient(options, place)
  const { line, settlement, directory, clock } = client
  // `settlement.open()` needs a commit. The start waits for that commit only if the database can be reached.
  const served = await client.serve(unlock, async () => {
    const opened = settlement.open()
    await Promise.race([opened, reached.first.then((isReached) => (isReached ? opened : undefined))])
  })
  const ledger: Ledger = {
    debit: (debit) => settlement.debit(debit),
    // While the database is unreachable, no request is admitted, even if all debits are posted. A clock in doubt is
    // reported first, because it is the more important reason.
    whyBlocked: (accountId) =>
      (reached.isNow && (accountId !== undefined || !admission.isStoreSilent)) || clock.doubt !== undefined
        ? settlement.whyBlocked(accountId)
        : 'unreached',
    backlog: () => settlement.backlog(),
    onDurable: (tell) => settlement.onDurable(tell),
  }
  return {
    ...served,
    ledger,
    openAdmission: (limits) => admission.open(limits),
    openThrottle: (limits) => createRemoteThrottle((failures) => line.ask('countFailures', failures), limits),
    countAccounts: () => (reached.isNow ? directory.accounts.size : undefined),
    cooldowns: shareCooldowns(line),
    sharedTraffic: {
      want: () => line.order('wantTraffic', undefined),
      onWanted: (hear) => line.hear('trafficWanted', hear),
    },
    replicas: {
      name: options.introduction.name,
      openDoor: (door) => introduce({ door: JSON.stringify(door) }),
      listOthers: () => line.ask('otherReplicas', undefined),
    },
    reconfigure: (configDigest) => introduce({ configDigest }),
  }
}

function lockState(place: string, stateDir: string): () => void {
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

function createClient(options: PostgresOptions, place: string) {
  const { url, shown, stateDir, spoolsDir = stateDir, log } = options
  const { patienceMs = 2_000, accountsMax = 100_000, reporting = usualReporting } = options
  let { introduction } = options
  const first = Promise.withResolvers<boolean>()
  const reached = { isNow: false, isRecovered: false, first: first.promise }
  const bounds = createBoundsBook()
  const admission = new RemoteAdmission(
    (accountId) => client.settlement.whyBlocked(accountId),
    (id) => bounds.of(id),
  )
  const onFatal = (error: Error) => {
    admission.disconnect(error)
    options.onFatal(error)
  }
  const client = new StoreClient(
    { ...options, onFatal },
    {
      ...{ place, balances: admission.balances, bounds, accountsMax },
      thread(isFirst) {
        reached.isNow = false
        const state = { isSuccessor: !isFirst, isRecovered: reached.isRecovered, offsetMs: client.clock.news?.offsetMs }
        const places = { url, shown, stateDir, spoolsDir }
        const workerData: ThreadOptions = { ...places, introduction, reporting, ...state, accountsMax, patienceMs }
        return { file: new URL('./worker.ts', import.meta.url), name: 'store', workerData, closeMs }
      },
      onStarted(thread) {
        admission.connect((orders) => client.line.order('admission', orders))
        void thread.death.then(() => admission.disconnect())
      },
      onOpened: ({ isReached }) => first.resolve(isReached),
      onSilence: (forMs) => admission.noteSilence(forMs),
    },
  )
  const { line } = client
  line.hear('admission', (answers) => admission.hear(answers))
  line.hear('held', ({ debits, refused }) => client.settlement.adopt(debits, refused))
  line.hear('reach', ({ isReached, error }) => {
    reached.isNow = isReached
    reached.isRecovered ||= isReached
    if (isReached) log('info', 'store_reached', { store: shown })
    else log('error', 'store_unreachable', { store: shown, error })
  })
  return { client, admission, introduce, reached }

  /** Sends changed facts about this server to the thread. A thread that starts later gets them too. */
  function introduce(change: Partial<Introduction>): void {
    introduction = { ...introduction, ...change }
    line.order('introduce', change)
  }
}

function shareCooldowns(line: Line): SharedCooldowns {
  return {
    cool: (cooldown) => line.order('cool', cooldown),
    onCooled: (hear) => line.hear('cooled', hear),
    lift: (place) => line.order('lift', place),
    steer: (steering, place) => line.order('steer', { steering, place }),
    onLifted: (hear) => line.hear('lifted', hear),
  }
}

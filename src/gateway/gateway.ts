import type { AccessReader, Directory } from '../accounts/account.ts'
import type { Admission } from '../accounts/admission.ts'
import type { Ledger } from '../accounts/ledger.ts'
import type { Throttle } from '../accounts/limits.ts'
import type { Sealer } from '../accounts/seal.ts'
import type { Config } from '../config/config.ts'
import type { Listed, Roster } from '../registers.ts'
import type { KeyFinder } from '../upstream/live-key.ts'
import type { Pool } from '../upstream/pool.ts'
import type { Upstreams } from '../upstream/target.ts'
import type { RunningDigest } from '../wires/requests/likeness.ts'
import type { ChainStays } from './chain-stays.ts'
import type { Bodies, Counting, Flow, Readers } from './fairness/places.ts'
import type { Turns } from './fairness/turns.ts'
import type { CallRecord, LastAnswers, Tracing } from './record.ts'

/** The parts that a walk (the handling of one request) needs. `src/process` builds them. */
export type Gateway = {
  /** The configuration in force and everything that was built from it. */
  snapshots: Snapshots
  directory: Directory
  /** Ids of accounts that this process treats as suspended, whatever the store says. */
  barred: ReadonlySet<string>
  lastAnswers: LastAnswers
  /** Remembers with which later entry of a fallback chain a conversation stays (ruling Y23). */
  stays: ChainStays
  ledger: Ledger
  admission: Admission
  throttle: Throttle
  /** Unix milliseconds; for records and ids. */
  nowMs(): number
  /**
   * How far this server's clock is ahead of the store's, in ms. Prices that depend on time use the store's clock
   * (ruling Y15).
   */
  aheadMs(): number
  /** Monotonic milliseconds; for deadlines. */
  clockMs(): number
  /** Requests that are being answered. The ticker calls each to check its deadlines. */
  deliveries: Roster<Ticking & DrainHandle & Recorded & Listed>
  /** Attempts whose answer is complete, but whose upstream has not closed yet. The ticker ends them. */
  lingering: Roster<Ticking & Listed & { readonly isLingering: boolean }>
  /**
   * Limits how many answers are still read for their token counts after they have ended for the client (rulings C4,
   * C12).
   */
  readers: Readers
  /** Counts the memory that request bodies hold, and the memory that is left for other bodies (ruling R18). */
  bodies: Bodies
  counting: Counting
  /** True while the event loop is noticeably late. Free requests then give way to paid ones (ruling R18). */
  isStrained(): boolean
  flow: Flow
  turns: Turns
  /** True while the gateway refuses new inference, so that running requests survive (reliability §7). */
  isShedding(): boolean
  sealer: Sealer
  /** Reads the access tokens that people get when they sign in (ruling Y20). */
  readAccess?: AccessReader | undefined
  /** Undefined if traces are off. */
  tracing?: Tracing | undefined
  /** Logs a bug of the gateway that no client's answer can report. */
  reportBug(bug: Error, requestId?: string): void
  /** Begins a digest that finds similar requests of one account (ruling Y24). All replicas compute the same result. */
  openDigest(accountId: string): RunningDigest
  /**
   * Derives a key from the conversation key of a client and the account. The derived key is sent upstream. It also
   * determines which upstream account gets the request (ruling P6).
   */
  scopeKey(accountId: string, key: string): string
}

/**
 * An object with deadlines. A single ticker of the process checks the deadlines of all such objects, so that no request
 * has timers of its own.
 */
export interface Ticking {
  /** Checks every deadline. @param nowMs monotonic */
  tick(nowMs: number): void
}

/** A request that shutdown can end. */
interface DrainHandle {
  /** Ends the request because the process ends. An incomplete answer is cut and billed (reliability §7). */
  shutDown(): void
}

/** A request whose record can be read while it runs. */
export interface Recorded {
  readonly record: Readonly<CallRecord>
}

/** Checks the deadlines of everything that is under way. @param nowMs monotonic */
export function tick({ deliveries, lingering, flow }: Gateway, nowMs: number): void {
  flow.tick(deliveries.size)
  for (const delivery of deliveries) delivery.tick(nowMs)
  for (const attempt of lingering) {
    attempt.tick(nowMs)
    if (!attempt.isLingering) lingering.delete(attempt)
  }
}

/** One configuration and what was built from it: targets, connections and keys. */
export type Snapshot = {
  readonly config: Config
  readonly pool: Pool
  readonly upstreams: Upstreams
  readonly keyOf: KeyFinder
}

type Snapshots = ReturnType<typeof createSnapshots>

/**
 * Keeps snapshots of the configuration: the one in force, and earlier ones. A request keeps its snapshot until it is
 * over, through all retries. An earlier snapshot closes with its last request (U14).
 */
export function createSnapshots(first: Snapshot) {
  /** The number of requests that use each snapshot. The snapshot in force is always in the map. */
  const users = new Map<Snapshot, number>([[first, 0]])
  /** Earlier snapshots that no request uses any more. A lingering upstream may still use their connections. */
  const retired = new Set<Snapshot>()
  let current = first
  let isClosed = false
  return {
    get current(): Snapshot {
      return current
    },
    /** Takes the current snapshot for one request. `release` must be called once, at its end. */
    take(): { snapshot: Snapshot; release: () => void } {
      const snapshot = current
      users.set(snapshot, users.get(snapshot)! + 1)
      return { snapshot, release: () => leave(snapshot) }
    },
    /** Puts a new snapshot in force for later requests. */
    replace(next: Snapshot): void {
      const before = current
      current = next
      users.set(next, 0)
      if (users.get(before) === 0) retire(before)
    },
    /** Closes all connections, also those of earlier snapshots. */
    async close(): Promise<void> {
      isClosed = true
      await Promise.all([...users.keys(), ...retired].map(({ upstreams }) => upstreams.close()))
    },
  }

  function leave(snapshot: Snapshot): void {
    const left = users.get(snapshot)! - 1
    users.set(snapshot, left)
    if (left === 0 && snapshot !== current) retire(snapshot)
  }

  function retire(snapshot: Snapshot): void {
    if (isClosed) return
    users.delete(snapshot)
    retired.add(snapshot)
    snapshot.upstreams.retire().then(() => retired.delete(snapshot))
  }
}

import type { Directory } from './account.ts'
import type { Admission } from './admission.ts'
import type { ClockBook } from './clock.ts'
import type { FoundDebit } from './entries.ts'
import type { Ledger } from './ledger.ts'
import type { Throttle } from './limits.ts'
import type { Reporting } from './usage/reporting.ts'
import type { TrafficCell } from './usage/traffic.ts'

/** What a server has of its store, whichever it is: one file that it alone serves, or a database that replicas share. */
export type ServerStore = {
  ledger: Ledger
  directory: Directory
  openAdmission(limits: AdmissionLimits): Admission
  openThrottle(limits: ThrottleLimits): Throttle
  /** Whether the clock that dates entries is right (ruling Y15). */
  clock: Pick<ClockBook, 'news' | 'text' | 'doubt'>
  /** Of those that are known here; undefined while nobody can say. */
  countAccounts(): number | undefined
  /** The debit of a request. @throws StoreSilent when it cannot be read now. */
  findDebit(requestId: string): Promise<FoundDebit | undefined>
  /** Undefined where no other process serves with the same store. */
  cooldowns: SharedCooldowns | undefined
  /**
   * Keeps counters of what costs nothing. They may be lost with the process, and never hold anything up.
   * @returns whether they can be read by now; false: they are kept until they can be written. @throws StoreSilent
   */
  noteTraffic(cells: readonly TrafficCell[]): Promise<boolean>
  /** Undefined where no other process serves with the same store. */
  sharedTraffic: SharedTraffic | undefined
  /** A reload has put another configuration in force; where others serve with the same store they compare it. */
  reconfigure(configDigest: string): void
  /** Settles what is under way, in the database or in the spool, and lets go of the store. */
  close(): Promise<void>
}

/** What every store is opened with to be served from. */
export type ServingOptions = {
  /** How long a debit waits for the store before it is spooled. */
  settleDeadlineMs: number
  /** Monotonic. */
  clockMs: () => number
  /** The ledger is lost: a file of it is gone, or its thread died twice. Drain and exit. Called once. */
  onFatal: (error: Error) => void
  log: (level: 'info' | 'error', event: string, fields: Record<string, unknown>) => void
  /** How long a request with an unknown key waits for the store (ruling R16). */
  lookMs?: number
  /** How often `last_used` is written. */
  touchMs?: number
  /** In whose days, weeks and months keys spend their budgets (ruling R15), and figures for reports are kept; for how long. */
  reporting?: Reporting
}

/** What a server says of itself, to all who use the same store. */
export type Introduction = {
  /** For people. */
  name: string
  version: string
  /** Of all settings that replicas should have in common. */
  configDigest: string
  /** Of the key of the envelopes, which all must have in common (ruling T7). */
  sealFingerprint: string
}

/** In force when they are asked for; a reload may put others in their place. */
export type AdmissionLimits = {
  requestsPerMinute(): number
  /** The process turns new work away to keep what runs alive. */
  isShedding(): boolean
  /** Monotonic: the time of windows that are kept in this process. */
  clockMs(): number
  /** Unix milliseconds: by which budgets renew, where that is decided in this process. */
  nowMs(): number
}

/** In force when they are asked for. */
export type ThrottleLimits = {
  failedAuthPerMinute(): number
  /** Monotonic: the time of windows that are kept in this process. */
  clockMs(): number
}

/** Which upstream accounts all servers of a store leave alone. The longest wait wins. */
export type SharedCooldowns = {
  /** Tells the others. */
  cool(cooldown: Cooldown): void
  /** Hears of the others. */
  onCooled(hear: (cooldown: Cooldown) => void): void
  /** Ends one before its time, for all: an operator wants it so. */
  lift(place: string): void
  /** What an operator wants of one, for all and for good. What the store cannot take now it is told later. */
  steer(steering: 'disable' | 'enable', place: string): void
  /** Hears which were ended, and what they were for. */
  onLifted(hear: (lifted: Pick<Cooldown, 'place' | 'cause'>) => void): void
}

/** Counters that several servers write into one store. */
export type SharedTraffic = {
  /** Somebody reads them: all shall write what they have. */
  want(): void
  /** Hears that somebody reads them, at whichever server. */
  onWanted(hear: () => void): void
}

export type Cooldown = {
  /** Of the account's service of a model (src/upstream/pool-memory.ts). */
  place: string
  forMs: number
  /** In the words of the log; `disabled` where it is an operator's wish. */
  cause: string
  /** What it tells clients, and whether it may cool all of a pool, as of `Verdict` (src/upstream/verdict.ts). */
  tell: 'capacity' | 'account' | 'broken' | 'rejected'
  cool: 'now' | 'repeated'
  /** Of what is heard: the other server that has met it, for people; undefined where it was this one. */
  by?: string | undefined
}

import type { Directory } from './account.ts'
import type { Admission } from './admission.ts'
import type { ClockBook } from './clock.ts'
import type { FoundDebit } from './entries.ts'
import type { Ledger } from './ledger.ts'
import type { Throttle } from './limits.ts'
import type { Reporting } from './usage/reporting.ts'
import type { TrafficCell } from './usage/traffic.ts'

/** A store as a server uses it: a file that only this server uses, or a database that replicas share. */
export type ServerStore = {
  ledger: Ledger
  directory: Directory
  openAdmission(limits: AdmissionLimits): Admission
  openThrottle(limits: ThrottleLimits): Throttle
  /** Decides whether the clock that dates entries is right (ruling Y15). */
  clock: Pick<ClockBook, 'news' | 'text' | 'doubt' | 'aheadMs' | 'expectedMs'>
  /** Returns the number of accounts in memory; undefined while it is unknown. */
  countAccounts(): number | undefined
  /** Finds the debit of a request. @throws StoreSilent if the store cannot be read now */
  findDebit(requestId: string): Promise<FoundDebit | undefined>
  /** Shared cooldowns; undefined if no other process serves with the same store. */
  cooldowns: SharedCooldowns | undefined
  /**
   * Stores traffic counters, which never include money. The counters may be lost with the process, and never delay a
   * request.
   * @returns true if the counters are in the store and can be read; false if they wait to be written
   * @throws StoreSilent
   */
  noteTraffic(cells: readonly TrafficCell[]): Promise<boolean>
  /** Shared counters; undefined if no other process serves with the same store. */
  sharedTraffic: SharedTraffic | undefined
  /** The other servers of the store; undefined if no other process serves with it. */
  replicas: SharedReplicas | undefined
  /**
   * Called when a reload has put another configuration in force. Servers of the same store compare their
   * configurations.
   */
  reconfigure(configDigest: string): void
  /** Writes the unsettled debits to the database or the spool, and closes the store. */
  close(): Promise<void>
}

/** The options with which every store is opened for serving. */
export type ServingOptions = {
  /** How long a debit waits for the store before it is spooled, in ms. */
  settleDeadlineMs: number
  /** A monotonic clock in ms. */
  clockMs: () => number
  /**
   * Called once when the ledger is lost: a file of it is gone, or its thread died twice. The server must drain and
   * exit.
   */
  onFatal: (error: Error) => void
  log: (level: 'info' | 'error', event: string, fields: Record<string, unknown>) => void
  /** How long a request with an unknown key waits for the store, in ms (ruling R16). */
  lookMs?: number
  /** How often `last_used` is written, in ms. */
  touchMs?: number
  /** The zone whose days, weeks and months renew budgets (ruling R15), and how long figures for reports are kept. */
  reporting?: Reporting
}

/** Facts that a server reports about itself, for all servers of the same store. */
export type Introduction = {
  /** The name of the server, shown to people. */
  name: string
  version: string
  /** A digest of all settings that replicas should have in common. */
  configDigest: string
  /** Identifies the key that seals items for clients. All replicas must have the same key (ruling T7). */
  sealFingerprint: string
  /** The server's `ReplicaDoor` as JSON, once the server listens. */
  door?: string | undefined
}

/** How other servers of the store reach the admin side of a server. The store records this (ruling X9). */
export type ReplicaDoor = {
  /**
   * Identifies this run of the server. The token that other servers show is computed from this key and the seal key
   * (src/live/replica-door.ts).
   */
  key: string
  /** The origin of a loopback address, and the name of the loopback interface that has the address. */
  local?: { origin: string; loopback: string } | undefined
  /** The origin, with a path if needed, at which other machines reach the server. */
  url?: string | undefined
}

/** Another running server. `name` is for people. */
export type OtherReplica = { name: string; door: ReplicaDoor | undefined }

/** How the servers of one store find each other. */
export type SharedReplicas = {
  /** The name of this server, as `triwire replicas` lists it. */
  name: string
  /** Publishes how other servers reach this one. The store records it within seconds, and again after an outage. */
  openDoor(door: ReplicaDoor): void
  /** Lists the other servers that were seen in the last ten seconds, oldest first. @throws StoreSilent */
  listOthers(): Promise<readonly OtherReplica[]>
}

/** Limits, read at each use because a reload may change them. */
export type AdmissionLimits = {
  requestsPerMinute(): number
  /** Whether the process refuses new requests so that running ones can finish. */
  isShedding(): boolean
  /** A monotonic clock in ms, for the rate windows in this process. */
  clockMs(): number
  /** The current time in Unix milliseconds. It shows whether the window of a budget is over. */
  nowMs(): number
}

/** The limit of failed authentications, read at each use because a reload may change it. */
export type ThrottleLimits = {
  failedAuthPerMinute(): number
  /** A monotonic clock in ms, for the time windows in which this process counts failed authentications. */
  clockMs(): number
}

/** Cooldowns of upstream accounts, shared by all servers of a store. The longest cooldown applies. */
export type SharedCooldowns = {
  /** Reports a cooldown to the other servers. */
  cool(cooldown: Cooldown): void
  /** Listens for cooldowns of the other servers. */
  onCooled(hear: (cooldown: Cooldown) => void): void
  /** Ends a cooldown early, for all servers, at an operator's request. */
  lift(place: string): void
  /**
   * Disables or enables an upstream account for all servers, until the next such call. If the store cannot record this
   * now, it is recorded later.
   */
  steer(steering: 'disable' | 'enable', place: string): void
  /** Listens for cooldowns that ended early, with their causes. */
  onLifted(hear: (lifted: Pick<Cooldown, 'place' | 'cause'>) => void): void
}

/** Counters that several servers write to one store. */
type SharedTraffic = {
  /** Asks all servers to write their counters, because somebody wants to read them. */
  want(): void
  /** Calls `hear` whenever any server of the store calls `want`. */
  onWanted(hear: () => void): void
}

export type Cooldown = {
  /** Identifies an upstream account for a model (src/upstream/pool-memory.ts). */
  place: string
  forMs: number
  /** The cause as the log names it. `disabled` means that an operator disabled the account. */
  cause: string
  /**
   * `tell`: how clients see the problem. `cool`: `now` always puts the account into cooldown; `repeated` only if the
   * pool can do without the account. See `Verdict` (src/upstream/verdict.ts).
   */
  tell: 'capacity' | 'account' | 'broken' | 'rejected'
  cool: 'now' | 'repeated'
  /** The name of the other server that saw the failure, for messages to people. Undefined if this server saw it. */
  by?: string | undefined
}

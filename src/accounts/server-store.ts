import type { Directory } from './account.ts'
import type { Admission } from './admission.ts'
import type { ClockBook } from './clock.ts'
import type { FoundDebit } from './entries.ts'
import type { Ledger } from './ledger.ts'
import type { Throttle } from './limits.ts'
import type { Reporting } from './usage/reporting.ts'
import type { TrafficCell } from './usage/traffic.ts'

/** A store as a server uses it: one file that it alone serves, or a database that replicas share. */
export type ServerStore = {
  ledger: Ledger
  directory: Directory
  openAdmission(limits: AdmissionLimits): Admission
  openThrottle(limits: ThrottleLimits): Throttle
  /** Whether the clock that dates entries is right (ruling Y15). */
  clock: Pick<ClockBook, 'news' | 'text' | 'doubt' | 'aheadMs'>
  /** The number of accounts that are known here; undefined while it is unknown. */
  countAccounts(): number | undefined
  /** Finds the debit of a request. @throws StoreSilent if it cannot be read now. */
  findDebit(requestId: string): Promise<FoundDebit | undefined>
  /** Undefined if no other process serves with the same store. */
  cooldowns: SharedCooldowns | undefined
  /**
   * Stores counters of traffic, which cost nothing. They may be lost with the process, and never delay anything.
   * @returns whether they can be read by now; false: they are kept until they can be written. @throws StoreSilent
   */
  noteTraffic(cells: readonly TrafficCell[]): Promise<boolean>
  /** Undefined if no other process serves with the same store. */
  sharedTraffic: SharedTraffic | undefined
  /** The other servers of the store. Undefined if no other process serves with it. */
  replicas: SharedReplicas | undefined
  /** A reload has put another configuration in force. Servers of the same store compare it. */
  reconfigure(configDigest: string): void
  /** Settles the debits that are under way, in the database or in the spool, and closes the store. */
  close(): Promise<void>
}

/** The options with which every store is opened for serving. */
export type ServingOptions = {
  /** How long a debit waits for the store before it is spooled, in ms. */
  settleDeadlineMs: number
  /** Monotonic milliseconds. */
  clockMs: () => number
  /** The ledger is lost: a file of it is gone, or its thread died twice. The server must drain and exit. Called once. */
  onFatal: (error: Error) => void
  log: (level: 'info' | 'error', event: string, fields: Record<string, unknown>) => void
  /** How long a request with an unknown key waits for the store, in ms (ruling R16). */
  lookMs?: number
  /** How often `last_used` is written, in ms. */
  touchMs?: number
  /** The zone in whose days, weeks and months keys spend their budgets (ruling R15), and how long figures of reports are kept. */
  reporting?: Reporting
}

/** Facts about a server, for all that use the same store. */
export type Introduction = {
  /** A name for people. */
  name: string
  version: string
  /** Covers all settings that replicas should have in common. */
  configDigest: string
  /** Identifies the key of the envelopes, which all must have in common (ruling T7). */
  sealFingerprint: string
  /** Its `ReplicaDoor` as JSON, once it listens. */
  door?: string | undefined
}

/** How other servers of the store reach the admin side of one, as it stands in the store (ruling X9). */
export type ReplicaDoor = {
  /** Names this run of the server. The token that others show is made of it and of the seal key (src/live/replica-door.ts). */
  key: string
  /** The origin of a loopback address, and the name of the loopback interface that has it. */
  local?: { origin: string; loopback: string } | undefined
  /** The origin, with a path if it has one, that reaches it from other machines. */
  url?: string | undefined
}

/** Another server that lives. `name` is for people. */
export type OtherReplica = { name: string; door: ReplicaDoor | undefined }

/** The servers of one store, as each of them knows the others. */
export type SharedReplicas = {
  /** The name of this server, as `triwire replicas` lists it. */
  name: string
  /** Lets the others reach this server. The store has it within seconds, and after an outage again. */
  openDoor(door: ReplicaDoor): void
  /** The others that were seen in the last ten seconds, by age. @throws StoreSilent */
  listOthers(): Promise<readonly OtherReplica[]>
}

/** Limits that are read at each use, since a reload may change them. */
export type AdmissionLimits = {
  requestsPerMinute(): number
  /** Whether the process refuses new requests so that running ones finish. */
  isShedding(): boolean
  /** Monotonic milliseconds, for windows that are kept in this process. */
  clockMs(): number
  /** Unix milliseconds, by which budgets renew if this process decides that. */
  nowMs(): number
}

/** The limit is read at each use, since a reload may change it. */
export type ThrottleLimits = {
  failedAuthPerMinute(): number
  /** Monotonic milliseconds, for windows that are kept in this process. */
  clockMs(): number
}

/** Upstream accounts that all servers of a store leave alone for a while. The longest wait wins. */
export type SharedCooldowns = {
  /** Reports a cooldown to the other servers. */
  cool(cooldown: Cooldown): void
  /** Listens for cooldowns of the other servers. */
  onCooled(hear: (cooldown: Cooldown) => void): void
  /** Ends a cooldown before its time, for all servers, because an operator asks for it. */
  lift(place: string): void
  /** Disables or enables an account for all servers, until changed again. If the store cannot take that now, it is sent later. */
  steer(steering: 'disable' | 'enable', place: string): void
  /** Listens for cooldowns that were ended, with their causes. */
  onLifted(hear: (lifted: Pick<Cooldown, 'place' | 'cause'>) => void): void
}

/** Counters that several servers write into one store. */
type SharedTraffic = {
  /** Asks all servers to write their counters, since somebody reads them. */
  want(): void
  /** Listens for such requests, from any server. */
  onWanted(hear: () => void): void
}

export type Cooldown = {
  /** Names the account's service of a model (src/upstream/pool-memory.ts). */
  place: string
  forMs: number
  /** The cause in the words of the log; `disabled` if an operator asked for it. */
  cause: string
  /** As in `Verdict` (src/upstream/verdict.ts): what clients are shown, and whether it may cool all of a pool. */
  tell: 'capacity' | 'account' | 'broken' | 'rejected'
  cool: 'now' | 'repeated'
  /** For people, the other server that has met it; undefined if it was this one. */
  by?: string | undefined
}

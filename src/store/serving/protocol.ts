import type { ClockNews } from '../../accounts/clock.ts'
import type { DeskAnswer, DeskOrder } from '../../accounts/desk.ts'
import type { FoundDebit } from '../../accounts/entries.ts'
import type { Debit } from '../../accounts/ledger.ts'
import type { AccountChanges } from '../../accounts/live-directory.ts'
import type { GivenBack, Posted, Withdrawn } from '../../accounts/poster.ts'
import type { CountedFailures } from '../../accounts/remote-throttle.ts'
import type { Cooldown, Introduction, OtherReplica } from '../../accounts/server-store.ts'
import type { TrafficCell } from '../../accounts/usage/traffic.ts'
import type { PackedDebit } from './packed-debit.ts'

/*
 * The messages between the serving thread and the thread of its store. A thread of SQLite does not answer the questions
 * marked "For replicas", because only PostgreSQL has replicas.
 */

/** The questions of the serving thread. Each is answered once, in any order. */
export type Questions = {
  /**
   * Answered when the store is open. If the database is not reached in time, the answer says so, and the store opens
   * later.
   * @throws StoreError if the store cannot be used
   */
  open: { asks: undefined; answers: { isReached: boolean } }
  post: { asks: readonly PackedDebit[]; answers: Posted }
  withdraw: { asks: readonly Debit[]; answers: Withdrawn }
  giveBack: { asks: readonly string[]; answers: GivenBack }
  findDebit: { asks: string; answers: FoundDebit | undefined }
  /** Looks up keys by digest. The `changes` about them come before the answer. SQLite's thread sends all changes. */
  lookUp: { asks: readonly string[]; answers: undefined }
  /**
   * Counts of requests, for reports.
   * @returns false if the caller must keep the counts and send them again
   * @throws what the database throws; the thread has then kept the counts
   */
  traffic: { asks: readonly TrafficCell[]; answers: boolean }
  /** For replicas: counts failed authentications by address. */
  countFailures: { asks: readonly (readonly [ipKey: string, count: number])[]; answers: CountedFailures[] }
  /** For replicas: the other living replicas. */
  otherReplicas: { asks: undefined; answers: readonly OtherReplica[] }
  close: { asks: undefined; answers: undefined }
}

export type QuestionName = keyof Questions

/** Messages from the serving thread that need no answer. All but `uses` are for replicas. */
export type Orders = {
  uses: readonly (readonly [keyId: string, usedMs: number])[]
  admission: readonly DeskOrder[]
  cool: Cooldown
  /** The place whose cooldown ends. */
  lift: string
  steer: { steering: 'disable' | 'enable'; place: string }
  /** An operator requests a report: all servers must write their counts of requests to the store. */
  wantTraffic: undefined
  /** The name, version or another fact that this server reports to the other servers has changed. */
  introduce: Partial<Introduction>
}

/** Messages that the store's thread sends on its own. */
export type News = {
  /** Debits wait and are tried again. Sent at most once a second. */
  trouble: { event: 'ledger_busy' | 'ledger_trouble'; fields: { error: string; code?: string } }
  /** A file of the store was removed or replaced. Later commits would be lost. */
  lost: { message: string }
  /** The spool of earlier runs is posted: at the start, or later if the clock was in doubt. */
  drained: undefined
  /** Debits of earlier runs that stay in a spool, because another session has locked their accounts. */
  held: readonly Debit[]
  /** Whether the database can be reached, once it is known and whenever it changes. */
  reach: { isReached: boolean; error?: string }
  /** The changes of operators, or the results of lookups. `isAnew`: all earlier changes are void. */
  changes: AccountChanges & { isAnew: boolean }
  /** The decision whether the clock that dates entries is right. */
  clock: ClockNews
  admission: readonly DeskAnswer[]
  cooled: Cooldown
  lifted: Pick<Cooldown, 'place' | 'cause'>
  /** An operator has requested a report, on this or another server. */
  trafficWanted: undefined
  log: { level: 'info' | 'error'; event: string; fields: Record<string, unknown> }
}

/** Logged with the first entry in form 3, a newer layout of entries that older versions of triwire cannot read. */
export const formThreeBegun: News['log'] = {
  level: 'info',
  event: 'ledger_form_3',
  fields: { means: 'an older triwire cannot use this store any more' },
}

export type Answers = {
  [Name in QuestionName]: (asks: Questions[Name]['asks']) => Promise<Questions[Name]['answers']>
}

export type Heeded = { [Name in keyof Orders]: (value: Orders[Name]) => void }

export type Say = <Name extends keyof News>(news: Name, value: News[Name]) => void

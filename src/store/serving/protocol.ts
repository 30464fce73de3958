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
 * The messages between the serving thread and the thread of its store. The thread of a file answers some of the questions: what
 * only replicas ask is marked.
 */

/** Each is answered once, in whatever order. */
export type Questions = {
  /** The store is open, or will be when the database can be reached. @throws StoreError if it cannot be used. */
  open: { asks: undefined; answers: { isReached: boolean } }
  post: { asks: readonly PackedDebit[]; answers: Posted }
  withdraw: { asks: readonly Debit[]; answers: Withdrawn }
  giveBack: { asks: readonly string[]; answers: GivenBack }
  findDebit: { asks: string; answers: FoundDebit | undefined }
  /** Answered after the news of what the store has of these keys. The thread of a file reads all that is new. */
  lookUp: { asks: readonly string[]; answers: undefined }
  /**
   * Counters of what costs nothing. @returns false: they are kept until they can be written.
   * @throws what the database throws: then they are kept as well.
   */
  traffic: { asks: readonly TrafficCell[]; answers: boolean }
  /** Of replicas. */
  countFailures: { asks: readonly (readonly [ipKey: string, count: number])[]; answers: CountedFailures[] }
  /** The other replicas that live. */
  otherReplicas: { asks: undefined; answers: readonly OtherReplica[] }
  close: { asks: undefined; answers: undefined }
}

export type QuestionName = keyof Questions

/** Messages from the serving thread that need no answer. All but the first are of replicas. */
export type Orders = {
  uses: readonly (readonly [keyId: string, usedMs: number])[]
  admission: readonly DeskOrder[]
  cool: Cooldown
  /** By its place. */
  lift: string
  steer: { steering: 'disable' | 'enable'; place: string }
  /** Somebody reads figures: all servers shall write what they have counted. */
  wantTraffic: undefined
  /** This server says something else of itself from now on. */
  introduce: Partial<Introduction>
}

/** Messages that the store's thread sends by itself. */
export type News = {
  /** Debits wait and are tried again. At most once a second. */
  trouble: { event: 'ledger_busy' | 'ledger_trouble'; fields: { error: string; code?: string } }
  /** A file of the store is gone, or another one stands in its place: what is committed now would be lost. */
  lost: { message: string }
  /** The spool of earlier runs is posted: at the start, or later where the clock was in doubt. */
  drained: undefined
  /** Debits of earlier runs that stay in a spool, since somebody has locked their accounts. */
  held: readonly Debit[]
  /** Whether the database can be reached, once it is known and whenever it changes. */
  reach: { isReached: boolean; error?: string }
  /** The changes of operators, or the results of lookups. `isAnew`: all earlier changes are void. */
  changes: AccountChanges & { isAnew: boolean }
  /** The judgement of the clock that dates entries. */
  clock: ClockNews
  admission: readonly DeskAnswer[]
  cooled: Cooldown
  lifted: Pick<Cooldown, 'place' | 'cause'>
  /** Somebody reads figures, here or at another server. */
  trafficWanted: undefined
  log: { level: 'info' | 'error'; event: string; fields: Record<string, unknown> }
}

/** The first entry of form 3 is in the ledger: no older triwire can use the store from now on. Logged once. */
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

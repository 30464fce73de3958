import type { ClockNews } from '../../accounts/clock.ts'
import type { FoundDebit } from '../../accounts/entries.ts'
import type { DebitRow, Posted, Posting, Withdrawn } from '../../accounts/poster.ts'
import type { Reporting } from '../../accounts/usage/reporting.ts'
import type { TrafficCell } from '../../accounts/usage/traffic.ts'
import type { Recovery } from '../files/spool.ts'
import type { Changes } from './accounts.ts'

/* The messages between the serving thread and the ledger's thread. */

export type WorkerOptions = {
  path: string
  busyMs: number
  pollMs: number
  /** How often the ledger is folded, where that is not as often as usual. */
  foldMs?: number | undefined
  /** At the process' start, and not after the death of a worker: then the client still has what it spooled. */
  drainsSpool: boolean
  /** Whose days figures for reports are kept by. */
  reporting: Reporting
  /** By which the thread before it believed the clock (ruling Y15). */
  offsetMs?: number | undefined
  /** A test's: what is added to the wall clock and to the steady one, in ms. */
  turned?: Float64Array | undefined
}

export type ToLedgerThread =
  /** Answered by `posted`, all such messages in their order. */
  | { type: 'post'; debits: readonly DebitRow[] }
  /** Answered by `withdrawn`. */
  | { type: 'withdraw'; debits: readonly DebitRow[] }
  /** Answered by `givenBack`, all such messages in their order. */
  | { type: 'giveBack'; requestIds: readonly string[] }
  /** Answered by `looked`, after the `changes` that it brings. */
  | { type: 'look' }
  /** Answered by `found`, all such messages in their order. */
  | { type: 'find'; requestId: string }
  /** Requests that cost nothing, and how long all took. Answered by `counted`, all such messages in their order. */
  | { type: 'traffic'; cells: readonly TrafficCell[] }
  | { type: 'uses'; uses: [keyId: string, usedMs: number][] }
  | { type: 'close' }

export type FromLedgerThread =
  | { type: 'ready'; changes: Changes; misfits: string[] }
  /** The spool is posted: before the thread is ready, or later where the clock was in doubt. */
  | { type: 'drained'; recovery: Recovery | undefined }
  | { type: 'clock'; news: ClockNews }
  | { type: 'refused'; error: Error }
  /** One commit: what became of each debit of the oldest messages that were not answered, and the balances after it. */
  | { type: 'posted'; batches: Posting[][]; balances: Posted['balances']; spends: Posted['spends'] }
  | ({ type: 'withdrawn' } & Withdrawn)
  /** One commit: which debits of the oldest messages that were not answered are given back, and the balances after it. */
  | { type: 'givenBack'; batches: string[][]; balances: Posted['balances']; spends: Posted['spends'] }
  | { type: 'changes'; changes: Changes }
  /** False: the store could not be read. */
  | { type: 'looked'; isRead: boolean }
  /** Counters were written, or are kept until they can be. */
  | { type: 'counted'; isWritten: boolean }
  /** Not read: nobody can say. */
  | { type: 'found'; isRead: boolean; debit: FoundDebit | undefined }
  | { type: 'trouble'; message: string; code: number }
  /** A file of the store is gone or another one stands in its place: what is committed now would be lost. */
  | { type: 'lost'; message: string }

import type { Directory } from '../accounts/account.ts'
import type { Admission } from '../accounts/admission.ts'
import type { Ledger } from '../accounts/ledger.ts'
import type { Throttle } from '../accounts/limits.ts'
import type { Sealer } from '../accounts/seal.ts'
import type { Listed, Roster } from '../registers.ts'
import type { Bodies } from './fairness/bodies.ts'
import type { Counting } from './fairness/counting.ts'
import type { Flow } from './fairness/flow.ts'
import type { Readers } from './fairness/readers.ts'
import type { Turns } from './fairness/turns.ts'
import type { LastAnswers } from './last-answers.ts'
import type { CallRecord } from './record.ts'
import type { Snapshots } from './snapshot.ts'
import type { Tracing } from './tracing.ts'

/** The parts that a walk needs. `src/process` builds them. */
export type Gateway = {
  /** The configuration in force and everything that was built from it. */
  snapshots: Snapshots
  directory: Directory
  /** Ids of accounts that this process treats as suspended, whatever the store says. */
  barred: ReadonlySet<string>
  /** Which models fail now. */
  lastAnswers: LastAnswers
  ledger: Ledger
  admission: Admission
  throttle: Throttle
  /** Unix milliseconds; for records and ids. */
  nowMs(): number
  /** Monotonic milliseconds; for deadlines. */
  clockMs(): number
  /** Requests that are being answered. The ticker calls each to check its deadlines. */
  deliveries: Roster<Ticking & DrainHandle & Recorded & Listed>
  /** Attempts that brought a whole answer while the upstream has not closed yet. The ticker ends them. */
  lingering: Roster<Ticking & Listed & { readonly isLingering: boolean }>
  /** Requests that are over for their client and are read on for their usage (rulings C4, C12). */
  readers: Readers
  /** The memory that request bodies hold, and how much is left for more (ruling R18). */
  bodies: Bodies
  /** Decides whether tokens may be counted now. */
  counting: Counting
  /** True while the event loop is noticeably late. Free requests then give way to paid ones (ruling R18). */
  isStrained(): boolean
  /** Shares out the work on streams. */
  flow: Flow
  /** Decides which request begins when not all can. */
  turns: Turns
  /** True while new inference is refused to keep running requests alive (reliability §7). */
  isShedding(): boolean
  sealer: Sealer
  /** Undefined if traces are off. */
  tracing?: Tracing | undefined
  /** Logs a bug of ours that no client's answer can report. */
  reportBug(bug: Error, requestId?: string): void
  /** Scopes a conversation key to an account. The result goes upstream, and picks the upstream account (ruling P6). */
  scopeKey(accountId: string, key: string): string
}

/** An object with deadlines. The one ticker of the process checks them, so that no request has timers of its own. */
export interface Ticking {
  /** Checks every deadline. @param nowMs monotonic */
  tick(nowMs: number): void
}

/** A request that shutdown can end. */
interface DrainHandle {
  /** The process ends: an answer that is not complete is cut and billed (reliability §7). */
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

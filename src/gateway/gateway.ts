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
import type { CallRecord } from './record.ts'
import type { Snapshots } from './snapshot.ts'
import type { Tracing } from './tracing.ts'

/** Every part that a walk needs; main builds it. */
export type Gateway = {
  /** The configuration in force and what was built from it. */
  snapshots: Snapshots
  directory: Directory
  /** Accounts that count as suspended here, by id, whatever the store says of them. */
  barred: ReadonlySet<string>
  ledger: Ledger
  admission: Admission
  throttle: Throttle
  /** Unix milliseconds; for records and ids. */
  nowMs(): number
  /** Monotonic milliseconds; for deadlines. */
  clockMs(): number
  /** Requests between upstream and client; the ticker asks each what its deadlines say. */
  deliveries: Roster<Ticking & DrainHandle & Recorded & Listed>
  /** Attempts that brought a whole answer and whose upstream has not closed; the ticker hangs up in the end. */
  lingering: Roster<Ticking & Listed & { readonly isLingering: boolean }>
  /** Requests that are over for their client and read on for their usage (rulings C4, C12). */
  readers: Readers
  /** What request bodies are held, and how much more there is room for (ruling R18). */
  bodies: Bodies
  /** Who may count tokens. */
  counting: Counting
  /** True while the loop is late enough to be felt: what does not pay makes way (ruling R18). */
  isStrained(): boolean
  /** How the work on streams is shared out. */
  flow: Flow
  /** Who begins when all cannot. */
  turns: Turns
  /** True while new inference is turned away to keep what runs alive (reliability §7). */
  isShedding(): boolean
  sealer: Sealer
  /** Undefined where nobody wants traces. */
  tracing?: Tracing | undefined
  /** Logs a bug of ours for which there is nobody left to tell. */
  reportBug(bug: Error, requestId?: string): void
  /** A key that means nothing outside its account: what is sent upstream, and what picks the upstream account (ruling P6). */
  scopeKey(accountId: string, key: string): string
}

/** What has deadlines: the one ticker of the process asks for them, so that no request has timers of its own. */
export interface Ticking {
  /** Looks at every deadline. @param nowMs monotonic. */
  tick(nowMs: number): void
}

/** What the drain ends. */
export interface DrainHandle {
  /** The process is going: what is not whole by now is cut and billed (reliability §7). */
  shutDown(): void
}

/** What tells how far it is. */
export interface Recorded {
  readonly record: Readonly<CallRecord>
}

/** Lets everything that is under way look at its deadlines. @param nowMs monotonic. */
export function tick({ deliveries, lingering, flow }: Gateway, nowMs: number): void {
  flow.tick(deliveries.size)
  for (const delivery of deliveries) delivery.tick(nowMs)
  for (const attempt of lingering) {
    attempt.tick(nowMs)
    if (!attempt.isLingering) lingering.delete(attempt)
  }
}

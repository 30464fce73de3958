import type { Directory } from '../accounts/account.ts'
import type { Admission } from '../accounts/admission.ts'
import type { Ledger } from '../accounts/ledger.ts'
import type { Throttle } from '../accounts/limits.ts'
import type { Sealer } from '../accounts/seal.ts'
import type { Config } from '../config/config.ts'
import type { Upstreams } from '../upstream/upstreams.ts'

/** Every part that a walk needs; main builds it. */
export type Gateway = {
  /** The configuration in force; a reload puts another in its place, requests under way keep theirs. */
  config(): Config
  directory: Directory
  ledger: Ledger
  admission: Admission
  throttle: Throttle
  upstreams(): Upstreams
  /** Unix milliseconds; for records and ids. */
  nowMs(): number
  /** Monotonic milliseconds; for deadlines. */
  clockMs(): number
  /** Requests between upstream and client; the ticker asks each what its deadlines say. */
  deliveries: Set<Ticking>
  /** Requests whose client left and that are read on for their usage, at most 200 (ruling C4). */
  settling: { count: number }
  /** True while new inference is turned away to keep what runs alive (reliability §7). */
  isShedding(): boolean
  sealer: Sealer
  /** A key that means nothing outside its account: what is sent upstream, and what picks the upstream account (ruling P6). */
  scopeKey(accountId: string, key: string): string
}

/** A request between upstream and client, as the ticker and the drain see it. */
export interface Ticking {
  /** Looks at every deadline. @param nowMs Unix milliseconds. */
  tick(nowMs: number): void
  /** The process is going: what is not whole by now is cut and billed (reliability §7). */
  shutDown(): void
}

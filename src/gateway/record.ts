import type { Outcome } from '../accounts/ledger.ts'
import type { WireName } from '../catalog/model.ts'
import type { Loss } from '../inference/request.ts'
import type { Usage, UsageSource } from '../inference/usage.ts'

/**
 * What the access log says of one request. Names, counts and times only: never content, never a key (ruling U5). The
 * walk fills it in as it learns; `http/` writes it once, when the request is over and settled.
 */
export type CallRecord = {
  id: string
  startedMs: number
  method: string
  path: string
  ip: string
  account?: string
  keyId?: string
  /** The visible first characters of the key. */
  keyPrefix?: string
  wire?: WireName
  model?: string
  modelWire?: WireName
  stream?: boolean
  /** Name of the upstream account that was tried last. */
  upstream?: string
  attempts?: number
  status?: number
  /** Of the error the client was told, or of a fault in a started stream. */
  code?: string
  /** What our side knows of the cause; fixed words, no upstream text. */
  cause?: string
  firstByteMs?: number
  endMs?: number
  usage?: Usage
  usageSource?: UsageSource
  costNanos?: bigint
  outcome: Outcome
  losses?: readonly Loss[]
  flags?: readonly string[]
}

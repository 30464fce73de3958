import type { ClientWire } from '../src/catalog/wire-names.ts'

/**
 * `none`: the client's wire does not have the feature; `own`: a fault of the server; `ours`: a fault of the gateway.
 */
export type Verdict = 'pass' | 'none' | 'own' | 'ours'

/** The result of a feature on a pair of wires, as JSON and as a stream. */
export type Cell = {
  feature: string
  /** `direct` if the server was asked without the gateway. */
  clientWire: ClientWire | 'direct'
  modelWire: ClientWire
  verdict: Verdict
  /** The failures. */
  words: string[]
}

export type Results = {
  server: string
  version: string
  about: string
  cells: Cell[]
  /** The number of answers whose usage was compared with the ledger, and the differences. */
  billed: number
  differing: string[]
  findings: unknown[]
  seconds: number
}

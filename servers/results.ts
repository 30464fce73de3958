import type { ClientWire } from '../src/catalog/wire-names.ts'

/** `pass`, not on the client's wire, the server's own fault, or ours. */
export type Verdict = 'pass' | 'none' | 'own' | 'ours'

/** One feature on one pair, whole and streamed. */
export type Cell = {
  feature: string
  /** Undefined where the server was asked directly. */
  clientWire: ClientWire | 'direct'
  modelWire: ClientWire
  verdict: Verdict
  /** What failed. */
  words: string[]
}

export type Results = {
  server: string
  version: string
  about: string
  cells: Cell[]
  /** Answers whose usage was compared with the ledger, and those that differ. */
  billed: number
  differing: string[]
  findings: unknown[]
  seconds: number
}

import type { ClientWire } from '../src/catalog/wire-names.ts'
import type { FailureName } from './agents/agent.ts'

/** One client on one of its wires with one kind of model, as the suite found it. */
export type Cell = {
  client: string
  package: string
  version: string
  clientWire: ClientWire
  modelWire: ClientWire
  /** What went wrong; nothing when it passed. */
  failures: string[]
  /** What the client has no words for, and why. */
  omitted: string[]
  /** What it does when the model fails once and is well again. */
  after?: Partial<Record<FailureName, After>>
  requests: number
  /** By the ledger, in credits. */
  cost: string
  /** Tokens read from cache, of all that went in, 0 to 1. */
  hitRate: number
  seconds: number
}

export type After = 'recovers' | 'gives up' | 'runs half a call'

export const wires = ['messages', 'chat', 'responses'] as const satisfies readonly ClientWire[]

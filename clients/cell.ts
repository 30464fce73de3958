import type { ClientWire } from '../src/catalog/wire-names.ts'
import type { FailureName } from './agents/agent.ts'

/** A cell of the table: the result of one client on one of its wires with models of one wire. */
export type Cell = {
  client: string
  package: string
  version: string
  clientWire: ClientWire
  modelWire: ClientWire
  /** Empty if all passed. */
  failures: string[]
  /** The cases that were left out, each with its reason. */
  omitted: string[]
  /** For each kind of failure: the reaction of an agent if the model fails only once. */
  after?: Partial<Record<FailureName, After>>
  requests: number
  /** In credits, from the ledger. */
  cost: string
  /** The share of input tokens that were read from cache, 0 to 1. */
  hitRate: number
  seconds: number
}

export type After = 'recovers' | 'gives up' | 'runs half a call'

export const wires = ['messages', 'chat', 'responses'] as const satisfies readonly ClientWire[]

import type { WireName } from '../src/catalog/model.ts'

/** One client on one of its wires with one kind of model, as the suite found it. */
export type Cell = {
  client: string
  package: string
  clientWire: WireName
  modelWire: WireName
  /** What went wrong; nothing when it passed. */
  failures: string[]
  /** What the client has no words for, and why. */
  omitted: string[]
  requests: number
  costNanos: bigint
  /** Tokens read from cache, of all that went in, 0 to 1. */
  hitRate: number
  seconds: number
}

export const wires = ['messages', 'chat', 'responses'] as const satisfies readonly WireName[]

import type { Wire } from './case.ts'

/*
 * An adapter lets `run --adapter NAME` configure, start and stop an installed gateway. It is adapters/NAME/adapter.ts, whose
 * default export is an Adapter. It must not change anything outside of the folder that it is given.
 */

export type Adapter = {
  title: string
  homepage?: string
  /** What the configuration switches on, in sentences. They stand in the report. */
  switchedOn: readonly string[]
  /** Names of `needs` that this gateway has. `prices` needs `readSpent`. */
  features: readonly string[]
  /** The pairs that can be configured, as client>model. Without it: all. Others are unsupported. */
  pairs?: readonly string[]
  /** What the gateway's documentation says it does differently. */
  deviations: readonly Deviation[]
  /**
   * The number of lanes: models of each wire. It is above `jobs`, so that a gateway may rest a failed model for a
   * while.
   */
  lanes: number
  /** How many cases run at once without `--jobs`. Default: 1. */
  jobs?: number
  /**
   * Names of models, if the gateway needs special ones. From lane 2 on, the upstream's name ends with `-` and the lane.
   */
  names?(wire: Wire, lane: number): { client: string; upstream: string }
  /** Says which version is installed, or why it cannot run. */
  find(): Promise<{ version: string } | { missing: string }>
  start(setting: AdapterSetting): Promise<RunningGateway>
}

/**
 * A declared deviation: a case that fails as the gateway's documentation says it would.
 * @property cases ids, or `area/*`
 * @property pairs as client>model, or with a `*` on one side; without it all
 */
export type Deviation = {
  cases: readonly string[]
  pairs?: readonly string[]
  page: string
  says: string
}

/** @property upstream where the model listens, without /v1, and the key that the gateway sends it */
export type AdapterSetting = {
  upstream: { origin: string; key: string }
  models: readonly { wire: Wire; lane: number; client: string; upstream: string }[]
  /** For each million tokens. */
  prices: { input: number; cached: number; cacheWrite: number; output: number }
  /** An empty folder for configuration, data and logs. It is removed afterwards. */
  folder: string
  /** Aborted when the user ends the run. What was started must then be stopped, and `start` must reject. */
  signal: AbortSignal
}

/** @property origin without a trailing slash and without /v1 */
export type RunningGateway = {
  origin: string
  key: string
  /** Headers of a request for a model on this wire, if the key alone does not do. */
  headers?(wire: Wire): Readonly<Record<string, string>>
  /** Returns what all requests so far have cost, at the prices of the setting. */
  readSpent?(): Promise<number>
  stop(): Promise<void>
}

export function adapterNames(wire: Wire, lane: number): { client: string; upstream: string } {
  const name = `bothsides-${wire}${lane > 1 ? `-${lane}` : ''}`
  return { client: name, upstream: name }
}

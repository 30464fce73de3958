import type { Workload } from '../workloads.ts'

/**
 * Where a peer comes from: what registries hold, by their ordinary clients. Versions are pinned. `node`: the one that runs it,
 * where it does not run with ours.
 */
export type Source = { package: string; version: string } & (
  | { from: 'npm'; overrides?: Readonly<Record<string, unknown>>; node?: string }
  | { from: 'PyPI'; extras?: string }
  /** `main` is the package of the module that is built. */
  | { from: 'Go'; main: string }
)

/** What a peer is started with. */
export type Setting = {
  /** What was installed of it. */
  home: string
  /** A folder of its own, empty. */
  place: string
  port: number
  /** Its upstream, which answers below `/v1` and without it. */
  origin: string
  /** The same with a stream of the short answer. */
  streamed: string
  /** For whoever uses the peer, and for whoever administers it. */
  secret: string
  /** @returns the path */
  write(file: string, text: string): string
}

export type Started = { command: readonly string[]; env?: Readonly<Record<string, string>> }

/** A gateway of others that is measured beside ours. To measure another one, add it to the table in peers.ts. */
export type Peer = {
  name: string
  language: string
  source: Source
  /** What it does with a request as it is set up here, beside passing it on. */
  has: string
  /** As its clients ask for it. */
  model: string
  /** Where it is not the same in all rows. */
  modelOf?(workload: Workload): string
  start(setting: Setting): Started
  /** Sets up through its own API what no file can. @returns the key of a client, where that is not the secret */
  prepare?(setting: Setting): Promise<string>
  /** In place of the key as a bearer. */
  headers?(setting: Setting): Readonly<Record<string, string>>
  /** Streams at once, of one event a piece, that it brings at their pace on one core; more are not asked of it. */
  streamsMax?: number
}

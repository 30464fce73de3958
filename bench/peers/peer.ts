import type { Workload } from '../workloads.ts'

/**
 * The registry and the pinned version of a peer, which ordinary clients install. `node`: the version that runs it, if
 * ours does not.
 */
export type Source = { package: string; version: string } & (
  | { from: 'npm'; overrides?: Readonly<Record<string, unknown>>; node?: string }
  | { from: 'PyPI'; extras?: string }
  /** `main` is the package of the module that is built. */
  | { from: 'Go'; main: string }
)

/** The data with which a peer is started. */
export type Setting = {
  /** The folder of its installation. */
  home: string
  /** An empty folder of its own. */
  place: string
  port: number
  /** The origin of its upstream, which answers below `/v1` and without it. */
  origin: string
  /** The same upstream, but with a stream of the short answer. */
  streamed: string
  /** The secret of the peer's client and of its administrator. */
  secret: string
  /** Writes a file into `place`. @returns its path */
  write(file: string, text: string): string
}

export type Started = { command: readonly string[]; env?: Readonly<Record<string, string>> }

/** Another project's gateway that is measured beside ours. To add one, add it to the table in peers.ts. */
export type Peer = {
  name: string
  language: string
  source: Source
  /** The work that it does with a request in this setup, besides passing it on. */
  has: string
  /** The model that its clients ask for. */
  model: string
  /** The model by row, if it differs between rows. */
  modelOf?(workload: Workload): string
  start(setting: Setting): Started
  /** Makes settings through its own API that no file can have. @returns the key of a client, if that is not the secret */
  prepare?(setting: Setting): Promise<string>
  /** Headers that replace the key as a bearer token. */
  headers?(setting: Setting): Readonly<Record<string, string>>
  /** The most streams at once, with one event a piece, whose pace it keeps on one core; it is not measured with more. */
  streamsMax?: number
}

/** One request to a model's endpoint. All headers but ours, credential and content type included, are in `headers`. */
export type UpstreamRequest = {
  /** Name of the upstream in the configuration. */
  upstream: string
  /** The wire's path, e.g. `/v1/messages`. */
  path: string
  headers: readonly (readonly [string, string])[]
  body: Buffer
  /** Picks the upstream account once there are several (ruling P6). */
  affinityKey: string | undefined
}

/** What happened on the wire, before anybody judges it. */
export type TransportFault = {
  /** For the log. */
  cause:
    | 'upstream_connect'
    | 'upstream_dns'
    | 'upstream_tls'
    | 'upstream_reset'
    | 'upstream_protocol'
    | 'upstream_oversize'
  /** A reused connection was reset before any byte came: nothing was processed, once more is safe (ruling U1). */
  isReuseRace: boolean
  /** The request never reached the upstream. */
  isUnsent: boolean
}

/** Who is told. Exactly one of `onEnd` and `onError` comes last, unless the flight was aborted. */
export interface UpstreamListener {
  /** Never for 1xx. @param contentType lower case, without parameters; `''` if there is none. */
  onHead(status: number, contentType: string, headers: Readonly<Record<string, string | string[] | undefined>>): void
  onData(chunk: Buffer): void
  onEnd(): void
  onError(fault: TransportFault): void
}

/** A request under way. */
export interface Flight {
  /** The name of the paying account; for the log. */
  readonly accountName: string
  /** Closes the connection. The listener hears nothing more. */
  abort(): void
  pause(): void
  resume(): void
}

/** The only way out: no connection is made but to the configured upstreams (reliability §1.6). */
export interface Upstreams {
  send(request: UpstreamRequest, listener: UpstreamListener): Flight
  /** Lets what is under way end and opens nothing new: another configuration is in force. */
  retire(): void
  /** Cuts what is under way. */
  close(): Promise<void>
}

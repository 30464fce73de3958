import type { CredentialScheme } from './credential.ts'
import type { Target } from './target.ts'

/** One request to a model's endpoint, which the target names. Its headers are without the credential and what every request has. */
export type UpstreamRequest = {
  headers: readonly (readonly [name: string, value: string])[]
  /** How the model's wire is told who pays. */
  credential: CredentialScheme
  body: Buffer
  /** On a connection of its own: on none that has served before, which may be as dead as the one before it (faults F-U6). */
  isFresh?: boolean
}

/** What happened on the wire, before anybody judges it. */
export type TransportFault = {
  /** For the log. */
  cause:
    | 'upstream_connect'
    | 'upstream_dns'
    | 'upstream_tls'
    /** The proxy cannot be reached, refuses us, or does not reach the upstream. */
    | 'upstream_proxy'
    | 'upstream_reset'
    /** The path to it was lost under a connection that stood: it may be at work on the request. */
    | 'upstream_silent'
    | 'upstream_protocol'
    | 'upstream_oversize'
    /** This process has none left for a connection (faults F-P11): nothing is wrong with the account. */
    | 'no_descriptors'
  /** A reused connection was reset before any byte came, and at once: nothing was processed, once more is safe (ruling U1). */
  isReuseRace: boolean
  /** What TLS stumbled over, by the code that Node or OpenSSL gives it; with `upstream_tls` only. */
  reason?: string
}

/** Who is told. Exactly one of `onEnd` and `onError` comes last, unless the flight was aborted. */
export interface UpstreamListener {
  /** Never for 1xx. @param contentType lower case, without parameters; `''` if there is none. */
  onHead(status: number, contentType: string, headers: ResponseHeaders): void
  onData(chunk: Buffer): void
  onEnd(): void
  onError(fault: TransportFault): void
}

/** By lower-case names; repeated ones joined by a comma. */
export type ResponseHeaders = { get(name: string): string | undefined }

/** How many informational answers are passed over before the upstream counts as broken (faults F-U28). */
export const informationalMax = 10

export type ConnectionLimits = { connectMs: number; headerBytesMax: number }

export type ConnectionTerms = ConnectionLimits & ConnectionWatch

/**
 * Where the bytes were that nobody had asked for (ruling Y14): on an idle connection; after the end of an answer; a success before its
 * request was sent; a 408 that closes a kept connection when a request has just gone out (RFC 9110 15.5.9).
 */
export type UnaskedPlace = 'idle' | 'behind_answer' | 'before_sent' | 'timeout'

/** What connections report to, and their clock. */
export type ConnectionWatch = {
  /** Monotonic, in ms. */
  clockMs(): number
  /** Hears of what failed in reading that is no fault of the upstream's. */
  reportBug(bug: Error): void
  /** Called once for each such connection, when all idle connections of the upstream are closed. */
  onUnasked(upstream: string, place: UnaskedPlace): void
}

/** A request under way. */
export interface Flight {
  /** Closes the connection. The listener hears nothing more. */
  abort(): void
  pause(): void
  resume(): void
  /** Whether the system has taken all of the request's body: nobody here looks at it any more. */
  isSent(): boolean
  /** Whether its writing to a connection has begun: before, the upstream knows nothing of it. */
  wasWritten(): boolean
}

/** The way to one upstream, and its connections. */
export interface Way {
  /** As of `Upstreams`. */
  send(target: Target, request: UpstreamRequest, listener: UpstreamListener): Flight
  retire(): Promise<void>
  close(): Promise<void>
}

/** The only way out: no connection is made but to the configured upstreams (reliability §1.6). */
export interface Upstreams {
  /** @param target of the same configuration as these connections. */
  send(target: Target, request: UpstreamRequest, listener: UpstreamListener): Flight
  /** Lets what is under way end, and then closes its connections: nothing more will be sent. Resolves when all are closed. */
  retire(): Promise<void>
  /** Cuts what is under way, as each listener hears. */
  close(): Promise<void>
}

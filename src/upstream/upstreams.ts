import type { Target, UpstreamRequest } from './target.ts'

/** A failure of the connection, before it is judged. */
export type TransportFault = {
  cause:
    | 'upstream_connect'
    | 'upstream_dns'
    | 'upstream_tls'
    /** The proxy cannot be reached, refuses us, or does not reach the upstream. */
    | 'upstream_proxy'
    | 'upstream_reset'
    /** The path to the upstream was lost on an open connection: the upstream may be at work on the request. */
    | 'upstream_silent'
    | 'upstream_protocol'
    | 'upstream_oversize'
    /** This process has no descriptor left for a connection (faults F-P11): nothing is wrong with the account. */
    | 'no_descriptors'
  /** A reused connection was reset at once, before any byte came. Nothing was processed, so sending again is safe (ruling U1). */
  isReuseRace: boolean
  /** The status with which a proxy refused; undefined if it gave none. */
  proxyStatus?: number | undefined
  /** The code of Node or OpenSSL for a failure of TLS; with `upstream_tls` only. */
  reason?: string
}

/** Receives an answer. Exactly one of `onEnd` and `onError` comes last, unless the flight was aborted. */
export interface UpstreamListener {
  /** Not called for 1xx. @param contentType lower case, without parameters; `''` if there is none. */
  onHead(status: number, contentType: string, headers: ResponseHeaders): void
  onData(chunk: Buffer): void
  onEnd(): void
  /** @param error the error that the fault was judged by, if there was one */
  onError(fault: TransportFault, error?: Error): void
}

/** Headers by lower-case name; repeated ones joined by a comma. */
export type ResponseHeaders = { get(name: string): string | undefined }

/** The most informational answers (1xx) that are skipped before the upstream counts as broken (faults F-U28). */
export const informationalMax = 10

export type ConnectionLimits = { connectMs: number; headerBytesMax: number }

export type ConnectionTerms = ConnectionLimits & ConnectionWatch

/**
 * When bytes came that no request had asked for (ruling Y14). `idle`: on an idle connection. `behind_answer`: after the end
 * of an answer. `before_sent`: a success before the request was sent. `timeout`: a 408 that closes a kept connection just
 * after a request went out (RFC 9110 15.5.9).
 */
export type UnaskedPlace = 'idle' | 'behind_answer' | 'before_sent' | 'timeout'

/** Receives the reports of connections, and is their clock. */
export type ConnectionWatch = {
  /** Monotonic, in ms. */
  clockMs(): number
  /** Called with an error in reading that is our own bug. */
  reportBug(bug: Error): void
  /** Called once for each connection with such bytes, after all idle connections of the upstream were closed. */
  onUnasked(upstream: string, place: UnaskedPlace): void
  /** Called with the `Date` of each answer that has one (ruling Y15). @param host with its port */
  onDate?(host: string, date: string): void
}

/** A request under way. */
export interface Flight {
  /** Closes the connection. The listener is not called any more. */
  abort(): void
  pause(): void
  resume(): void
  /** Whether the system has taken all of the request's body: its memory is not read any more. */
  isSent(): boolean
  /** Whether writing to a connection has begun. Before that, the upstream knows nothing of the request. */
  wasWritten(): boolean
}

/** The only way out: no connection is made but to the configured upstreams (reliability §1.6). */
export interface Upstreams {
  /** @param target of the same configuration as these connections */
  send(target: Target, request: UpstreamRequest, listener: UpstreamListener): Flight
  /** Lets requests under way end, then closes their connections. Nothing more may be sent. Resolves when all are closed. */
  retire(): Promise<void>
  /** Cuts what is under way: each listener gets an error. */
  close(): Promise<void>
}

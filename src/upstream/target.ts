import { bearer, type CredentialHeaders } from '../catalog/credentials.ts'
import type { Model } from '../catalog/model.ts'
import type { Upstream, UpstreamAccount } from '../config/config.ts'
import type { LiveKey } from './live-key.ts'

/**
 * The target of an attempt: an upstream, the account that pays at this upstream, and the model. Targets are compared by
 * identity, so each target exists as one object only.
 */
export type Target = {
  readonly upstream: Upstream
  /** Undefined if the upstream takes no credential. */
  readonly account: UpstreamAccount | undefined
  /** The current key of `account`; undefined if `account` is undefined. */
  readonly key: LiveKey | undefined
  /** The model with the name and the quirks that it has at this upstream. */
  readonly model: Model
  readonly path: string
  readonly streamPath?: string
  /** The headers that are configured for the upstream and the model: each name is followed by its value. */
  readonly headers: readonly string[]
}

/**
 * One request to the endpoint of a target. The credential is added later, and so are the headers that every request
 * has.
 */
export type UpstreamRequest = {
  headers: readonly (readonly [name: string, value: string])[]
  /** Makes the headers that contain the key, in the form of the model's wire. */
  credential: CredentialHeaders
  /** Whether the model is asked for a stream. Some wires have another path for streams. */
  isStream?: boolean
  body: Buffer
  /**
   * Sends the request on a new connection. If a reused connection was dead, other idle ones may be dead too (faults
   * F-U6).
   */
  isFresh?: boolean
}

/** The path and query of one request to a target. */
export function pathFor({ path, streamPath }: Target, { isStream }: { isStream?: boolean }): string {
  return (isStream && streamPath) || path
}

const fixedHeaders = ['content-type', 'application/json', 'accept-encoding', 'identity', 'user-agent', 'triwire']

/** Returns all headers of a request to a target. Each name is followed by its value, and no name occurs twice. */
export function headersOf(target: Target, request: UpstreamRequest): string[] {
  const headers = [...fixedHeaders]
  const set = (name: string, value: string) => headers.splice(placeOf(headers, name), 2, name, value)
  for (let at = 0; at < target.headers.length; at += 2) set(target.headers[at]!, target.headers[at + 1]!)
  headers.push('content-length', String(request.body.length))
  for (const [name, value] of request.headers) {
    const at = placeOf(headers, name)
    if (at === headers.length) headers.push(name, value)
    // A configured header replaces one of the wire. But betas are a list, so the client's follow the configured ones.
    else if (name.endsWith('-beta')) headers[at + 1] += `,${value}`
  }
  for (const [name, value] of credentialOf(target, request, headers)) set(name, value)
  return headers
}

/** Returns the place of a header, or the end of the list if the header is missing. */
function placeOf(headers: readonly string[], name: string): number {
  let at = 0
  while (at < headers.length && headers[at] !== name) at += 2
  return at
}

/**
 * Returns the headers that carry the key of the target's account. Such headers are added only here, for one target, so
 * that no request carries one provider's key to another (U14). An upstream may have its own header for the key (ruling
 * P8).
 * @param headers all other headers, each name followed by its value. A signature covers some of them
 * @returns no header if the account has no key. Local servers, for example, need none.
 */
export function credentialOf(
  target: Target,
  request: UpstreamRequest,
  headers: readonly string[] = [],
): ReturnType<CredentialHeaders> {
  const key = target.key?.value
  if (!key) return []
  const { keyHeader, baseUrl } = target.upstream
  const parts = { baseUrl, path: pathFor(target, request), headers, body: request.body }
  if (target.key?.credential) return target.key.credential.headers(key, parts)
  if (keyHeader === 'authorization') return bearer(key, parts)
  return keyHeader === undefined ? request.credential(key, parts) : [[keyHeader, key]]
}

/** A failure of the connection, before it is judged. */
export type TransportFault = {
  cause:
    | 'upstream_connect'
    | 'upstream_dns'
    | 'upstream_tls'
    /** The proxy cannot be reached, refuses us, or does not reach the upstream. */
    | 'upstream_proxy'
    | 'upstream_reset'
    /** The path to the upstream was lost on an open connection. The upstream may be working on the request. */
    | 'upstream_silent'
    | 'upstream_protocol'
    | 'upstream_oversize'
    /** This process has no descriptor left for a connection (faults F-P11). This is not a fault of the account. */
    | 'no_descriptors'
  /**
   * Whether a reused connection was reset before any byte came. The upstream has processed nothing, so the request can
   * be sent again (ruling U1).
   */
  isReuseRace: boolean
  /** The status of the proxy's refusal; undefined if the refusal has no status. */
  proxyStatus?: number | undefined
  /** The code of Node or OpenSSL for a failure of TLS; with `upstream_tls` only. */
  reason?: string
}

/** Receives an answer. Exactly one of `onEnd` and `onError` comes last, unless the flight was aborted. */
export interface UpstreamListener {
  /**
   * Called when the head of an answer came, but not for 1xx.
   * @param contentType lower case, without parameters; `''` if there is none
   */
  onHead(status: number, contentType: string, headers: ResponseHeaders): void
  onData(chunk: Buffer): void
  onEnd(): void
  /** Called when the request fails. @param error the error from which the fault was derived, if there was one */
  onError(fault: TransportFault, error?: Error): void
}

/** Headers by their lower-case names. The values of a repeated header are joined by a comma. */
export type ResponseHeaders = { get(name: string): string | undefined }

/**
 * The maximum number of informational answers (1xx) that are skipped. After more of them, the upstream counts as broken
 * (faults F-U28).
 */
export const informationalMax = 10

export type ConnectionLimits = { connectMs: number; headerBytesMax: number }

export type ConnectionTerms = ConnectionLimits & ConnectionWatch

/**
 * Says when the upstream sent bytes that no request had asked for (ruling Y14). `idle`: on an idle connection.
 * `behind_answer`: after the end of an answer. `before_sent`: a successful answer was complete before its request was
 * sent. `timeout`: a 408 that closes a kept connection just after a request was sent (RFC 9110 15.5.9).
 */
export type UnaskedPlace = 'idle' | 'behind_answer' | 'before_sent' | 'timeout'

/** The clock of connections, and the receiver of their reports. */
export type ConnectionWatch = {
  /** A monotonic clock, in ms. */
  clockMs(): number
  /** Called with an exception that a bug of the gateway caused while bytes were read. */
  reportBug(bug: Error): void
  /** Called once for each connection that got unrequested bytes, after the upstream's idle connections were closed. */
  onUnasked(upstream: string, place: UnaskedPlace): void
  /** Called with the `Date` of each answer that has one (ruling Y15). @param host with its port */
  onDate?(host: string, date: string): void
}

/** A request under way to an upstream, until its answer has ended. */
export interface Flight {
  /** Closes the connection. The listener is not called any more. */
  abort(): void
  pause(): void
  resume(): void
  /** Whether the system has taken all of the request's body. The body's memory is then not read any more. */
  isSent(): boolean
  /** Whether writing to a connection has begun. Before that, the upstream knows nothing of the request. */
  wasWritten(): boolean
}

/** Sends requests to the upstreams of one configuration. It connects to no other host (reliability §1.6). */
export interface Upstreams {
  /** Sends a request. @param target a target of the configuration for which these connections were made */
  send(target: Target, request: UpstreamRequest, listener: UpstreamListener): Flight
  /**
   * Lets requests under way end, then closes their connections. Nothing more may be sent. Resolves when all are closed.
   */
  retire(): Promise<void>
  /** Cuts all requests under way. Each listener gets an error. */
  close(): Promise<void>
}

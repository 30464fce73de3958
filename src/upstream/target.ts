import { bearer, type CredentialHeaders } from '../catalog/credentials.ts'
import type { Model } from '../catalog/model.ts'
import type { Upstream, UpstreamAccount } from '../config/config.ts'
import type { LiveKey } from './keyring.ts'

/** The target of an attempt: an upstream, the account that pays there, and the model there. One object for each, for equality. */
export type Target = {
  readonly upstream: Upstream
  /** Undefined if the upstream takes no credential. */
  readonly account: UpstreamAccount | undefined
  /** The key of the account as it is now; undefined if `account` is. */
  readonly key: LiveKey | undefined
  /** The model with the name and the quirks that it has at this upstream. */
  readonly model: Model
  readonly path: string
  readonly streamPath?: string
  /** The headers that are configured for the upstream and the model: names and values in turn. */
  readonly headers: readonly string[]
}

/** One request to the endpoint of a target. The credential, and the headers of every request, are added later. */
export type UpstreamRequest = {
  headers: readonly (readonly [name: string, value: string])[]
  /** Makes the headers with the key, as the model's wire has them. */
  credential: CredentialHeaders
  /** The model is asked for a stream, for which some wires have another path. */
  isStream?: boolean
  body: Buffer
  /** Sends it on a new connection, because a reused one may be as dead as the one before it (faults F-U6). */
  isFresh?: boolean
}

/** The path and query of one request to a target. */
export function pathFor({ path, streamPath }: Target, { isStream }: { isStream?: boolean }): string {
  return (isStream && streamPath) || path
}

const fixedHeaders = ['content-type', 'application/json', 'accept-encoding', 'identity', 'user-agent', 'triwire']

/** Returns all headers of a request to a target, names and values in turn. */
export function headersOf(target: Target, request: UpstreamRequest): string[] {
  const headers = [...fixedHeaders, ...target.headers, 'content-length', String(request.body.length)]
  for (const [name, value] of credentialOf(target, request)) headers.push(name, value)
  for (const [name, value] of request.headers) headers.push(name, value)
  return headers
}

/**
 * The headers with the key of the account that pays for an attempt. They are added here, for one target, and nowhere before: so no
 * request can carry one provider's key to another (U14). An upstream may have a header of its own for the key (ruling P8).
 * @returns no header if the account has no key, as local servers need none.
 */
export function credentialOf(target: Target, request: UpstreamRequest): ReturnType<CredentialHeaders> {
  const key = target.key?.value
  if (!key) return []
  const { keyHeader, baseUrl } = target.upstream
  const parts = { baseUrl, path: pathFor(target, request), body: request.body }
  if (keyHeader === 'authorization') return bearer(key, parts)
  return keyHeader === undefined ? request.credential(key, parts) : [[keyHeader, key]]
}

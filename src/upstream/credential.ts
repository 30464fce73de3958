import { bearer, type CredentialHeaders } from '../catalog/credentials.ts'
import { pathFor, type Target } from './target.ts'
import type { UpstreamRequest } from './upstreams.ts'

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

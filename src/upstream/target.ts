import type { Model } from '../catalog/model.ts'
import type { Upstream, UpstreamAccount } from '../config/config.ts'
import type { LiveKey } from './keyring.ts'

/** The destination of one attempt: an upstream, the account there, and its model. Each is one object, compared by identity. */
export type Target = {
  readonly upstream: Upstream
  /** Undefined if the upstream takes no credential. */
  readonly account: UpstreamAccount | undefined
  /** The current key of the account; undefined without an account. */
  readonly key: LiveKey | undefined
  /** The model with the name and the quirks that it has at this upstream. */
  readonly model: Model
  /** The path and query of its requests. */
  readonly path: string
  readonly streamPath?: string
  /** The headers configured for the upstream and the model: names and values in turn. */
  readonly headers: readonly string[]
}

/** The path and query of one request to a target. */
export function pathFor({ path, streamPath }: Target, { isStream }: { isStream?: boolean }): string {
  return (isStream && streamPath) || path
}

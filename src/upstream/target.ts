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
  /** Path and query of its requests. */
  readonly path: string
  readonly streamPath?: string
  /** The headers that are configured for the upstream and the model: names and values in turn. */
  readonly headers: readonly string[]
}

/** The path and query of one request to a target. */
export function pathFor({ path, streamPath }: Target, { isStream }: { isStream?: boolean }): string {
  return (isStream && streamPath) || path
}

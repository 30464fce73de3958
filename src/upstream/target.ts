import type { Model } from '../catalog/model.ts'
import type { Upstream, UpstreamAccount } from '../config/config.ts'
import type { LiveKey } from './keyring.ts'

/** Where one attempt goes: an upstream, who pays there, and what the model is there. One object for each, for equality. */
export type Target = {
  readonly upstream: Upstream
  /** Undefined where the upstream takes no credential. */
  readonly account: UpstreamAccount | undefined
  /** What that pays with, as it is now; undefined as the account. */
  readonly key: LiveKey | undefined
  /** The model with the name and the quirks that it has there. */
  readonly model: Model
  /** Where its requests go: path and query. */
  readonly path: string
  /** Those that are configured for it, the upstream's and the model's: names and values in turn. */
  readonly headers: readonly string[]
}

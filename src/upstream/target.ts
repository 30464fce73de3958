import type { Upstream, UpstreamAccount } from '../config/config.ts'

/** Where one attempt goes: an upstream, who pays there, and what the model is called there. */
export type Target = {
  readonly upstream: Upstream
  /** Undefined where the upstream takes no credential. */
  readonly account: UpstreamAccount | undefined
  readonly upstreamModel: string
}

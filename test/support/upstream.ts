import type { Upstream } from '../../src/config/config.ts'
import { endpointsOf } from '../../src/config/endpoints.ts'

/** Makes an upstream with this address and defaults for all other settings. */
export function upstreamAt(baseUrl: string, more: Partial<Upstream> = {}): Upstream {
  return {
    name: 'sim',
    baseUrl,
    endpoints: endpointsOf({ baseUrl }),
    keyHeader: undefined,
    proxy: undefined,
    ca: undefined,
    accounts: [],
    messagesHeaders: 'anthropic',
    headers: new Map(),
    reuses: true,
    ...more,
  }
}

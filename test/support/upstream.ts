import type { Upstream } from '../../src/config/config.ts'
import { endpointsOf } from '../../src/config/endpoints.ts'

/** An upstream whose configuration has only an address; everything else is the default. */
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

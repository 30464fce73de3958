import type { Page } from '../pure/place.ts'
import type { RangeName } from '../pure/range.ts'

const usual: Partial<Record<Page, RangeName>> = { accounts: '30d', upstreams: '24h', requests: '24h', keys: '30d' }

/** Returns the range of a page whose address has none. */
export function usualRange(page: Page | undefined): RangeName {
  return (page && usual[page]) ?? '7d'
}

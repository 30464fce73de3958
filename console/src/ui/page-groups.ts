import type { Page } from '../pure/place.ts'
import { audience, me } from '../session.ts'

/** The pages of operators, in groups. */
export const groups: readonly (readonly Page[])[] = [
  ['overview', 'finance', 'requests', 'accounts', 'keys', 'models', 'upstreams'],
  ['playground', 'translate', 'setup'],
  ['webhooks', 'audit', 'operators'],
]
/** The pages of owners, in groups, with those that only a lead has. */
const ofOwners: typeof groups = [['overview', 'requests', 'people', 'models'], ['playground', 'setup'], ['sessions']]
/** The pages of finance, in groups. */
const ofFinance: typeof groups = [['finance']]

/** Returns the pages of the person who is signed in, in groups. `me.pages` has the pages of an owner of a key. */
export function shownGroups(): readonly (readonly Page[])[] {
  const { pages } = me.value ?? {}
  if (pages)
    return ofOwners.map((group) => group.filter((page) => pages.includes(page))).filter(({ length }) => length > 0)
  return audience() === 'finance' ? ofFinance : groups
}

/** Whether the person who is signed in has a page. */
export function mayOpen(page: Page): boolean {
  return shownGroups().some((group) => group.includes(page))
}

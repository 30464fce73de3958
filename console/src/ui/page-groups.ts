import type { Page } from '../pure/place.ts'
import { audience } from '../session.ts'

/** The pages of operators, in groups. */
export const groups: readonly (readonly Page[])[] = [
  ['overview', 'finance', 'requests', 'accounts', 'keys', 'models', 'upstreams'],
  ['playground', 'translate', 'setup'],
  ['webhooks', 'audit', 'operators'],
]
/** The pages of the others, in groups. */
const ofOthers = { finance: [['finance']], owner: [['overview', 'models', 'setup']] } as const

/** The pages of the person who is signed in, in groups. */
export function shownGroups(): readonly (readonly Page[])[] {
  const who = audience()
  return who === 'operator' ? groups : ofOthers[who]
}

/** Whether the person who is signed in has a page. */
export function mayOpen(page: Page): boolean {
  return shownGroups().some((group) => group.includes(page))
}

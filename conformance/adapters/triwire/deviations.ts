import type { Deviation } from '../../src/adapter.ts'

/** What triwire does differently, each with the section of its specification that says so. */
export const deviations: readonly Deviation[] = [
  {
    cases: ['requests/chat-responses-cache-key'],
    page: 'docs/rulings.md, P6',
    says: 'The key of a conversation goes upstream scoped to the account, so that two customers never share one.',
  },
]

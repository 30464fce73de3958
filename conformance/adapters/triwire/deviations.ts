import type { Deviation } from '../../src/adapter.ts'

/** What triwire does differently, each with the section of its specification that says so. */
export const deviations: readonly Deviation[] = [
  {
    cases: ['requests/chat-responses-cache-key'],
    page: 'docs/rulings.md, P6',
    says: 'The key of a conversation goes upstream scoped to the account, so that two customers never share one.',
  },
  {
    cases: ['robustness/client-that-leaves-ends-the-model'],
    pairs: ['*>chat'],
    page: 'docs/rulings.md, C12',
    says: 'A stream whose usage comes only at its end is read on for 10 s at most, for an exact bill; `read_on: 0` turns that off.',
  },
]

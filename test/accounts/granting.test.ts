import assert from 'node:assert/strict'
import test from 'node:test'
import type { Account, Directory } from '../../src/accounts/account.ts'
import { createCalendar, utc } from '../../src/accounts/calendar.ts'
import { createGranting } from '../../src/accounts/granting.ts'

test('Y20 Y15 each month has its grant, though the store still dates the first one in the month before', async () => {
  // The clock of this server is ahead of the store's. No request of the account has come in December.
  let nowMs = Date.UTC(2027, 0, 1) + 2_000
  let storesMonth = '2026-12'
  const account = { id: 'acct_1', name: 'one', state: 'active', grantMonth: '2026-11' } as Account
  const posted: string[] = []
  const grant = async () => !posted.includes(storesMonth) && posted.push(storesMonth) > 0
  const readAgain = async () => {
    account.grantMonth = posted.at(-1)
  }
  const { postAll } = createGranting({
    books: async () => ({ grant }),
    directory: { listKnown: () => [account], readAgain } as unknown as Directory,
    ...{ nowMs: () => nowMs, calendar: createCalendar(utc), log: () => assert.fail() },
  })
  await postAll()
  storesMonth = '2027-01'
  nowMs += 5_000
  await postAll()
  assert.deepEqual([posted, account.grantMonth], [['2026-12', '2027-01'], '2027-01'])
})

test('Y20 Y15 a grant that failed while the clock was ahead is tried again as soon as it is due', async () => {
  let nowMs = Date.UTC(2027, 0, 1, 12)
  let isRight = false
  const account = { id: 'acct_1', name: 'one', state: 'active', grantMonth: '2026-12' } as Account
  const logged: string[] = []
  const { postAll } = createGranting({
    books: async () => ({
      async grant() {
        if (!isRight) throw new Error('the clock is in doubt')
        return true
      },
    }),
    directory: { listKnown: () => [account] } as unknown as Directory,
    ...{ nowMs: () => nowMs, calendar: createCalendar(utc), log: (_, event) => void logged.push(event) },
  })
  await postAll()
  assert.deepEqual([logged, account.grantMonth], [['grant_failed'], '2026-12'])
  isRight = true
  nowMs = Date.UTC(2027, 0, 1)
  await postAll()
  assert.equal(account.grantMonth, '2027-01')
})

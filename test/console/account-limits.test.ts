import assert from 'node:assert/strict'
import test from 'node:test'
import { limitChanges, limitTexts, spellBudget } from '../../console/src/pure/account-limits.ts'

const account = {
  ...{ id: 'acct_1', name: 'one', state: 'active' as const, balance: '7', held: '0' },
  budget: { credits: '500', per: 'month' as const, spent: '3', held: '0', renews_at: null },
  ...{ rpm: 60, warn: ['50', '0.5'], plan: 'gold', grant: { credits: '100', lapse: true, last: null } },
  ...{ external_id: null, metadata: null },
}

test('Y20 console: limits of an account are written as the API reads them, and left empty if there are none', () => {
  assert.deepEqual(limitTexts(account), {
    ...{ budget: '500/month', rpm: '60', warn: '50,0.5', plan: 'gold', grant: '100/month', lapse: 'lapses' },
  })
  const none = { ...account, budget: null, rpm: null, warn: null, plan: null, grant: null }
  assert.deepEqual(limitTexts(none), { budget: '', rpm: '', warn: '', plan: '', grant: '', lapse: 'stays' })
  assert.equal(spellBudget({ ...account.budget, per: null }), '500')
})

test('Y20 console: only edited limits are sent, and a grant together with the rule for its unused rest', () => {
  const said = limitTexts(account)
  const cases: readonly [changes: Record<string, string | null>, said: object, body: object][] = [
    [{ budget: '5/day', rpm: null }, {}, { budget: '5/day', rpm: null }],
    [{ grant: '7/month' }, { grant: ' 7/month ' }, { grant: '7/month', lapse: true }],
    [{ lapse: 'stays' }, { lapse: 'stays' }, { grant: '100/month', lapse: false }],
    [{ grant: null, plan: null }, { grant: '' }, { grant: null, plan: null }],
    [{ lapse: 'lapses' }, { grant: '', lapse: 'lapses' }, { grant: null }],
    [{}, {}, {}],
  ]
  for (const [changes, now, body] of cases) assert.deepEqual(limitChanges(changes, { ...said, ...now }), body)
})

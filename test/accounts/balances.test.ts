import assert from 'node:assert/strict'
import test from 'node:test'
import { createBalances } from '../../src/accounts/live-accounts.ts'

test('C5 an amount due is not counted for an account whose balance the store has not reported; the store will include it', () => {
  const balances = createBalances()
  balances.owe('acct_1', 5n)
  assert.equal(balances.get('acct_1'), undefined)
  balances.set('acct_1', 7n)
  assert.deepEqual(balances.get('acct_1'), { balanceNanos: 7n, owedNanos: 0n, heldNanos: 0n, running: 0 })
})

test('C5 an amount due stays deducted, whatever the store reports meanwhile, until the store has it', () => {
  const balances = createBalances()
  balances.set('acct_1', 10n)
  balances.owe('acct_1', 3n)
  assert.equal(balances.get('acct_1')!.balanceNanos, 7n)
  balances.set('acct_1', 20n)
  assert.equal(balances.get('acct_1')!.balanceNanos, 17n)
  balances.owe('acct_1', -3n)
  balances.set('acct_1', 17n)
  assert.deepEqual(balances.get('acct_1'), { balanceNanos: 17n, owedNanos: 0n, heldNanos: 0n, running: 0 })
})

import assert from 'node:assert/strict'
import test from 'node:test'
import { createBalances } from '../../src/accounts/balances.ts'

test('C5 what is due of an account that the store has not told of is counted nowhere; the store will tell it', () => {
  const balances = createBalances()
  balances.owe('acct_1', 5n)
  assert.equal(balances.get('acct_1'), undefined)
  balances.set('acct_1', 7n)
  assert.deepEqual(balances.get('acct_1'), { balanceNanos: 7n, owedNanos: 0n, heldNanos: 0n, running: 0 })
})

test('C5 what is due stays taken off, whatever the store says meanwhile, until the store has it', () => {
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

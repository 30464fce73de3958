import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { findDoubt, readAmount } from '../../console/src/pure/amount.ts'
import { findKeyFaults } from '../../console/src/pure/first-key.ts'
import { checkLabel } from '../../src/accounts/book-rules.ts'
import { parseBudget } from '../../src/accounts/budget.ts'
import { characters } from '../support/characters.ts'

const isRefused = (check: () => void): boolean => {
  try {
    check()
    return false
  } catch {
    return true
  }
}
const faultsOf = (label: string, budget: string) => findKeyFaults({ label, budget }).map(({ pointer }) => pointer)

test('CON-2 the form of a new account refuses the labels and budgets of its key that the gateway would refuse', () => {
  assert.deepEqual(faultsOf('ci', '5/day'), [])
  assert.deepEqual(faultsOf('', ''), [])
  assert.deepEqual(faultsOf('', 'none'), [])
  assert.deepEqual(faultsOf('sk-tri-canary', '5/year'), ['/label', '/budget'])
  assert.deepEqual(faultsOf('a\u0000b', '1.000'), ['/label', '/budget'])
  const amount = fc.stringMatching(/^[-+]?\d{0,12}([.,' ]\d{0,10})?$/)
  const budget = fc
    .tuple(amount, fc.constantFrom('', '/day', ' / week', '/month', '/year', '/', 'x'))
    .map((p) => p.join(''))
  fc.assert(
    fc.property(budget, (text) => {
      const typed = text.trim()
      const expected =
        typed !== '' && (findDoubt(typed) !== undefined || isRefused(() => parseBudget(readAmount(typed))))
      assert.deepEqual(faultsOf('', text), expected ? ['/budget'] : [], text)
    }),
  )
  const label = fc.oneof(
    fc.string({ unit: characters, maxLength: 120 }),
    fc.constantFrom('sk-tri-', 'tri-op-', 'tri-at-', 'tri-rt-', 'tri-', 'x'.repeat(100), 'x'.repeat(101)),
  )
  fc.assert(
    fc.property(label, (text) => {
      const expected = text.trim() !== '' && isRefused(() => checkLabel(text.trim(), 'acct'))
      assert.deepEqual(faultsOf(text, ''), expected ? ['/label'] : [], JSON.stringify(text))
    }),
  )
})

import assert from 'node:assert/strict'
import test from 'node:test'
import { tellEvents } from '../../console/src/pure/webhook-events.ts'
import { usualEvents, webhookEvents } from '../../src/accounts/warnings.ts'

test('a webhook gets everything if it has all usual events, and not if it has as many others', () => {
  assert.equal(tellEvents(usualEvents).short, 'everything')
  assert.equal(tellEvents(webhookEvents).short, 'everything')
  for (const event of usualEvents)
    assert.notEqual(tellEvents(webhookEvents.filter((one) => one !== event)).short, 'everything')
  assert.equal(tellEvents(['credit_low', 'key_budget_80']).short, 'credit low, key budget at 80 %')
})

import assert from 'node:assert/strict'
import test from 'node:test'
import { GatewayError } from '../../src/errors.ts'
import { ClientGone } from '../../src/gateway/call.ts'
import type { CallRecord } from '../../src/gateway/record.ts'
import { endRecord } from '../../src/http/routes.ts'
import { until } from '../support/waiting.ts'

type State = { isBegun: boolean; isOver: boolean }

/** Lets a walk end as it says, and shows what became of its answer and its record. */
async function end(walk: Promise<void>, state: State, outcome?: CallRecord['outcome']) {
  const told: { bug: unknown; record: CallRecord }[] = []
  const sent: GatewayError[] = []
  let cuts = 0
  const record = { id: 'req_1', ...(outcome && { outcome }) } as CallRecord
  const { follow } = endRecord({
    ownPage: undefined,
    exchange: { ...state, destroy: () => void cuts++ },
    record,
    listeners: [(record, bug) => void told.push({ bug, record })],
    sinceMs: () => 7,
    answer: (error) => void sent.push(error),
  })
  follow(walk)
  await until(() => told.length === 1)
  assert.equal(record.endMs, 7)
  const bug = told[0]!.bug as Error | undefined
  return { cuts, sent: sent.map(({ code }) => code), bug: bug?.message, outcome: record.outcome, status: record.status }
}

const done = Promise.resolve()
const over = { isBegun: true, isOver: true }
const begun = { isBegun: true, isOver: false }
const fresh = { isBegun: false, isOver: false }
const nothing = { cuts: 0, sent: [], bug: undefined, outcome: undefined, status: undefined }

test('F-P7 a walk that ends with an open answer has it cut off, and logged as a bug of ours', async () => {
  assert.deepEqual(await end(done, over), nothing)
  assert.deepEqual(await end(done, begun), { ...nothing, cuts: 1, bug: 'an answer was left open: no outcome' })
  assert.deepEqual(await end(done, fresh, 'ok'), {
    ...nothing,
    cuts: 1,
    outcome: 'ok',
    bug: 'an answer was left open: ok',
  })
  assert.deepEqual(await end(done, fresh, 'client_abort'), { ...nothing, outcome: 'client_abort' })
})

test('spec 7 a walk that throws is answered once if its answer has not begun, and cut off if it has', async () => {
  const slow = new GatewayError('invalid_body', 'late', { status: 408 })
  const refused = { ...nothing, sent: ['invalid_body'], outcome: 'client_timeout', status: 408 }
  assert.deepEqual(await end(Promise.reject(slow), fresh), refused)
  assert.deepEqual(await end(Promise.reject(slow), begun), { ...refused, cuts: 1, sent: [], status: undefined })
  assert.deepEqual(await end(Promise.reject(slow), over), { ...refused, cuts: 1, sent: [], status: undefined })
  const bug = { ...nothing, sent: ['internal_error'], bug: 'ours', outcome: 'internal_error', status: 500 }
  assert.deepEqual(await end(Promise.reject(new Error('ours')), fresh), bug)
  assert.deepEqual(await end(Promise.reject(new ClientGone()), fresh), { ...nothing, outcome: 'client_abort' })
})

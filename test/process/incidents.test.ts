import assert from 'node:assert/strict'
import test from 'node:test'
import type { ClockBook, ClockNews } from '../../src/accounts/clock.ts'
import type { LedgerBlock } from '../../src/accounts/ledger.ts'
import type { Gateway } from '../../src/gateway/gateway.ts'
import type { PoolRow } from '../../src/upstream/pool.ts'
import { watchIncidents } from '../../src/webhooks/messages.ts'
import { signWebhook } from '../../src/webhooks/send.ts'

const row = (model: string, state: PoolRow['state'], account = 'a') =>
  ({ model, upstream: 'up', account, priority: 0, state, cause: 'status_401' }) as PoolRow

/** A gateway as far as incidents see it. */
function start() {
  const seen = { block: undefined as LedgerBlock | undefined, rows: [row('m', 'ready'), row('n', 'ready')] }
  const backlog = { waiting: 3, spooled: 2, oldestMs: 1_500.7, blockedAccounts: 0 }
  const clock: Pick<ClockBook, 'news' | 'text'> = { news: undefined, text: undefined }
  const gateway = {
    nowMs: () => 7,
    ledger: { whyBlocked: () => seen.block, backlog: () => backlog } as Gateway['ledger'],
    snapshots: {
      current: { pool: { list: () => seen.rows }, config: { catalog: { entries: [] } } },
    } as unknown as Gateway['snapshots'],
  }
  return { seen, backlog, clock, look: watchIncidents(gateway, clock) }
}

test('X15 a ledger that takes no debits is reported once until it takes them again', () => {
  const { seen, look } = start()
  assert.deepEqual(look(), [])
  seen.block = 'stuck'
  const [told, ...more] = look()
  assert.deepEqual([told?.event, told?.atMs, more], ['ledger_unwritable', 7, []])
  assert.deepEqual(told?.data, { queued: 3, spooled: 2, oldest_ms: 1_501, all: true, accounts: 0 })
  assert.deepEqual(look(), [])
  seen.block = undefined
  assert.deepEqual(look(), [])
  seen.block = 'stuck'
  const [again] = look()
  assert.notEqual(again?.id, told?.id)
})

test('X15 Y16 a ledger that takes no debits of some accounts is reported too, with the number of accounts', () => {
  const { backlog, look } = start()
  backlog.blockedAccounts = 2
  assert.deepEqual(
    look().map(({ event, data }) => [event, data['all'], data['accounts']]),
    [['ledger_unwritable', false, 2]],
  )
  assert.deepEqual(look(), [])
})

test('X15 Y16 a ledger that takes no debits at all, but refuses only accounts whose debits wait, does not claim to refuse all', () => {
  const { seen, backlog, look } = start()
  seen.block = 'stalled'
  backlog.blockedAccounts = 2
  assert.deepEqual(
    look().map(({ event, data }) => [event, data['all'], data['accounts']]),
    [['ledger_unwritable', false, 2]],
  )
})

test('Y15 X15 a wrong clock is reported once until it is right, and each of its problems separately', () => {
  const { clock, look } = start()
  const turn = (problem: ClockNews['problem']) =>
    Object.assign(clock, { news: { problem } as ClockNews, text: problem && `it is ${problem}` })
  assert.deepEqual(look(), [])
  turn('ahead')
  const [told, ...more] = look()
  assert.deepEqual([told?.event, told?.atMs, told?.data], ['clock_wrong', 7, { problem: 'ahead', text: 'it is ahead' }])
  assert.deepEqual([more, look()], [[], []])
  turn('moved')
  assert.deepEqual(
    look().map(({ data }) => data['problem']),
    ['moved'],
  )
  turn(undefined)
  assert.deepEqual(look(), [])
  turn('moved')
  assert.equal(look().length, 1)
})

test('X15 a model is down if none of its upstream accounts may be asked, each model by itself', () => {
  const { seen, look } = start()
  seen.rows = [row('m', 'cooling'), row('m', 'off', 'b'), row('n', 'cooling'), row('n', 'trial', 'b')]
  const [told, ...more] = look()
  assert.deepEqual([told?.event, told?.data['model'], more], ['upstream_down', 'm', []])
  const account = { upstream: 'up', cause: 'status_401' }
  assert.deepEqual(told?.data['upstreams'], [
    { ...account, account: 'a', state: 'cooling' },
    { ...account, account: 'b', state: 'off' },
  ])
  seen.rows = [row('m', 'cooling'), row('n', 'no_key')]
  assert.deepEqual(
    look().map(({ data }) => data['model']),
    ['n'],
  )
  // A model that a reload has taken away is no incident any more.
  seen.rows = [row('n', 'no_key')]
  look()
  seen.rows = [row('m', 'cooling'), row('n', 'no_key')]
  assert.deepEqual(
    look().map(({ data }) => data['model']),
    ['m'],
  )
  // Two processes see two incidents.
  const other = start()
  other.seen.block = 'stuck'
  seen.block = 'stuck'
  assert.notEqual(other.look()[0]?.id, look()[0]?.id)
})

test('X15 a reported outage does not end while its model gets only trial requests', () => {
  const { seen, look } = start()
  const ids = new Set<string>()
  const models = () =>
    look().map(({ id, data }) => {
      ids.add(id)
      return data['model']
    })
  seen.rows = [row('m', 'cooling'), row('n', 'trial')]
  assert.deepEqual(models(), ['m'])
  seen.rows = [row('m', 'trial'), row('n', 'cooling')]
  assert.deepEqual(models(), ['n'])
  seen.rows = [row('m', 'cooling'), row('n', 'cooling')]
  assert.deepEqual(models(), [])
  seen.rows = [row('m', 'ready'), row('n', 'cooling')]
  assert.deepEqual(models(), [])
  seen.rows = [row('m', 'cooling'), row('n', 'cooling')]
  assert.deepEqual(models(), ['m'])
  assert.equal(ids.size, 3)
})

test('X15 the signature is that of Standard Webhooks', () => {
  // The example of their libraries (https://github.com/standard-webhooks/standard-webhooks).
  assert.equal(
    signWebhook(
      'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      'msg_p5jXN8AQM9LWM0D4loKWxJek',
      1614265330,
      '{"test": 2432232314}',
    ),
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  )
})

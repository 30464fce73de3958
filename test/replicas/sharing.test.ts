import assert from 'node:assert/strict'
import test from 'node:test'
import { type CountedFailures, createRemoteThrottle } from '../../src/accounts/remote-throttle.ts'
import type { Cooldown } from '../../src/accounts/server-store.ts'
import { CooldownBoard } from '../../src/store/postgres/cooldown-board.ts'
import type { Transaction } from '../../src/store/postgres/database.ts'
import { countFailures, readFailures } from '../../src/store/postgres/shared-limits.ts'
import { Steering } from '../../src/store/postgres/steering.ts'
import { withoutPostgres } from '../support/postgres.ts'
import { clusterOfFile, openShared } from './cluster.ts'

const cluster = clusterOfFile()
const skip = withoutPostgres()

/** Three servers' throttles over one store. */
function throttlesOver(database: Transaction) {
  const counted: number[] = []
  const state = { isSilent: false, nowMs: 0 }
  const count = async (failures: readonly (readonly [string, number])[]): Promise<CountedFailures[]> => {
    counted.push(failures.length)
    if (state.isSilent) throw new Error('silent')
    return readFailures(database, failures)
  }
  const throttles = [1, 2, 3].map(() =>
    createRemoteThrottle(count, { failedAuthPerMinute: () => 10, clockMs: () => state.nowMs }),
  )
  return { throttles, counted, state }
}

test('R4 X7: over three servers ten failures a minute are unthrottled, whichever server sees them', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'throttle')
  const { throttles } = throttlesOver(store.operator)
  for (const ip of ['192.0.2.1', '2001:db8::1']) {
    const told = await Promise.all(
      Array.from({ length: 60 }, (_, n) => throttles[n % 3]!.fail(ip === '192.0.2.1' ? ip : `2001:db8::${n + 1}`)),
    )
    assert.equal(told.filter(({ throttled }) => !throttled).length, 10)
    for (const { throttled, retryAfterSeconds } of told)
      assert.ok(!throttled || (retryAfterSeconds >= 1 && retryAfterSeconds <= 60))
  }
})

test('R4 R16: an address known to be over its limit causes no query until its window ends', { skip }, async () => {
  const store = await openShared(cluster(), 'known')
  const { throttles, counted, state } = throttlesOver(store.operator)
  const [one, other] = throttles
  await Promise.all(Array.from({ length: 10 }, () => one!.fail('192.0.2.1')))
  assert.deepEqual([one!.isThrottled('192.0.2.1'), other!.isThrottled('192.0.2.1')], [true, false])
  const calls = counted.length
  assert.equal((await one!.fail('192.0.2.1')).throttled, true)
  assert.equal(counted.length, calls)
  assert.equal((await other!.fail('192.0.2.1')).throttled, true)
  assert.equal(other!.isThrottled('::ffff:192.0.2.1'), true)
  // A minute later by every clock.
  state.nowMs += 60_001
  await store.operator.query('UPDATE triwire.failures SET window_ms = window_ms - 60001')
  assert.equal(one!.isThrottled('192.0.2.1'), false)
  assert.equal((await one!.fail('192.0.2.1')).throttled, false)
})

test('R4 C5: while the store does not respond, each server counts for itself', { skip }, async () => {
  const store = await openShared(cluster(), 'silent')
  const { throttles, state } = throttlesOver(store.operator)
  state.isSilent = true
  const told = await Promise.all(Array.from({ length: 15 }, () => throttles[0]!.fail('192.0.2.1')))
  assert.equal(told.filter(({ throttled }) => !throttled).length, 10)
  assert.equal(throttles[0]!.isThrottled('192.0.2.1'), true)
  assert.equal((await throttles[0]!.fail('192.0.2.2')).throttled, false)
  state.isSilent = false
})

test('U1 X7: a cooldown reaches the other servers once, and the longest wait holds', { skip }, async () => {
  const store = await openShared(cluster(), 'cooldowns')
  const heard: Cooldown[][] = [[], []]
  const boards = heard.map(
    (list, n) =>
      new CooldownBoard(store.operator, () => `r${n} (${n})`, {
        cooled: (cooldown) => void list.push(cooldown),
        lifted: () => {},
      }),
  )
  const cooldown: Cooldown = {
    place: '["m","u"]',
    forMs: 200_000,
    cause: 'upstream_429',
    tell: 'capacity',
    cool: 'now',
  }
  const beganMs = performance.now()
  await boards[0]!.cool(cooldown)
  await boards[0]!.cool({ ...cooldown, forMs: 20_000, cause: 'shorter' })
  for (const board of boards) await board.look()
  for (const board of boards) await board.look()
  const passedMs = performance.now() - beganMs
  for (const [n, list] of heard.entries()) {
    assert.deepEqual(
      list.map(({ forMs, ...rest }) => rest),
      // Of what this server has met itself nobody else is named.
      [{ place: '["m","u"]', cause: 'upstream_429', tell: 'capacity', cool: 'now', by: [undefined, 'r0 (0)'][n] }],
    )
    // What has passed since is taken away; each of two times is one of whole milliseconds.
    assert.ok(list[0]!.forMs >= 200_000 - passedMs - 2 && list[0]!.forMs <= 200_000, `${list[0]!.forMs}`)
  }
  await boards[1]!.cool({ ...cooldown, forMs: 600_000, cause: 'longer', tell: 'account' })
  await boards[0]!.look()
  assert.deepEqual([heard[0]![1]!.cause, heard[0]!.length], ['longer', 2])
})

test('SCA-13 a cooldown from before the clock was set back does not count, and a disabled account stays disabled', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'set_back')
  const { told, board, other } = openTwoBoards(store.operator)
  const cooldown: Cooldown = { place: '["m","u"]', forMs: 300_000, cause: 'old', tell: 'capacity', cool: 'now' }
  await other.cool(cooldown)
  await other.disable('["m","v"]', 0)
  for (const aheadMs of [3_600_000, 730 * 86_400_000]) {
    await store.operator.query(`UPDATE triwire.cooldowns SET until_ms = until_ms + ${aheadMs}`)
    await board.look()
    assert.deepEqual(new Set(told), new Set(['cooled disabled']))
  }
  await other.cool({ ...cooldown, forMs: 1_000, cause: 'new' })
  await board.enable('["m","v"]', 0)
  await board.look()
  assert.deepEqual(told.slice(-2), ['lifted disabled', 'cooled new'])
})

/** Of one server, with what it was told, and of another. */
function openTwoBoards(database: Transaction) {
  const told: string[] = []
  const board = new CooldownBoard(database, () => 'one', {
    cooled: ({ cause }) => void told.push(`cooled ${cause}`),
    lifted: ({ cause }) => void told.push(`lifted ${cause}`),
  })
  const other = new CooldownBoard(database, () => 'other', { cooled: () => {}, lifted: () => {} })
  return { told, board, other }
}

test('X9 X7: a cooldown lifted before its own server has looked is lifted there too, once', { skip }, async () => {
  const store = await openShared(cluster(), 'lifted')
  const { told, board, other } = openTwoBoards(store.operator)
  const cooldown = { place: 'p', forMs: 600_000, cause: 'disabled', tell: 'account', cool: 'now' } as const
  await board.cool(cooldown)
  await other.lift('p')
  for (let n = 0; n < 2; n++) await board.look()
  assert.deepEqual(told, ['lifted disabled'])
  await board.cool(cooldown)
  for (let n = 0; n < 2; n++) await board.look()
  await other.lift('p')
  for (let n = 0; n < 2; n++) await board.look()
  assert.deepEqual(told.slice(1), ['cooled disabled', 'lifted disabled'])
})

test('X9 X7: a cooldown lifted and set again between two looks is both for a server that looks then', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'again')
  const { told, board, other } = openTwoBoards(store.operator)
  const cooldown = { place: 'p', tell: 'account', cool: 'now' } as const
  await other.cool({ ...cooldown, forMs: 10 ** 12, cause: 'disabled' })
  await board.look()
  await other.lift('p')
  await other.cool({ ...cooldown, forMs: 300_000, cause: 'upstream_401' })
  for (let n = 0; n < 2; n++) await board.look()
  assert.deepEqual(told, ['cooled disabled', 'lifted disabled', 'cooled upstream_401'])
})

/** What operators want at a server that can lose the database, with a clock of its own. */
function openSteering({ query }: Transaction) {
  const state = { isAway: false, nowMs: 0 }
  const away: Transaction = {
    query: async (...asked) => {
      if (state.isAway) throw new Error('away')
      return query(...asked)
    },
  }
  const board = new CooldownBoard(away, () => 'one', { cooled: () => {}, lifted: () => {} })
  return { state, steering: new Steering(board, () => state.nowMs) }
}

test('X9 X7: of operators’ commands during a database outage the last is written, unless another server disabled the account since', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'wishes')
  const { other } = openTwoBoards(store.operator)
  const { state, steering } = openSteering(store.operator)
  const disabled = async () => {
    const rows = await store.operator.query('SELECT place, met_by FROM triwire.cooldowns ORDER BY place')
    return rows.map(({ place, met_by: by }) => `${place} by ${by}`)
  }
  for (const place of ['before', 'since', 'anew']) await other.disable(place, 120_000)
  steering.take('disable', 'own')
  await steering.write()
  state.isAway = true
  for (const place of ['before', 'since', 'anew', 'own']) steering.take('enable', place)
  for (const wish of ['disable', 'enable', 'disable'] as const) steering.take(wish, 'often')
  await steering.write()
  // A minute ago, by its clock; of what is disabled anew it could not know.
  state.nowMs = 60_000
  steering.take('enable', 'anew')
  await steering.write()
  for (const place of ['since', 'anew']) {
    await other.lift(place)
    await other.disable(place, 30_000)
  }
  state.isAway = false
  await steering.write()
  assert.deepEqual(await disabled(), ['often by one', 'since by other'])
  // It is disabled since it was wanted: what was wanted later, and is written later, ends it.
  const [row] = await store.operator.query(
    `SELECT (until_ms - triwire.now_ms()) / 1000 - 3153600000 AS s FROM triwire.cooldowns WHERE place = 'often'`,
  )
  assert.ok(Number(row!['s']) <= -60, `${row!['s']}`)
  // What is written is not written again.
  await other.lift('often')
  await steering.write()
  assert.deepEqual(await disabled(), ['since by other'])
})

test('X9: of commands that cannot be written the newest thousand are kept', async () => {
  let isAway = true
  const told: string[] = []
  const tell = async (place: string) => {
    if (isAway) throw new Error('away')
    told.push(place)
  }
  const steering = new Steering({ disable: tell, enable: tell, lift: tell }, () => 0)
  for (let n = 1; n <= 1_000; n++) steering.take('disable', `p${n}`)
  steering.take('enable', 'p1')
  steering.take('disable', 'one more')
  await steering.write()
  isAway = false
  await steering.write()
  assert.deepEqual([told.length, told[0], ...told.slice(-2)], [1_000, 'p3', 'p1', 'one more'])
})

test('R4: failures are written in one sorted call of the database, in whatever order the addresses arrive', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'counted')
  const told = await readFailures(store.operator, [
    ['a', 2],
    ['b', 1],
  ])
  const again = await readFailures(store.operator, [['a', 3]])
  assert.deepEqual([told.map(({ count }) => count), again[0]!.count], [[2, 1], 5])
  assert.ok(countFailures.name.startsWith('triwire.count_failures_'))
})

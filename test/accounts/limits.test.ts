import assert from 'node:assert/strict'
import test from 'node:test'
import { createThrottle, createWindows, ipKey } from '../../src/accounts/limits.ts'

const minuteMs = 60_000

test('F-C43 of 1,000 simultaneous requests exactly 300 get a place, the others a whole number of seconds to wait', () => {
  const windows = createWindows({ limit: 300, windowMs: minuteMs, clockMs: () => 5 })
  const places = Array.from({ length: 1_000 }, () => windows.take('acct_1'))
  assert.equal(places.filter((place) => place.ok).length, 300)
  assert.deepEqual(places.at(-1), { ok: false, retryAfterSeconds: 60 })
  assert.equal(windows.take('acct_2').ok, true)
})

test('spec 8 a window opens at the first request and the count resets 60 seconds later', () => {
  let nowMs = 1_000
  const windows = createWindows({ limit: 1, windowMs: minuteMs, clockMs: () => nowMs })
  assert.equal(windows.take('a').ok, true)
  nowMs = 60_999
  assert.deepEqual(windows.take('a'), { ok: false, retryAfterSeconds: 1 })
  nowMs = 61_000
  assert.equal(windows.take('a').ok, true)
  nowMs = 90_500
  assert.deepEqual(windows.take('a'), { ok: false, retryAfterSeconds: 31 })
})

test('R1 a returned place can be taken again, and is returned once', () => {
  const windows = createWindows({ limit: 2, windowMs: minuteMs, clockMs: () => 0 })
  const place = windows.take('a')
  windows.take('a')
  assert.ok(place.ok)
  place.giveBack()
  place.giveBack()
  assert.equal(windows.take('a').ok, true)
  assert.equal(windows.take('a').ok, false)
})

test('spec 8 a place of an ended window that is returned late does not widen the next window', () => {
  let nowMs = 0
  const windows = createWindows({ limit: 1, windowMs: minuteMs, clockMs: () => nowMs })
  const early = windows.take('a')
  nowMs = minuteMs
  windows.take('a')
  assert.ok(early.ok)
  early.giveBack()
  assert.equal(windows.take('a').ok, false)
})

test('the table of windows is bounded: ended windows are removed first, then the oldest', () => {
  let nowMs = 0
  const windows = createWindows({ limit: 1, windowMs: minuteMs, clockMs: () => nowMs, tableMax: 2 })
  windows.take('a')
  nowMs = 1
  windows.take('b')
  windows.take('c')
  assert.equal(windows.take('b').ok, false)
  assert.equal(windows.take('c').ok, false)
  assert.equal(windows.take('a').ok, true)
})

test('R4 the 11th failing request of a minute and every later one are throttled, per address', () => {
  let nowMs = 0
  const throttle = createThrottle({ limit: 10, windowMs: minuteMs, clockMs: () => nowMs })
  for (let i = 0; i < 10; i++) assert.equal(throttle.fail('192.0.2.1').throttled, false)
  nowMs = 20_000
  assert.deepEqual(pick(throttle.fail('192.0.2.1')), { throttled: true, retryAfterSeconds: 40 })
  assert.deepEqual(pick(throttle.fail('::ffff:192.0.2.1')), { throttled: true, retryAfterSeconds: 40 })
  assert.equal(throttle.fail('192.0.2.2').throttled, false)
  nowMs = 60_000
  assert.equal(throttle.fail('192.0.2.1').throttled, false)
})

test('R4 R16 whether an address is throttled can be checked without counting a failure', () => {
  let nowMs = 0
  const throttle = createThrottle({ limit: 2, windowMs: minuteMs, clockMs: () => nowMs })
  for (let i = 0; i < 5; i++) assert.equal(throttle.isThrottled('192.0.2.1'), false)
  throttle.fail('192.0.2.1')
  assert.equal(throttle.isThrottled('192.0.2.1'), false)
  throttle.fail('192.0.2.1')
  assert.deepEqual([throttle.isThrottled('::ffff:192.0.2.1'), throttle.isThrottled('192.0.2.2')], [true, false])
  nowMs = minuteMs
  assert.equal(throttle.isThrottled('192.0.2.1'), false)
})

test('F-C44 changing the address within a /64 does not avoid the throttle', () => {
  const throttle = createThrottle({ limit: 10, windowMs: minuteMs, clockMs: () => 0 })
  const results = Array.from({ length: 11 }, (_, i) => throttle.fail(`2001:db8:1:2::${i.toString(16)}`).throttled)
  assert.deepEqual(results.indexOf(true), 10)
  assert.equal(throttle.fail('2001:db8:1:3::1').throttled, false)
})

test('R4 IPv6 counts per /64 in every spelling, and an IPv4 address in IPv6 form counts as itself', () => {
  for (const [ip, key] of [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:201', '192.0.2.1'],
    ['0:0:0:0:0:ffff:c000:0201', '192.0.2.1'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:0DB8:0000:0000:ffff:1:2:3', '2001:db8:0:0::/64'],
    ['2001:db8:a:b:c:d:e:f', '2001:db8:a:b::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
  ]) {
    assert.equal(ipKey(ip!), key)
  }
})

function pick({ throttled, retryAfterSeconds }: { throttled: boolean; retryAfterSeconds: number }) {
  return { throttled, retryAfterSeconds }
}

test('R4 a limit that a reload changes applies at once, and what was counted in the open window still counts', () => {
  let limit = 2
  const windows = createWindows({ limit: () => limit, windowMs: minuteMs, clockMs: () => 0 })
  for (const ok of [true, true, false]) assert.equal(windows.take('k').ok, ok)
  limit = 3
  assert.deepEqual(windows.look('k'), { limit: 3, left: 1, resetSeconds: 60 })
  for (const ok of [true, false]) assert.equal(windows.take('k').ok, ok)
  limit = 1
  assert.equal(windows.isFull('k'), true)
})

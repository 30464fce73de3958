import assert from 'node:assert/strict'
import test from 'node:test'
import { createWindows, ipKey } from '../../src/accounts/limits.ts'

test('R4 an IPv6 address is read as an IPv4 one only after five empty groups and ffff', () => {
  assert.equal(ipKey('0:0:0:0:1:ffff:c000:201'), '0:0:0:0::/64')
  assert.equal(ipKey('1:0:0:0:0:ffff:c000:201'), '1:0:0:0::/64')
  assert.equal(ipKey('::fffe:c000:201'), '0:0:0:0::/64')
})

test('R4 every octet of an IPv4 address counts in its IPv6 form', () => {
  assert.equal(ipKey('::ffff:203.1.113.9'), '203.1.113.9')
  assert.equal(ipKey('::ffff:cb01:7109'), '203.1.113.9')
})

test('R4 an address that ends in empty groups keeps them', () => {
  assert.equal(ipKey('2001:db8:a:b::'), '2001:db8:a:b::/64')
  assert.equal(ipKey('2001:db8::'), '2001:db8:0:0::/64')
})

test('spec 8 a key that returns opens its new window after those of others: the oldest window is forgotten first', () => {
  let nowMs = 0
  const windows = createWindows({ limit: 1, windowMs: 100, clockMs: () => nowMs, tableMax: 2 })
  windows.take('a')
  nowMs = 60
  windows.take('b')
  nowMs = 120
  windows.take('a')
  // Now b is the oldest, and makes room.
  windows.take('c')
  assert.equal(windows.take('a').ok, false)
  assert.equal(windows.take('b').ok, true)
})

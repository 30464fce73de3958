import assert from 'node:assert/strict'
import test from 'node:test'
import { staysOpen } from '../../src/http1/heads.ts'

for (const [connection, newer, older] of [
  [undefined, true, false],
  ['keep-alive', true, true],
  ['Keep-Alive', true, true],
  ['close', false, false],
  ['TE, Close', false, false],
  ['keep-alive, close', false, false],
  ['upgrade,keep-alive', true, true],
  ['closed', true, false],
  ['', true, false],
] as const)
  test(`RFC 9112 9.3 after "connection: ${connection}" a connection ${newer ? 'stays' : 'closes'}, and one of HTTP/1.0 ${older ? 'stays' : 'closes'}`, () => {
    assert.deepEqual([staysOpen(connection, 1), staysOpen(connection, 0)], [newer, older])
  })

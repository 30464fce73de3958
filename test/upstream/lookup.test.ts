import assert from 'node:assert/strict'
import dns, { type LookupAddress } from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import type { LookupFunction } from 'node:net'
import test from 'node:test'
import { lookupOnce } from '../../src/upstream/dial.ts'

const address: LookupAddress[] = [{ address: '192.0.2.1', family: 4 }]

test('F-U3 only one lookup of a name runs at a time, and all waiting requests get its result', ({ mock }) => {
  const asked: Parameters<LookupFunction>[] = []
  mock.method(dns, 'lookup', (...args: Parameters<LookupFunction>) => void asked.push(args))
  syncBuiltinESMExports()
  const told: unknown[] = []
  const ask = (name: string, all = true) => lookupOnce(name, { all }, (_error, found) => told.push([name, found]))
  try {
    for (const name of ['dead.example', 'dead.example', 'fine.example']) ask(name)
    ask('dead.example', false)
    assert.deepEqual(
      asked.map(([name, { all }]) => [name, all]),
      [
        ['dead.example', true],
        ['fine.example', true],
        ['dead.example', false],
      ],
    )
    asked[0]![2](null, address)
    assert.deepEqual(told, [
      ['dead.example', address],
      ['dead.example', address],
    ])
    ask('dead.example')
    assert.equal(asked.length, 4, 'asked anew')
  } finally {
    mock.restoreAll()
    syncBuiltinESMExports()
  }
})

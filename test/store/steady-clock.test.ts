import assert from 'node:assert/strict'
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import test, { mock } from 'node:test'
import { createSteadyClock } from '../../src/store/files/steady-clock.ts'

test('Y15 the steady clock counts a sleep of the machine, and ignores changes of the wall clock', () => {
  const at = { wallMs: 1_795_000_000_000, runMs: 1_000, upMs: 500_000 }
  let readings = 0
  const mocks = [
    mock.method(Date, 'now', () => at.wallMs),
    mock.method(performance, 'now', () => at.runMs),
    mock.method(os, 'uptime', () => {
      readings++
      return at.upMs / 1_000
    }),
  ]
  syncBuiltinESMExports()
  const told: number[] = []
  try {
    const steadyMs = createSteadyClock()
    const pass = (ms: number) => {
      for (const name of ['wallMs', 'runMs', 'upMs'] as const) at[name] += ms
      told.push(steadyMs())
    }
    pass(0)
    for (let n = 0; n < 10; n++) pass(50)
    // Asleep: what runs stands still.
    at.wallMs += 3_600_000
    at.upMs += 3_600_000
    told.push(steadyMs())
    // Somebody sets the wall clock.
    at.wallMs -= 86_400_000
    told.push(steadyMs())
    // A machine whose wall clock stood still as well while it slept.
    at.upMs += 7_200_000
    pass(1_001)
  } finally {
    for (const { mock } of mocks) mock.restore()
    syncBuiltinESMExports()
  }
  const awake = Array.from({ length: 11 }, (_, n) => 500_000 + n * 50)
  assert.deepEqual(told, [...awake, 4_100_500, 4_100_500, 11_301_501])
  assert.equal(readings, 4)
})

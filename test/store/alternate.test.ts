import assert from 'node:assert/strict'
import test from 'node:test'
import { createAlternation } from '../../src/store/serving/alternate.ts'

test('F-S1 after a call that wrote, the next one waits as long as that call took, and 50 ms at most', async () => {
  let nowMs = 0
  const events: string[] = []
  const alternation = createAlternation({
    clockMs: () => nowMs,
    pause: async (ms) => events.push(`pause ${ms}`),
  })
  const call = (name: string, tookMs: number, writes: boolean) =>
    new Promise<void>((resolve) =>
      alternation.run(async () => {
        events.push(name)
        if (writes) alternation.noteWrite()
        await Promise.resolve()
        nowMs += tookMs
        resolve()
      }),
    )
  await Promise.all([
    call('write', 7, true),
    call('read', 9, false),
    call('slow write', 900, true),
    call('read', 1, false),
  ])
  assert.deepEqual(events, ['write', 'pause 7', 'read', 'slow write', 'pause 50', 'read'])
})

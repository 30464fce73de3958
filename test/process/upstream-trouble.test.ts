import assert from 'node:assert/strict'
import test from 'node:test'
import { judgeAnswer } from '../../src/process/upstream-trouble.ts'
import type { Target } from '../../src/upstream/target.ts'

test('F-U7 a path that is lost while an upstream is waited for is told as one, and not as a server that speaks no HTTP', () => {
  const target = { upstream: { baseUrl: 'https://models.example/v1' } } as unknown as Target
  const { trouble, note } = judgeAnswer({ fault: { cause: 'upstream_silent', isReuseRace: false } }, target)
  assert.deepEqual(
    [trouble, note],
    ['connection', 'the path to models.example was lost while it was waited for: check the firewalls on the way'],
  )
})

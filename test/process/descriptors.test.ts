import assert from 'node:assert/strict'
import test from 'node:test'
import { missingDescriptors, watchDescriptors } from '../../src/host/descriptors.ts'
import { createEdge } from '../../src/http/server.ts'

test('B24 F-P11 running out of descriptors is logged once, and at its end with count and duration; other failures are not', () => {
  const told: [string, string, Record<string, unknown>][] = []
  let code: string | undefined
  let nowMs = 0
  let look = () => {}
  let stopped = 0
  const stop = watchDescriptors(
    (level, event, fields) => void told.push([level, event, fields]),
    () => nowMs,
    {
      tryOpen() {
        if (code) throw Object.assign(new Error(code), { code })
      },
      every(_ms, tick) {
        look = tick
        return () => stopped++
      },
    },
  )
  const pass = (next: string | undefined) => {
    code = next
    nowMs += 1_000
    look()
  }
  for (const next of [undefined, 'EACCES', 'EMFILE', 'EMFILE', 'ENFILE', 'EACCES', undefined, undefined]) pass(next)
  assert.deepEqual(
    told.map(([level, event, { code, failed, for_ms: forMs }]) => [level, event, code, failed, forMs]),
    [
      ['error', 'descriptors_exhausted', 'EMFILE', undefined, undefined],
      ['info', 'descriptors_back', undefined, 3, 4_000],
    ],
  )
  pass('ENFILE')
  assert.deepEqual(told.at(-1)?.slice(0, 2), ['error', 'descriptors_exhausted'])
  stop()
  assert.equal(stopped, 1)
})

test('B24 Y14 the limit is compared with three connections per client connection, one of them idle, and some of our own', () => {
  assert.deepEqual(missingDescriptors(100, 399), { limit: 399, needed: 400 })
  assert.equal(missingDescriptors(100, 400), undefined)
  assert.equal(missingDescriptors(100, Number.POSITIVE_INFINITY), undefined)
})

test('F-P11 a connection that cannot be accepted, because another thread took the last descriptor, ends nothing', () => {
  const limits = {
    ...{ headersMs: 1_000, keepAliveMs: 1_000, lingerMs: 0 },
    ...{ connectionsMax: 1, headerBytesMax: 1_024, headersMax: 1 },
  }
  const { server } = createEdge({ limits, handle() {}, formError: () => ({ lines: '', body: '' }) })
  server.emit('error', Object.assign(new Error('accept EMFILE'), { code: 'EMFILE', syscall: 'accept' }))
})

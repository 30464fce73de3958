import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Leftovers, type Unwanted } from '../../src/http/answer.ts'
import { runsUpTo } from '../support/runs.ts'

const piece = 65_536

/** Requests that go on sending, and turns that come when the test says so. */
function setUp() {
  let next: (() => void) | undefined
  const leftovers = new Leftovers((run) => {
    assert.equal(next, undefined, 'one turn is due at a time')
    next = run
  })
  let thrownAway = 0
  const order: number[] = []
  /** Acts like a socket: queued bytes arrive at once while it flows, and one more piece after a pause. */
  function send(id: number, bytes: number): Unwanted {
    let left = bytes
    let isFlowing = false
    const request = {
      pause() {
        isFlowing = false
      },
      resume() {
        isFlowing = true
        while (isFlowing && left > 0) {
          const taken = Math.min(piece, left)
          left -= taken
          thrownAway += taken
          order.push(id)
          leftovers.note(request, taken)
        }
        if (left === 0) leftovers.stop(request)
      },
    }
    leftovers.start(request)
    return request
  }
  return {
    leftovers,
    send,
    order,
    get thrownAway() {
      return thrownAway
    },
    /** @returns false when nothing waits. */
    turn() {
      const run = next
      next = undefined
      run?.()
      return run !== undefined
    },
  }
}

test('B6 B21 all that refused requests still send is discarded in bounded pieces, however many send at once', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 5_000_000 }), { minLength: 1, maxLength: 150 }), (sizes) => {
      const all = setUp()
      sizes.forEach((bytes, id) => void all.send(id, bytes))
      for (let before = 0; ; before = all.thrownAway) {
        assert.ok(all.thrownAway - before <= 2 * 524_288, `${all.thrownAway - before} bytes in one turn`)
        if (!all.turn()) break
      }
      assert.equal(
        all.thrownAway,
        sizes.reduce((sum, bytes) => sum + bytes, 0),
      )
    }),
    { numRuns: runsUpTo(30) },
  )
})

test('B6 a request that sends much does not keep the others from their turn', () => {
  const all = setUp()
  all.send(0, 30_000_000)
  for (let id = 1; id <= 20; id++) all.send(id, 10 * piece)
  for (let turn = 0; turn < 40; turn++) all.turn()
  const last = Math.max(...Array.from({ length: 20 }, (_, at) => all.order.indexOf(at + 1)))
  assert.ok(last >= 0 && last < 400, `the last of them began at piece ${last}`)
  assert.ok(Array.from({ length: 20 }, (_, at) => at + 1).every((id) => all.order.includes(id)))
})

test('B6 a request that is over is not resumed', () => {
  const all = setUp()
  all.send(0, 5_000_000)
  let isResumed = false
  const gone: Unwanted = {
    pause() {},
    resume() {
      isResumed = true
    },
  }
  all.leftovers.start(gone)
  all.leftovers.stop(gone)
  while (all.turn());
  assert.equal(isResumed, false)
})

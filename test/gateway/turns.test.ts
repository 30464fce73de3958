import assert from 'node:assert/strict'
import test from 'node:test'
import type { GatewayError } from '../../src/errors.ts'
import { budgetMs, createTurns, heavyBytes } from '../../src/gateway/fairness/turns.ts'
import { turn } from '../support/waiting.ts'

/** A loop that is turned by hand. What is begun takes its time at once, as the walk of a request does. */
function createLoop() {
  let nowMs = 100_000
  let ready: (() => void)[] = []
  let timers: { atMs: number; act: () => void }[] = []
  const began: string[] = []
  const refused: string[] = []
  const turns = createTurns({
    clockMs: () => nowMs,
    soon: (act) => void ready.push(act),
    after: (ms, act) => void timers.push({ atMs: nowMs + ms, act }),
  })
  return {
    turns,
    began,
    refused,
    get nowMs() {
      return nowMs
    },
    /** A request of this account with a body of so many bytes, whose work takes so long. */
    async ask(account: string, takesMs: number, bytes = 1_000): Promise<void> {
      const work = () => {
        began.push(account)
        nowMs += takesMs
      }
      turns.take(account, bytes).then(work, (error: GatewayError) => void refused.push(`${account}: ${error.code}`))
      await turn()
    },
    advance(ms: number): void {
      nowMs += ms
    },
    /** One turn of the loop: the timers that are due, then what was put off to it. */
    async turn(): Promise<void> {
      const due = timers.filter(({ atMs }) => atMs <= nowMs)
      timers = timers.filter(({ atMs }) => atMs > nowMs)
      for (const { act } of due) act()
      const now = ready
      ready = []
      for (const act of now) {
        act()
        // What one callback lets go on has done its work before the next.
        await turn()
      }
    },
    get isIdle() {
      return ready.length === 0 && timers.length === 0
    },
  }
}

test('B20: while nothing is scarce, every request begins at once, whatever their number', async () => {
  const loop = createLoop()
  for (let i = 0; i < 100; i++) await loop.ask('one', 0)
  assert.equal(loop.began.length, 100)
  await loop.turn()
  assert.ok(loop.isIdle)
})

test('B20: one turn of the loop begins a limited number of requests; the rest begin in later turns, without exception', async () => {
  const loop = createLoop()
  for (let i = 0; i < 60; i++) await loop.ask('one', 1)
  assert.equal(loop.began.length, budgetMs)
  for (let turns = 1; loop.began.length < 60; turns++) {
    const before: number = loop.began.length
    const startedMs = loop.nowMs
    await loop.turn()
    assert.ok(loop.nowMs - startedMs <= budgetMs, 'a turn is not longer than its budget')
    assert.ok(loop.began.length > before || turns === 1, 'somebody is begun in each turn')
  }
  await loop.turn()
  await loop.turn()
  assert.ok(loop.isIdle)
})

test('B20: of the waiting accounts, the one that asked for least is first, and its own requests keep their order', async () => {
  const loop = createLoop()
  for (let i = 0; i < 40; i++) await loop.ask(i % 2 === 0 ? 'greedy' : 'eager', 2)
  await loop.ask('payer', 1)
  const before = loop.began.length
  assert.ok(before < 5)
  await loop.turn()
  await loop.turn()
  assert.equal(loop.began[before], 'payer')
  // What was asked for seconds ago is forgotten.
  while (!loop.isIdle) await loop.turn()
  loop.advance(2_000)
  for (let i = 0; i < 3; i++) await loop.ask('payer', 3)
  await loop.ask('greedy', 3)
  const last = loop.began.length
  await loop.turn()
  await loop.turn()
  assert.equal(loop.began[last], 'greedy')
})

test('B20: after a heavy body the next one waits as long as that one took, and others do not wait', async () => {
  const loop = createLoop()
  await loop.ask('heavy', 20, heavyBytes + 1)
  await loop.ask('heavy', 20, heavyBytes + 1)
  await loop.turn()
  await loop.turn()
  assert.deepEqual(loop.began, ['heavy'])
  await loop.ask('payer', 1)
  await loop.turn()
  await loop.turn()
  assert.deepEqual(loop.began, ['heavy', 'payer'])
  loop.advance(19)
  await loop.turn()
  await loop.turn()
  assert.deepEqual(loop.began, ['heavy', 'payer', 'heavy'])
  while (!loop.isIdle) {
    loop.advance(1)
    await loop.turn()
  }
})

test('B20: a heavy body that waited also ends with its work, and the next one begins at once, whenever it arrives', async () => {
  const loop = createLoop()
  await loop.ask('first', 20, heavyBytes + 1)
  await loop.ask('second', 20, heavyBytes + 1)
  while (!loop.isIdle) {
    await loop.turn()
    loop.advance(1)
  }
  loop.advance(60_000)
  await loop.ask('third', 1, heavyBytes + 1)
  assert.deepEqual(loop.began, ['first', 'second', 'third'])
})

test('B20: a request that has waited for seconds is refused, and no later one is', async () => {
  const loop = createLoop()
  for (let i = 0; i < 3; i++) await loop.ask('one', 20, heavyBytes + 1)
  loop.advance(3_000)
  await loop.ask('other', 20, heavyBytes + 1)
  loop.advance(2_001)
  await loop.turn()
  await loop.turn()
  assert.deepEqual(loop.refused, ['one: rate_limit_exceeded', 'one: rate_limit_exceeded'])
  while (!loop.isIdle) {
    await loop.turn()
    loop.advance(20)
  }
  assert.deepEqual(loop.began, ['one', 'other'])
})

test('B20: in any order of arrival, every request begins once', async () => {
  let seed = 7
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return seed % below
  }
  for (let round = 0; round < 50; round++) {
    const loop = createLoop()
    let asked = 0
    for (let i = 0; i < 200; i++) {
      const kind = random(4)
      if (kind === 0) await loop.turn()
      else if (kind === 1) loop.advance(random(30))
      else {
        asked++
        await loop.ask(`account ${random(5)}`, random(12), random(3) === 0 ? heavyBytes * 4 : 500)
      }
    }
    for (let i = 0; i < 2_000 && !loop.isIdle; i++) {
      await loop.turn()
      loop.advance(1)
    }
    assert.equal(loop.began.length + loop.refused.length, asked)
  }
})

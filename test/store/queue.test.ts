import assert from 'node:assert/strict'
import test from 'node:test'
import type { Debit } from '../../src/accounts/ledger.ts'
import type { GivenBack, Posted, Posting } from '../../src/accounts/poster.ts'
import type { RunOutcome } from '../../src/store/sqlite/connection.ts'
import { Queue } from '../../src/store/sqlite/queue.ts'
import type { Store } from '../../src/store/sqlite/store.ts'
import { turn } from '../support/waiting.ts'
import { createDebitRow } from './fixtures.ts'

/* What the ledger's thread has to bring in, and when it tries again (B8, C13, B14). */

const [one, two, three] = ['req_1', 'req_2', 'req_3'].map((id) => createDebitRow(id, `acct_${id}`)) as [
  Debit,
  Debit,
  Debit,
]

test('messages that arrive before the thread runs are posted together, each answered in order', async () => {
  const { queue, said, calls, turns, run } = create()
  queue.post([one, two])
  queue.giveBack(['req_8', 'req_9'])
  queue.giveBack(['req_7'])
  queue.post([three])
  assert.deepEqual(turns, [undefined])
  await run({ inLedger: ['req_9'] })
  assert.deepEqual(calls, [
    'post req_1,req_2,req_3',
    'balances acct_req_1,acct_req_2,acct_req_3',
    'give back req_8,req_9,req_7',
    'balances acct_req_9',
  ])
  const balances = [
    ['acct_req_1', 1n],
    ['acct_req_2', 1n],
    ['acct_req_3', 1n],
  ]
  assert.deepEqual(said, [
    { postings: ['posted', 'posted'], balances, spends: [] },
    { postings: ['posted'], balances, spends: [] },
    { returned: ['req_9'], balances: [['acct_req_9', 1n]], spends: [] },
    { returned: [], balances: [['acct_req_9', 1n]], spends: [] },
  ])
  assert.deepEqual(turns, [])
})

test('the ledger is not called if nothing waits', async () => {
  const { queue, calls, run, tries } = create()
  queue.post([one])
  await run()
  assert.deepEqual(calls.splice(0), ['post req_1', 'balances acct_req_1'])
  queue.giveBack(['req_1'])
  await run()
  assert.deepEqual(calls.splice(0), ['give back req_1', 'balances '])
  queue.post([two])
  await run()
  assert.deepEqual(calls, ['post req_2', 'balances acct_req_2'])
  queue.close()
  assert.equal(tries(), 3)
})

for (const [outcome, pauseMs] of [
  ['busy', 20],
  ['failed', 250],
] as const) {
  test(`F-S1 F-S3 debits that a store that is ${outcome} did not take are retried once, ${pauseMs} ms later, with newer ones`, async () => {
    const { queue, said, calls, turns, run } = create()
    queue.post([one])
    await run({ outcome })
    assert.deepEqual([turns, said], [[pauseMs], []])
    queue.post([two])
    assert.deepEqual(turns, [pauseMs])
    await run()
    assert.deepEqual(calls.at(0), 'post req_1,req_2')
    assert.deepEqual(turns, [])
    queue.post([three])
    assert.deepEqual(turns, [undefined])
  })
}

test('F-S5 nothing is retried in a store that is lost', async () => {
  const { queue, turns, run } = create()
  queue.post([one])
  await run({ outcome: 'lost' })
  assert.deepEqual(turns, [])
})

test('B14 the end retries what waits once more, and nothing is tried after it', async () => {
  const { queue, calls, turns, run, tries } = create()
  queue.post([one])
  await run({ outcome: 'failed' })
  queue.close()
  assert.deepEqual([turns, tries()], [[250], 2])
  await run()
  queue.post([two])
  await run()
  assert.deepEqual([turns, tries(), calls], [[], 2, []])
  const other = create()
  other.queue.post([one])
  other.queue.close()
  assert.equal(other.calls[0], 'post req_1')
})

test('B7 C13 a withdrawn debit is not posted, and reported as such in its place; others of the same message are posted', async () => {
  const { queue, said, calls, run } = create()
  queue.post([one, two])
  queue.post([three])
  assert.deepEqual(queue.withdraw([two]), { fates: ['unknown'], balances: [['acct_req_2', 1n]], spends: [] })
  calls.length = 0
  await run({ postings: ['exists', 'posted'] })
  assert.deepEqual(calls[0], 'post req_1,req_3')
  assert.deepEqual(postingsOf(said.splice(0)), [['exists', 'withdrawn'], ['posted']])
  // It was of that one message.
  queue.post([two])
  await run()
  assert.deepEqual(postingsOf(said), [['posted']])
})

test('B7 C13 only a commit that wrote proves that no failed one before it is hidden in the log; one that found does not', async () => {
  const { queue, run, fateOf, set } = create()
  assert.equal(fateOf(three), 'unknown')
  queue.post([one])
  await run({ postings: ['exists'] })
  assert.equal(fateOf(three), 'unknown')
  queue.post([one, two])
  await run({ postings: ['exists', 'posted'] })
  assert.equal(fateOf(three), 'absent')
  set({ inLedger: ['req_3'] })
  assert.equal(fateOf(three), 'booked')
  // Another connection: something has failed meanwhile.
  set({ isNew: true })
  assert.equal(fateOf(three), 'unknown')
  queue.giveBack(['req_7'])
  await run()
  assert.equal(fateOf(three), 'absent')
  for (const outcome of ['busy', 'failed', 'lost'] as const) {
    set({ outcome })
    assert.equal(fateOf(three), 'unknown', outcome)
  }
})

test('C13 a return that found a page on a disk without space for debits is not answered, and is retried', async () => {
  const { queue, said, turns, run, fateOf } = create()
  queue.giveBack([])
  await run({ isDiskNarrow: true })
  assert.deepEqual([said, turns], [[], [250]])
  assert.equal(fateOf(three), 'unknown')
  await run()
  assert.deepEqual(said.at(-1), { returned: [], balances: [], spends: [] })
  assert.equal(fateOf(three), 'absent')
})

test('B7 C13 a store that cannot be queried reports no balances either', () => {
  const { queue, set } = create()
  set({ outcome: 'failed' })
  assert.deepEqual(queue.withdraw([one, two]), { fates: ['unknown', 'unknown'], balances: [] })
})

test('Y15 while the clock is in doubt nothing is posted or returned, and all of it is retried until it may be', async () => {
  const { queue, calls, said, turns, run } = create()
  queue.post([one])
  queue.giveBack(['req_9'])
  await run({ isDoubtful: true })
  assert.deepEqual([calls, said, turns.at(-1)], [[], [], 250])
  await run({ isDoubtful: true })
  assert.deepEqual([calls, said, turns.at(-1)], [[], [], 250])
  await run()
  assert.deepEqual(
    said.map((answer) => 'postings' in answer),
    [true, false],
  )
})

type Scene = {
  outcome?: RunOutcome
  inLedger?: string[]
  postings?: Posting[]
  /** The connection has been reopened. */
  isNew?: boolean
  isDiskNarrow?: boolean
  /** The clock may date nothing (ruling Y15). */
  isDoubtful?: boolean
}

/** A queue before a store that says what the scene says, with what was asked of it, and the turns it waits for. */
function create() {
  const calls: string[] = []
  const said: (Posted | GivenBack)[] = []
  const turns: (number | undefined)[] = []
  const waiting: (() => void)[] = []
  let tries = 0
  let scene: Scene = {}
  const readBalances = (accountIds: Set<string>) => {
    calls.push(`balances ${[...accountIds]}`)
    return [...accountIds].map((id) => [id, 1n])
  }
  const createStore = () =>
    ({
      isBooked: (requestId: string) => scene.inLedger?.includes(requestId) ?? false,
      payersOf: (requestId: string) => [`acct_${requestId}`],
      balancesBehind: (accountIds: Set<string>) => readBalances(accountIds),
      readBalances,
      readSpends: () => [],
      postDebits(debits: Debit[]) {
        calls.push(`post ${debits.map(({ requestId }) => requestId)}`)
        return scene.postings ?? debits.map(() => 'posted')
      },
      giveBack(requestIds: string[]) {
        calls.push(`give back ${requestIds}`)
        return requestIds.filter((requestId) => scene.inLedger?.includes(requestId))
      },
    }) as unknown as Store
  let store = createStore()
  const inner = new Queue({
    mayDate: () => scene.isDoubtful !== true,
    connection: {
      write(work) {
        tries++
        const { outcome = 'done' } = scene
        try {
          if (outcome === 'done') work(store)
          return outcome
        } catch {
          return 'failed'
        }
      },
    },
    later(work, pauseMs) {
      turns.push(pauseMs)
      waiting.push(work)
    },
    refuseNarrowDisk() {
      if (scene.isDiskNarrow) throw new Error('no room')
    },
  })
  const note = (answer: Posted | GivenBack) => void said.push(answer)
  const queue = {
    post: (debits: readonly Debit[]) => void inner.post(debits).then(note),
    giveBack: (requestIds: readonly string[]) => void inner.giveBack(requestIds).then(note),
    withdraw: (debits: readonly Debit[]) => inner.withdraw(debits),
    close: () => inner.close(),
  }
  return { queue, calls, said, turns, run, set, fateOf, tries: () => tries }

  function set(next: Scene): void {
    scene = next
    if (next.isNew) store = createStore()
  }

  /** Everything that waits has its turn, where the store is like this. */
  async function run(next: Scene = {}): Promise<void> {
    set(next)
    turns.length = 0
    for (const work of waiting.splice(0)) work()
    await turn()
  }

  function fateOf(debit: Debit): unknown {
    return queue.withdraw([debit]).fates[0]
  }
}

function postingsOf(said: readonly (Posted | GivenBack)[]): unknown {
  return said.map((answer) => 'postings' in answer && answer.postings)
}

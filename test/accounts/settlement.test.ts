import assert from 'node:assert/strict'
import test from 'node:test'
import type { Account } from '../../src/accounts/account.ts'
import { createBalances } from '../../src/accounts/balances.ts'
import type { DebitRow, Fate, GivenBack, Posted, Poster, Posting, Spool, Withdrawn } from '../../src/accounts/poster.ts'
import { Settlement } from '../../src/accounts/settlement.ts'
import { costNanos, createDebit } from '../store/fixtures.ts'
import { turn } from '../support/waiting.ts'

/*
 * The settlement over a poster and a spool that do what the test says, and a clock that the test turns.
 */

const account: Account = { id: 'acct_1', name: 'one', state: 'active' }

/** A poster whose posts are answered by hand. */
class Hand implements Poster {
  readonly posts: { debits: readonly DebitRow[]; resolve(posted: Posted): void; reject(error: Error): void }[] = []
  readonly withdrawals: PromiseWithResolvers<Withdrawn>[] = []
  readonly gifts: { requestIds: readonly string[]; resolve(given: GivenBack): void; reject(error: Error): void }[] = []
  readonly #death = Promise.withResolvers<Error>()
  readonly death = this.#death.promise
  isClosed = false

  post(debits: readonly DebitRow[]): Promise<Posted> {
    const { promise, resolve, reject } = Promise.withResolvers<Posted>()
    this.posts.push({ debits, resolve, reject })
    return promise
  }

  withdraw(): Promise<Withdrawn> {
    const withdrawal = Promise.withResolvers<Withdrawn>()
    this.withdrawals.push(withdrawal)
    return withdrawal.promise
  }

  giveBack(requestIds: readonly string[]): Promise<GivenBack> {
    const { promise, resolve, reject } = Promise.withResolvers<GivenBack>()
    this.gifts.push({ requestIds, resolve, reject })
    return promise
  }

  /** What it has of the debits that it was asked to take back. */
  async say(storedNanos: bigint, ...fates: Fate[]): Promise<void> {
    this.withdrawals.shift()!.resolve({ fates, balances: [['acct_1', storedNanos]] })
    await turn()
  }

  /** The oldest gift is durable. */
  async give(storedNanos: bigint, ...returned: string[]): Promise<void> {
    this.gifts.shift()!.resolve({ returned, balances: [['acct_1', storedNanos]] })
    await turn()
  }

  get ids(): string[][] {
    return this.posts.map(({ debits }) => debits.map(({ requestId }) => requestId))
  }

  /** The oldest post is durable. */
  async answer(storedNanos: bigint, posting: Posting = 'posted'): Promise<void> {
    const { debits, resolve } = this.posts.shift()!
    resolve({ postings: debits.map(() => posting), balances: [['acct_1', storedNanos]] })
    await turn()
  }

  async die(): Promise<void> {
    for (const { reject } of [...this.posts, ...this.withdrawals, ...this.gifts]) reject(new Error('died'))
    this.#death.resolve(new Error('died'))
    await turn()
  }

  async close(): Promise<void> {
    this.isClosed = true
  }
}

async function open({ balanceNanos = 10n * costNanos, spoolFails = false, firstCommit = true } = {}) {
  const balances = createBalances()
  balances.set('acct_1', balanceNanos)
  const posters: Hand[] = []
  const spooled: string[] = []
  const noted: string[] = []
  const disk = { isFull: spoolFails, isTorn: false, held: Promise.resolve() }
  const events: string[] = []
  const fatals: Error[] = []
  const clock = { nowMs: 0 }
  /** Of the spool, with what it had taken by then. */
  const closings: string[][] = []
  let canStart = true
  let gate: Promise<void> | undefined
  /** Posters start no more until what it returns is called. */
  const holdStarts = () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    gate = promise
    return resolve
  }
  const spool: Spool = {
    async append(debits) {
      if (disk.isFull) throw new Error('no disk')
      spooled.push(...debits.map(({ requestId }) => requestId))
    },
    get isTorn() {
      return disk.isTorn
    },
    async appendReturns(requestIds) {
      await disk.held
      if (disk.isFull) throw new Error('no disk')
      noted.push(...requestIds)
    },
    async clear(isEmpty) {
      if (!isEmpty()) return
      spooled.length = 0
      noted.length = 0
    },
    async close() {
      closings.push([...spooled])
    },
  }
  const settlement = new Settlement({
    async startPoster() {
      await gate
      if (!canStart) throw new Error('cannot start')
      const poster = new Hand()
      posters.push(poster)
      return poster
    },
    spool,
    balances,
    settleDeadlineMs: 5_000,
    clockMs: () => clock.nowMs,
    onFatal: (error) => fatals.push(error),
    log: (_level, event) => events.push(event),
  })
  let isOpen = false
  const opening = settlement.open().then(() => {
    isOpen = true
  })
  await turn()
  if (firstCommit) {
    await posters[0]!.give(balanceNanos)
    await opening
  }
  const pass = async (ms: number) => {
    clock.nowMs += ms
    settlement.sweep()
    await turn()
  }
  /** Debits of one turn; each tells how it ended. */
  const debit = (...ids: string[]) => {
    const ends = ids.map((id) =>
      settlement.debit(createDebit(id, account)).catch((error: Error) => `refused: ${error.message}`),
    )
    return turn().then(() => ends)
  }
  const refuseStarts = () => {
    canStart = false
  }
  const balance = balances.get('acct_1')!
  return {
    settlement,
    balances,
    balance,
    posters,
    spooled,
    noted,
    disk,
    closings,
    events,
    fatals,
    pass,
    debit,
    refuseStarts,
    holdStarts,
    opening,
    isOpen: () => isOpen,
  }
}

test('C3 a debit is over when it is durable, and by then the balance is what the ledger says', async () => {
  const { posters, balance, debit } = await open()
  const [end] = await debit('req_1')
  const seen = end!.then((result) => [result, balance.balanceNanos])
  assert.deepEqual(posters[0]!.ids, [['req_1']])
  await posters[0]!.answer(9n * costNanos)
  assert.deepEqual(await seen, ['posted', 9n * costNanos])
})

test('the debits of one turn are posted together', async () => {
  const { posters, debit } = await open()
  await debit('req_1', 'req_2')
  await debit('req_3')
  assert.deepEqual(posters[0]!.ids, [['req_1', 'req_2'], ['req_3']])
})

test('R5 a debit that is under way is not taken twice; the ledger says whether it had it', async () => {
  const { posters, debit, events } = await open()
  const [first] = await debit('req_1')
  assert.match((await (await debit('req_1'))[0]) as string, /being settled already/)
  await posters[0]!.answer(0n, 'exists')
  assert.equal(await first, 'exists')
  const [other] = await debit('req_2')
  await posters[0]!.answer(0n, 'conflict')
  assert.equal(await other, 'exists')
  const [impossible] = await debit('req_3')
  await posters[0]!.answer(0n, 'rejected')
  assert.match((await impossible) as string, /cannot hold the debit of request req_3/)
  assert.deepEqual(events, ['ledger_conflict', 'ledger_rejected'])
})

test('F-S1 at its deadline a debit is spooled, nothing new is taken until the store has it, then the spool is emptied', async () => {
  const { settlement, posters, spooled, pass, debit, events } = await open()
  const [end] = await debit('req_1')
  await pass(4_999)
  assert.deepEqual([spooled, settlement.isWritable()], [[], true])
  await pass(1)
  assert.equal(await end, 'spooled')
  assert.deepEqual([spooled, settlement.isWritable(), settlement.unsettled], [['req_1'], false, 1])
  assert.match((await (await debit('req_1'))[0]) as string, /being settled already/)
  await posters[0]!.answer(9n * costNanos)
  assert.deepEqual([spooled, settlement.isWritable(), settlement.unsettled], [[], true, 0])
  assert.deepEqual(events, ['ledger_unsettled'])
})

test('F-S1 only what has waited its own deadline is spooled', async () => {
  const { spooled, pass, debit } = await open()
  await debit('req_1')
  await pass(3_000)
  await debit('req_2')
  await pass(2_000)
  assert.deepEqual(spooled, ['req_1'])
  await pass(3_000)
  assert.deepEqual(spooled, ['req_1', 'req_2'])
})

test('C5 an overdue debit is not spendable again when the balance is read next', async () => {
  const { balances, balance, posters, pass, debit } = await open()
  await debit('req_1')
  await pass(5_000)
  assert.equal(balance.balanceNanos, 9n * costNanos)
  // Somebody's credit makes the store's balance be read, which knows nothing of the debit.
  balances.set('acct_1', 11n * costNanos)
  assert.equal(balance.balanceNanos, 10n * costNanos)
  await posters[0]!.answer(10n * costNanos)
  assert.deepEqual([balance.balanceNanos, balance.owedNanos], [10n * costNanos, 0n])
})

test('C5 what stays overdue stays owed when another debit of the account is posted', async () => {
  const { balance, posters, pass, debit } = await open()
  await debit('req_1')
  await pass(2_500)
  await debit('req_2')
  await pass(2_500)
  const [first] = posters[0]!.posts.splice(0, 1)
  await posters[0]!.answer(9n * costNanos)
  assert.deepEqual([balance.balanceNanos, balance.owedNanos], [8n * costNanos, costNanos])
  posters[0]!.posts.push(first!)
  await posters[0]!.answer(8n * costNanos)
  assert.deepEqual([balance.balanceNanos, balance.owedNanos], [8n * costNanos, 0n])
})

const refusal = 'refused: neither database nor spool can be written'

test('B7 C13 neither store nor spool: the debit is taken back before its client is refused, and owed no more', async () => {
  const { balance, posters, pass, debit } = await open({ spoolFails: true })
  const [end] = await debit('req_1')
  const told: string[] = []
  void end!.then((word) => told.push(word))
  await pass(5_000)
  assert.deepEqual([posters[0]!.withdrawals.length, told, balance.balanceNanos], [1, [], 9n * costNanos])
  await posters[0]!.say(10n * costNanos, 'absent')
  assert.deepEqual([told, balance.balanceNanos, balance.owedNanos], [[refusal], 10n * costNanos, 0n])
  assert.match((await (await debit('req_1'))[0]) as string, /being settled already/)
})

test('B7 C13 C5 nothing is taken until a commit has worked again; what the ledger has all the same is given back in it', async () => {
  const { settlement, balance, posters, pass, debit, events } = await open({ spoolFails: true })
  const ends = await debit('req_1', 'req_2')
  await pass(5_000)
  await posters[0]!.say(10n * costNanos, 'absent', 'unknown')
  assert.deepEqual(await Promise.all(ends), [refusal, refusal])
  assert.deepEqual([settlement.isWritable(), settlement.unsettled], [false, 2])
  // The poster answers what was withdrawn from it, and that settles nothing.
  await posters[0]!.answer(10n * costNanos, 'withdrawn')
  assert.deepEqual([settlement.isWritable(), settlement.unsettled, balance.owedNanos], [false, 2, 0n])
  assert.deepEqual(
    posters[0]!.gifts.map(({ requestIds }) => requestIds),
    [['req_1', 'req_2']],
  )
  await posters[0]!.give(10n * costNanos, 'req_2')
  assert.deepEqual([settlement.isWritable(), settlement.unsettled], [true, 0])
  assert.equal(balance.balanceNanos, 10n * costNanos)
  assert.deepEqual(events, ['ledger_unsettled', 'ledger_withdrawn'])
})

test('B7 C13 a debit that is on record after all has its answer: found by the poster, or posted while it is asked', async () => {
  const { settlement, balance, posters, pass, debit } = await open({ spoolFails: true })
  const ends = await debit('req_1', 'req_2')
  const [other] = await debit('req_3')
  await pass(5_000)
  const [withdrawal] = posters[0]!.withdrawals
  // In its order: what was posted is told before the answer to what was asked after it.
  posters[0]!.posts.splice(0, 1)
  await posters[0]!.answer(9n * costNanos)
  assert.equal(await other, 'posted')
  withdrawal!.resolve({ fates: ['booked', 'absent', 'booked'], balances: [['acct_1', 8n * costNanos]] })
  assert.deepEqual(await Promise.all(ends), ['exists', refusal])
  assert.deepEqual([balance.balanceNanos, balance.owedNanos], [8n * costNanos, 0n])
  await posters[0]!.give(8n * costNanos)
  assert.deepEqual([settlement.isWritable(), settlement.unsettled], [true, 0])
})

test('B7 C13 a debit that is posted while its spool fails is settled and not refused', async () => {
  const { settlement, posters, pass, debit } = await open({ spoolFails: true })
  const [end] = await debit('req_1')
  const passing = pass(5_000)
  posters[0]!.posts[0]!.resolve({ postings: ['posted'], balances: [['acct_1', 9n * costNanos]] })
  await passing
  if (posters[0]!.withdrawals.length > 0) await posters[0]!.say(9n * costNanos, 'booked')
  assert.deepEqual([await end, settlement.isWritable()], ['posted', true])
})

test('B7 C13 a poster that is silent holds no refusal up for ever; what it posted meanwhile is given back', async () => {
  const { settlement, balance, posters, pass, debit } = await open({ spoolFails: true })
  const [end] = await debit('req_1')
  await pass(5_000)
  await pass(2_499)
  assert.equal(settlement.unsettled, 1)
  await pass(1)
  assert.equal(await end, refusal)
  await posters[0]!.answer(9n * costNanos)
  assert.deepEqual([settlement.isWritable(), balance.balanceNanos], [false, 9n * costNanos])
  await posters[0]!.say(9n * costNanos, 'booked')
  assert.equal(settlement.isWritable(), false)
  await posters[0]!.give(10n * costNanos, 'req_1')
  assert.deepEqual([settlement.isWritable(), balance.balanceNanos], [true, 10n * costNanos])
})

test('B7 C13 a return that nobody can post yet is noted as soon as the spool can be written, and stays until it is posted', async () => {
  const { posters, spooled, noted, disk, pass, debit } = await open({ spoolFails: true })
  await debit('req_1', 'req_2')
  await pass(5_000)
  await posters[0]!.say(10n * costNanos, 'unknown', 'absent')
  assert.deepEqual(noted, [])
  disk.isFull = false
  await pass(999)
  assert.deepEqual(noted, [])
  await pass(1)
  // What is surely in no ledger needs no note.
  assert.deepEqual(noted, ['req_1'])
  await pass(1_000)
  assert.deepEqual(noted, ['req_1'])
  const [late] = await debit('req_3')
  await pass(5_000)
  assert.equal(await late, 'spooled')
  posters[0]!.posts.shift()
  await posters[0]!.answer(9n * costNanos)
  assert.deepEqual([noted, spooled], [['req_1'], ['req_3']])
  await posters[0]!.give(10n * costNanos, 'req_1')
  assert.deepEqual([noted, spooled], [[], []])
})

test('B7 C13 with a spool that fails once the note is written before the client is told', async () => {
  const { posters, noted, disk, pass, debit } = await open({ spoolFails: true })
  const [end] = await debit('req_1')
  const seen = end!.then((word) => [word, [...noted]])
  await pass(5_000)
  disk.isFull = false
  await posters[0]!.say(10n * costNanos, 'unknown')
  assert.deepEqual(await seen, [refusal, ['req_1']])
})

test('B7 C13 who is refused while the note of another is written waits for his own', async () => {
  const { posters, noted, disk, pass, debit } = await open({ spoolFails: true })
  const { promise, resolve } = Promise.withResolvers<void>()
  disk.held = promise
  await debit('req_1')
  await pass(2_500)
  const [second] = await debit('req_2')
  const seen = second!.then((word) => [word, [...noted]])
  await pass(2_500)
  await posters[0]!.say(10n * costNanos, 'unknown')
  await pass(2_500)
  await posters[0]!.say(10n * costNanos, 'unknown')
  disk.isFull = false
  resolve()
  assert.deepEqual(await seen, [refusal, ['req_1', 'req_2']])
})

test('B7 C13 a debit that is still in a spool which cannot be cut is noted too, though no store has it', async () => {
  const { posters, noted, disk, pass, debit } = await open({ spoolFails: true })
  disk.isTorn = true
  const [end] = await debit('req_1')
  await pass(5_000)
  await posters[0]!.say(10n * costNanos, 'absent')
  assert.equal(await end, refusal)
  disk.isFull = false
  await pass(1_000)
  assert.deepEqual(noted, ['req_1'])
})

test('B7 C13 C5 nothing is taken before a first commit has worked; the start waits for it as long as a debit would', async () => {
  const { settlement, posters, isOpen, pass } = await open({ firstCommit: false })
  const told = () => [isOpen(), settlement.isWritable()]
  await pass(4_999)
  assert.deepEqual(told(), [false, false])
  await pass(1)
  assert.deepEqual(told(), [true, false])
  await posters[0]!.give(0n)
  assert.deepEqual(told(), [true, true])
})

test('C13 F-P15 a poster that dies over the first commit leaves it to the next one; without a next one the start fails', async () => {
  const { settlement, posters, isOpen } = await open({ firstCommit: false })
  await posters[0]!.die()
  await turn()
  assert.deepEqual([isOpen(), settlement.isWritable()], [false, false])
  await posters[1]!.give(0n)
  assert.deepEqual([isOpen(), settlement.isWritable()], [true, true])

  const second = await open({ firstCommit: false })
  second.refuseStarts()
  const refused = assert.rejects(second.opening, /cannot start/)
  await second.posters[0]!.die()
  await refused
  assert.deepEqual([second.settlement.isWritable(), second.fatals], [false, []])
})

test('B7 C13 F-P15 a poster that dies hands the returns to the next one, and none of the debits', async () => {
  const { settlement, posters, pass, debit } = await open({ spoolFails: true })
  const [told] = await debit('req_1')
  await pass(5_000)
  await posters[0]!.say(10n * costNanos, 'unknown')
  const [asked] = await debit('req_2')
  await pass(5_000)
  await posters[0]!.die()
  assert.deepEqual(await Promise.all([told, asked]), [refusal, refusal])
  await turn()
  assert.deepEqual(posters[1]!.ids, [])
  const given = new Set(posters[1]!.gifts.flatMap(({ requestIds }) => requestIds))
  assert.deepEqual(given, new Set(['req_1', 'req_2']))
  while (posters[1]!.gifts.length > 0) await posters[1]!.give(10n * costNanos)
  assert.deepEqual([settlement.isWritable(), settlement.unsettled], [true, 0])
})

test('B7 C13 closing refuses what cannot be kept, gives the poster its returns, and notes what is left', async () => {
  const { settlement, posters, noted, disk, pass, debit } = await open({ spoolFails: true })
  const [end] = await debit('req_1')
  const closing = settlement.close()
  await pass(5_000)
  await posters[0]!.say(10n * costNanos, 'unknown')
  assert.equal(await end, refusal)
  disk.isFull = false
  await pass(5_000)
  await closing
  assert.deepEqual([posters[0]!.isClosed, posters[0]!.gifts.length, noted], [true, 1, ['req_1']])
})

test('F-P15 a poster that dies is followed by one that is given all that is unsettled; the second death is the end', async () => {
  const { settlement, posters, spooled, fatals, events, pass, debit } = await open()
  await debit('req_1')
  await pass(5_000)
  const [second] = await debit('req_2')
  await posters[0]!.die()
  assert.deepEqual(posters[1]!.ids, [['req_1', 'req_2']])
  assert.deepEqual([fatals, events.includes('ledger_worker_restart')], [[], true])
  await posters[1]!.answer(0n)
  assert.equal(await second, 'posted')
  assert.deepEqual([settlement.isWritable(), spooled], [true, []])

  const [third] = await debit('req_3')
  await posters[1]!.die()
  assert.equal(await third, 'spooled')
  assert.deepEqual([fatals.length, settlement.isWritable(), posters.length], [1, false, 2])
  const [late] = await debit('req_4')
  await pass(0)
  assert.equal(await late, 'spooled')
})

test('F-P15 a debit that comes while there is no poster goes to the next one', async () => {
  const { posters, debit } = await open()
  const dying = posters[0]!.die()
  const [end] = await debit('req_1')
  await dying
  await posters[1]!.answer(0n)
  assert.equal(await end, 'posted')
})

test('F-P15 a poster that cannot be started again is the end', async () => {
  const { posters, fatals, debit, refuseStarts } = await open()
  refuseStarts()
  const [end] = await debit('req_1')
  await posters[0]!.die()
  assert.equal(await end, 'spooled')
  assert.deepEqual(
    fatals.map(({ message }) => message),
    ['cannot start'],
  )
})

test('closing waits for what is under way, for a deadline at most, and spools the rest', async () => {
  const first = await open()
  const [end] = await first.debit('req_1')
  const closing = first.settlement.close()
  await first.posters[0]!.answer(0n)
  await closing
  assert.deepEqual([await end, first.posters[0]!.isClosed, first.spooled], ['posted', true, []])

  const second = await open()
  await second.pass(1)
  const [late] = await second.debit('req_1')
  const ended = second.settlement.close()
  await second.pass(4_999)
  assert.equal(second.posters[0]!.isClosed, false)
  await second.pass(1)
  await ended
  assert.deepEqual([await late, second.posters[0]!.isClosed, second.spooled], ['spooled', true, ['req_1']])
})

test('F-S1 F-P1 the spool is closed last, with all in it that no store has taken', async () => {
  const { settlement, spooled, closings, pass, debit } = await open()
  await debit('req_1')
  const closing = settlement.close()
  assert.deepEqual(closings, [])
  await pass(5_000)
  await closing
  assert.deepEqual([spooled, closings], [['req_1'], [['req_1']]])
})

test('F-P15 a poster that dies while it is closed is followed by none', async () => {
  const { settlement, posters, events, fatals } = await open()
  const [poster] = posters
  poster!.close = () => poster!.die()
  await settlement.close()
  await turn()
  assert.deepEqual([posters.length, events, fatals], [1, [], []])
})

test('F-S1 a debit that nobody could take is refused with what the spool failed of', async () => {
  const { settlement, posters, pass } = await open({ spoolFails: true })
  const refused = assert.rejects(settlement.debit(createDebit('req_1', account)), (error: Error) => {
    return error.cause instanceof Error && error.cause.message === 'no disk'
  })
  await turn()
  await pass(5_000)
  await posters[0]!.say(10n * costNanos, 'absent')
  await refused
})

test('F-P15 a poster that was still starting when the settlement closed is closed as well', async () => {
  const { settlement, posters, holdStarts } = await open()
  const letStart = holdStarts()
  await posters[0]!.die()
  await settlement.close()
  assert.equal(posters.length, 1)
  letStart()
  await turn()
  assert.deepEqual([posters.length, posters[1]?.isClosed], [2, true])
})

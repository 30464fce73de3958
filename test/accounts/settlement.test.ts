import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { Account } from '../../src/accounts/account.ts'
import { keyBounds } from '../../src/accounts/key-bounds.ts'
import type { Debit } from '../../src/accounts/ledger.ts'
import { createBalances, createBoundsBook } from '../../src/accounts/live-accounts.ts'
import type { GivenBack, Posted, Poster, Posting, Spool, WithdrawalFate, Withdrawn } from '../../src/accounts/poster.ts'
import { Settlement } from '../../src/accounts/settlement.ts'
import { costNanos, createDebit, createDebitRow } from '../store/fixtures.ts'
import { runsUpTo } from '../support/runs.ts'
import { turn } from '../support/waiting.ts'

/*
 * The settlement over a poster and a spool that do what the test says, and a clock that the test turns.
 */

const account: Account = { id: 'acct_1', name: 'one', state: 'active' }

/** Of the key that `debitByKey` pays by. */
const keyBudget = { nanos: 100n * costNanos, per: undefined }

/** A poster whose posts are answered by hand. */
class Hand implements Poster {
  readonly posts: { debits: readonly Debit[]; resolve(posted: Posted): void; reject(error: Error): void }[] = []
  readonly withdrawals: PromiseWithResolvers<Withdrawn>[] = []
  readonly gifts: { requestIds: readonly string[]; resolve(given: GivenBack): void; reject(error: Error): void }[] = []
  readonly #death = Promise.withResolvers<Error>()
  readonly death = this.#death.promise
  isClosed = false

  post(debits: readonly Debit[]): Promise<Posted> {
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
  async say(storedNanos: bigint, ...fates: WithdrawalFate[]): Promise<void> {
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
  const bounds = createBoundsBook()
  const narrow = { ...keyBounds.none, budget: keyBudget }
  const keyOfAccount = bounds.note({ id: 'key_1', scope: 'line_1', bounds: narrow, spend: undefined })!
  const posters: Hand[] = []
  const spooled: string[] = []
  const noted: string[] = []
  const probes: number[] = []
  const disk = { isFull: spoolFails, isTorn: false, held: Promise.resolve() }
  const events: string[] = []
  const lines: Record<string, unknown>[] = []
  const fatals: Error[] = []
  const clock: { nowMs: number; doubt?: string } = { nowMs: 0 }
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
    async probe() {
      probes.push(clock.nowMs)
      if (disk.isFull) throw new Error('no disk')
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
    whyDoubtful: () => clock.doubt,
    async startPoster() {
      await gate
      if (!canStart) throw new Error('cannot start')
      const poster = new Hand()
      posters.push(poster)
      return poster
    },
    spool,
    // As the ledger's client joins them.
    balances: {
      set: balances.set,
      owe(accountId, amountNanos, keyId) {
        balances.owe(accountId, amountNanos)
        if (keyId !== undefined) bounds.owe(keyId, amountNanos)
      },
      spend: bounds.set,
    },
    settleDeadlineMs: 5_000,
    clockMs: () => clock.nowMs,
    onFatal: (error) => fatals.push(error),
    log: (_level, event, fields) => {
      events.push(event)
      lines.push({ event, ...fields })
    },
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
  const debitOf = (payer: Account, ...ids: string[]) => {
    const ends = ids.map((id) =>
      settlement.debit(createDebit(id, payer)).catch((error: Error) => `refused: ${error.message}`),
    )
    return turn().then(() => ends)
  }
  const debit = (...ids: string[]) => debitOf(account, ...ids)
  /** The same of the key with a budget. */
  const debitByKey = (id: string) =>
    settlement
      .debit({ ...createDebit(id, account), keyId: 'key_1' })
      .catch((error: Error) => `refused: ${error.message}`)
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
    probes,
    disk,
    closings,
    events,
    fatals,
    pass,
    debit,
    debitOf,
    debitByKey,
    /** What is left of the key's budget, in debits. */
    keyLeft: () => Number(bounds.left(keyOfAccount, keyBudget, 0).creditNanos / costNanos),
    lines,
    /** What blocks all, the first account, and the second. */
    blocks: () => [undefined, 'acct_1', 'acct_2'].map((id) => settlement.whyBlocked(id)),
    clock,
    refuseStarts,
    holdStarts,
    opening,
    isOpen: () => isOpen,
  }
}

test('C3 a debit is over when it is durable, and by then the balance matches the ledger', async () => {
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

test('R5 a debit that is under way is not taken twice; the ledger reports whether it had it', async () => {
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

test('F-S1 at its deadline a debit is spooled; no new debit is taken until the store has it, then the spool is emptied', async () => {
  const { settlement, posters, spooled, pass, debit, events } = await open()
  const [end] = await debit('req_1')
  await pass(4_999)
  assert.deepEqual([spooled, settlement.whyBlocked('acct_1') === undefined], [[], true])
  await pass(1)
  assert.equal(await end, 'spooled')
  assert.deepEqual(
    [spooled, settlement.whyBlocked('acct_1') === undefined, settlement.unsettled],
    [['req_1'], false, 1],
  )
  assert.match((await (await debit('req_1'))[0]) as string, /being settled already/)
  await posters[0]!.answer(9n * costNanos)
  assert.deepEqual([spooled, settlement.whyBlocked('acct_1') === undefined, settlement.unsettled], [[], true, 0])
  assert.deepEqual(events, ['ledger_unsettled'])
})

test('F-S1 only debits that have waited for their own deadline are spooled', async () => {
  const { spooled, pass, debit } = await open()
  await debit('req_1')
  await pass(3_000)
  await debit('req_2')
  await pass(2_000)
  assert.deepEqual(spooled, ['req_1'])
  await pass(3_000)
  assert.deepEqual(spooled, ['req_1', 'req_2'])
})

test('C5 an overdue debit is not spendable again at the next read of the balance', async () => {
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

test('C5 an overdue amount stays owed when another debit of the account is posted', async () => {
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

test('B7 C13 if store and spool both fail, the debit is withdrawn before its client is refused, and is no longer owed', async () => {
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

test('B7 C13 C5 no debit is taken until a commit works again; a debit that the ledger has anyway is returned in that commit', async () => {
  const { settlement, balance, posters, pass, debit, events } = await open({ spoolFails: true })
  const ends = await debit('req_1', 'req_2')
  await pass(5_000)
  await posters[0]!.say(10n * costNanos, 'absent', 'unknown')
  assert.deepEqual(await Promise.all(ends), [refusal, refusal])
  assert.deepEqual([settlement.whyBlocked('acct_1') === undefined, settlement.unsettled], [false, 2])
  // The poster answers what was withdrawn from it, and that settles nothing.
  await posters[0]!.answer(10n * costNanos, 'withdrawn')
  assert.deepEqual(
    [settlement.whyBlocked('acct_1') === undefined, settlement.unsettled, balance.owedNanos],
    [false, 2, 0n],
  )
  assert.deepEqual(
    posters[0]!.gifts.map(({ requestIds }) => requestIds),
    [['req_1', 'req_2']],
  )
  await posters[0]!.give(10n * costNanos, 'req_2')
  assert.deepEqual([settlement.whyBlocked('acct_1') === undefined, settlement.unsettled], [true, 0])
  assert.equal(balance.balanceNanos, 10n * costNanos)
  assert.deepEqual(events, ['ledger_unsettled', 'ledger_withdrawn'])
})

test('B7 C13 a withdrawn debit that is on record gets its answer, whether the poster found it or posted it meanwhile', async () => {
  const { settlement, balance, posters, pass, debit } = await open({ spoolFails: true })
  const ends = await debit('req_1', 'req_2')
  const [other] = await debit('req_3')
  await pass(5_000)
  const [withdrawal] = posters[0]!.withdrawals
  // In order: a posted debit is reported before the answer to a later question.
  posters[0]!.posts.splice(0, 1)
  await posters[0]!.answer(9n * costNanos)
  assert.equal(await other, 'posted')
  withdrawal!.resolve({ fates: ['booked', 'absent', 'booked'], balances: [['acct_1', 8n * costNanos]] })
  assert.deepEqual(await Promise.all(ends), ['exists', refusal])
  assert.deepEqual([balance.balanceNanos, balance.owedNanos], [8n * costNanos, 0n])
  await posters[0]!.give(8n * costNanos)
  assert.deepEqual([settlement.whyBlocked('acct_1') === undefined, settlement.unsettled], [true, 0])
})

test('B7 C13 a debit that is posted while its spool fails is settled and not refused', async () => {
  const { settlement, posters, pass, debit } = await open({ spoolFails: true })
  const [end] = await debit('req_1')
  const passing = pass(5_000)
  posters[0]!.posts[0]!.resolve({ postings: ['posted'], balances: [['acct_1', 9n * costNanos]] })
  await passing
  if (posters[0]!.withdrawals.length > 0) await posters[0]!.say(9n * costNanos, 'booked')
  assert.deepEqual([await end, settlement.whyBlocked('acct_1') === undefined], ['posted', true])
})

test('B7 C13 a silent poster does not delay a refusal for ever; what it posted meanwhile is returned', async () => {
  const { settlement, balance, posters, pass, debit } = await open({ spoolFails: true })
  const [end] = await debit('req_1')
  await pass(5_000)
  await pass(2_499)
  assert.equal(settlement.unsettled, 1)
  await pass(1)
  assert.equal(await end, refusal)
  await posters[0]!.answer(9n * costNanos)
  assert.deepEqual([settlement.whyBlocked('acct_1') === undefined, balance.balanceNanos], [false, 9n * costNanos])
  await posters[0]!.say(9n * costNanos, 'booked')
  assert.equal(settlement.whyBlocked('acct_1') === undefined, false)
  await posters[0]!.give(10n * costNanos, 'req_1')
  assert.deepEqual([settlement.whyBlocked('acct_1') === undefined, balance.balanceNanos], [true, 10n * costNanos])
})

test('B7 C13 a return that cannot be posted yet is noted once the spool is writable, and stays until it is posted', async () => {
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

test('B7 C13 with a spool that fails once, the note is written before the client gets its refusal', async () => {
  const { posters, noted, disk, pass, debit } = await open({ spoolFails: true })
  const [end] = await debit('req_1')
  const seen = end!.then((word) => [word, [...noted]])
  await pass(5_000)
  disk.isFull = false
  await posters[0]!.say(10n * costNanos, 'unknown')
  assert.deepEqual(await seen, [refusal, ['req_1']])
})

test('B7 C13 a debit that is refused while the note of another is written waits for its own note', async () => {
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

test('B7 C13 a debit in a spool that cannot be truncated is noted too, although no store has it', async () => {
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

test('B7 C13 C5 no debit is taken before a first commit has worked; the start waits for it as long as a debit would', async () => {
  const { settlement, posters, isOpen, pass } = await open({ firstCommit: false })
  const told = () => [isOpen(), settlement.whyBlocked('acct_1') === undefined]
  await pass(4_999)
  assert.deepEqual(told(), [false, false])
  await pass(1)
  assert.deepEqual(told(), [true, false])
  await posters[0]!.give(0n)
  assert.deepEqual(told(), [true, true])
})

test('C13 F-P15 if a poster dies during the first commit, the next one does it; without a next one the start fails', async () => {
  const { settlement, posters, isOpen } = await open({ firstCommit: false })
  await posters[0]!.die()
  await turn()
  assert.deepEqual([isOpen(), settlement.whyBlocked('acct_1') === undefined], [false, false])
  await posters[1]!.give(0n)
  assert.deepEqual([isOpen(), settlement.whyBlocked('acct_1') === undefined], [true, true])

  const second = await open({ firstCommit: false })
  second.refuseStarts()
  const refused = assert.rejects(second.opening, /cannot start/)
  await second.posters[0]!.die()
  await refused
  assert.deepEqual([second.settlement.whyBlocked('acct_1') === undefined, second.fatals], [false, []])
})

test('B7 C13 F-P15 a poster that dies passes the returns to the next one, and none of the debits', async () => {
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
  assert.deepEqual([settlement.whyBlocked('acct_1') === undefined, settlement.unsettled], [true, 0])
})

test('B7 C13 closing refuses debits that cannot be kept, gives the poster its returns, and notes what is left', async () => {
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

test('F-P15 the successor of a dead poster gets all unsettled debits; the second death is final', async () => {
  const { settlement, posters, spooled, fatals, events, pass, debit } = await open()
  await debit('req_1')
  await pass(5_000)
  const [second] = await debit('req_2')
  await posters[0]!.die()
  assert.deepEqual(posters[1]!.ids, [['req_1', 'req_2']])
  assert.deepEqual([fatals, events.includes('ledger_worker_restart')], [[], true])
  await posters[1]!.answer(0n)
  assert.equal(await second, 'posted')
  assert.deepEqual([settlement.whyBlocked('acct_1') === undefined, spooled], [true, []])

  const [third] = await debit('req_3')
  await posters[1]!.die()
  assert.equal(await third, 'spooled')
  assert.deepEqual([fatals.length, settlement.whyBlocked('acct_1') === undefined, posters.length], [1, false, 2])
  const [late] = await debit('req_4')
  await pass(0)
  assert.equal(await late, 'spooled')
})

test('F-P15 a debit that arrives while there is no poster goes to the next one', async () => {
  const { posters, debit } = await open()
  const dying = posters[0]!.die()
  const [end] = await debit('req_1')
  await dying
  await posters[1]!.answer(0n)
  assert.equal(await end, 'posted')
})

test('F-P15 a poster that cannot be restarted is fatal', async () => {
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

test('closing waits for debits under way, for a deadline at most, and spools the rest', async () => {
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

test('F-S1 F-P1 the spool is closed last, and contains everything that no store has taken', async () => {
  const { settlement, spooled, closings, pass, debit } = await open()
  await debit('req_1')
  const closing = settlement.close()
  assert.deepEqual(closings, [])
  await pass(5_000)
  await closing
  assert.deepEqual([spooled, closings], [['req_1'], [['req_1']]])
})

test('F-P15 a poster that dies while it is closed gets no successor', async () => {
  const { settlement, posters, events, fatals } = await open()
  const [poster] = posters
  poster!.close = () => poster!.die()
  await settlement.close()
  await turn()
  assert.deepEqual([posters.length, events, fatals], [1, [], []])
})

test('F-S1 a debit that neither store nor spool takes is refused with the error of the spool', async () => {
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

const other: Account = { id: 'acct_2', name: 'two', state: 'active' }
const free = [undefined, undefined, undefined]
const ownOnly = [undefined, 'owing', undefined]

/** Brings `req_1` of the first account into a state, while the store takes what others send. */
const blockedStates = {
  async 'overdue, in the spool'({ debit, pass }) {
    await debit('req_1')
    await pass(5_000)
  },
  async 'several, one of them posted'({ debit, pass, posters }) {
    await debit('req_1')
    await debit('req_2')
    await pass(5_000)
    await posters[0]!.answer(0n)
  },
  async 'withdrawn, and the poster is asked'({ debit, debitOf, pass, posters, disk }) {
    disk.isFull = true
    await debit('req_1')
    await pass(4_500)
    await debitOf(other, 'others')
    posters[0]!.posts.unshift(posters[0]!.posts.pop()!)
    await posters[0]!.answer(0n)
    await pass(500)
  },
  async 'refused, until a commit has written'(rig) {
    await blockedStates['withdrawn, and the poster is asked'](rig)
    await rig.posters[0]!.say(0n, 'unknown')
  },
  async 'of an earlier run, in a spool'({ settlement }) {
    settlement.adopt([createDebitRow('req_1', 'acct_1')])
    await turn()
  },
} satisfies Record<string, (rig: Awaited<ReturnType<typeof open>>) => Promise<void>>

for (const [state, bring] of Object.entries(blockedStates))
  test(`Y16 C5 C13 a debit that is ${state} blocks new inference of its own account only, until it is over`, async () => {
    const rig = await open()
    assert.deepEqual(rig.blocks(), free)
    await bring(rig)
    assert.deepEqual([rig.blocks(), rig.settlement.backlog().blockedAccounts], [ownOnly, 1])
    // What others send meanwhile is posted and over.
    const [end] = await rig.debitOf(other, 'req_9')
    rig.posters[0]!.posts.unshift(rig.posters[0]!.posts.pop()!)
    await rig.posters[0]!.answer(0n)
    assert.deepEqual([await end, rig.blocks()], ['posted', ownOnly])
    while (rig.posters[0]!.posts.length > 0) await rig.posters[0]!.answer(0n)
    while (rig.posters[0]!.withdrawals.length > 0) await rig.posters[0]!.say(0n, 'absent')
    while (rig.posters[0]!.gifts.length > 0) await rig.posters[0]!.give(0n)
    assert.deepEqual([rig.blocks(), rig.settlement.unsettled], [free, 0])
  })

test('Y16 the log names at most twenty blocked accounts, and how many there are', async () => {
  const { debitOf, pass, lines } = await open()
  for (let n = 10; n < 40; n++) await debitOf({ ...other, id: `acct_${n}` }, `req_${n}`, `req_${n}b`)
  await pass(5_000)
  const [{ accounts, ...line } = {}] = lines
  assert.deepEqual(line, { event: 'ledger_unsettled', spooled: 60, overdue: 60, blocked_accounts: 30 })
  assert.deepEqual(
    accounts,
    Array.from({ length: 20 }, (_, n) => `acct_${n + 10}`),
  )
})

test('Y16 a debit that the store rejects for good is over: it does not block its account, late or not', async () => {
  const { blocks, posters, debit, pass } = await open()
  for (const lateMs of [0, 5_000]) {
    const [end] = await debit(`req_${lateMs}`)
    await pass(lateMs)
    await posters[0]!.answer(10n * costNanos, 'rejected')
    assert.match((await end) as string, lateMs === 0 ? /cannot hold/ : /spooled/)
    assert.deepEqual(blocks(), free)
  }
})

test('Y16 C13 if store and spool both fail, all accounts are blocked until either of them accepts a write', async () => {
  const all = ['stuck', 'stuck', 'stuck']
  const cures: Record<string, (rig: Awaited<ReturnType<typeof open>>) => Promise<unknown>> = {
    'a debit of anybody is posted': async ({ posters }) => posters[0]!.answer(0n),
    'a commit that gives nothing back': async ({ posters }) => posters[0]!.give(0n),
    'the spool can be written': async ({ disk, pass, probes }) => {
      // An append that fails is a probe as well.
      await pass(500)
      await pass(999)
      disk.isFull = false
      assert.deepEqual(probes, [])
      await pass(1)
    },
    'a debit that was under way goes into the spool': async ({ disk, pass }) => {
      disk.isFull = false
      await pass(500)
    },
  }
  for (const [cure, apply] of Object.entries(cures)) {
    const rig = await open({ spoolFails: true })
    await rig.debit('req_1')
    await rig.pass(500)
    await rig.debitOf(other, 'req_2')
    await rig.pass(4_500)
    assert.deepEqual(rig.blocks(), all, 'the store has said nothing for a second and more')
    await rig.posters[0]!.say(0n, 'absent')
    assert.deepEqual(rig.blocks(), all)
    // The poster answers what was withdrawn from it, which is no commit.
    await rig.posters[0]!.answer(0n, 'withdrawn')
    assert.deepEqual(rig.blocks(), all)
    await apply(rig)
    assert.equal(rig.blocks()[0], undefined, cure)
  }
})

test('Y16 a spool that stays broken is probed once a second, and a debit that was found does not prove a commit', async () => {
  const { blocks, debit, pass, posters, probes, disk } = await open({ spoolFails: true })
  await debit('req_1')
  await debit('req_2')
  await pass(5_000)
  for (let n = 0; n < 4; n++) await pass(500)
  assert.deepEqual(probes, [6_000, 7_000])
  await posters[0]!.answer(0n, 'exists')
  assert.equal(blocks()[0], 'stuck')
  disk.isFull = false
  await pass(1_000)
  assert.equal(blocks()[0], undefined)
  await pass(1_000)
  assert.equal(probes.length, 3)
})

test('Y16 F-P15 a new poster is asked for a commit while all accounts are blocked, even if it has nothing to return', async () => {
  const { blocks, debit, pass, posters } = await open({ spoolFails: true })
  const [end] = await debit('req_1')
  await pass(5_000)
  await posters[0]!.answer(0n, 'exists')
  assert.equal(await end, 'exists')
  await posters[0]!.say(0n, 'booked')
  await posters[0]!.die()
  assert.deepEqual(blocks(), ['stuck', 'stuck', 'stuck'])
  assert.deepEqual(
    posters[1]!.gifts.map(({ requestIds }) => requestIds),
    [[]],
  )
  await posters[1]!.give(0n)
  assert.deepEqual(blocks(), free)
})

test('Y16 C13 after a start all accounts are blocked until the first commit, then only those with spooled debits', async () => {
  const { settlement, blocks, posters, opening } = await open({ firstCommit: false })
  const none = ['uncommitted', 'uncommitted', 'uncommitted']
  settlement.adopt([createDebitRow('req_1', 'acct_1'), createDebitRow('req_1', 'acct_1')])
  await turn()
  assert.deepEqual(blocks(), none)
  const debit = settlement.debit(createDebit('req_2', other))
  await turn()
  assert.deepEqual(posters[0]!.ids, [['req_1'], ['req_2']])
  const first = posters[0]!.posts.shift()!
  await posters[0]!.answer(9n * costNanos)
  assert.equal(await debit, 'posted')
  await opening
  assert.deepEqual(blocks(), ownOnly)
  posters[0]!.posts.push(first)
  await posters[0]!.answer(9n * costNanos)
  assert.deepEqual(blocks(), free)
})

test('Y16 C5 debits left by an earlier run are owed until the store has them, and go to a new poster too', async () => {
  const { settlement, balance, posters, spooled } = await open()
  settlement.adopt([createDebitRow('req_1', 'acct_1')])
  assert.equal(balance.balanceNanos, 9n * costNanos)
  assert.deepEqual([settlement.backlog().spooled, spooled], [1, []], 'it stays where it is')
  await posters[0]!.die()
  assert.deepEqual(posters[1]!.ids, [['req_1']])
  await posters[1]!.answer(9n * costNanos)
  assert.deepEqual([balance.balanceNanos, balance.owedNanos, settlement.unsettled], [9n * costNanos, 0n, 0])
})

test('Y16 deferred debits are posted again, account by account, and withdrawn ones are not', async () => {
  const { posters, debit, debitOf, disk, pass } = await open({ spoolFails: true })
  const [mine] = await debit('req_0')
  const { resolve } = posters[0]!.posts.shift()!
  await pass(5_000)
  disk.isFull = false
  await posters[0]!.say(0n, 'absent')
  assert.match((await mine) as string, /neither/)
  resolve({ postings: ['deferred'], balances: [] })
  await turn()
  assert.deepEqual(posters[0]!.ids, [], 'its client is refused')

  const ends = [debitOf(other, 'req_1', 'req_2'), debit('req_3', 'req_4'), debitOf({ ...other, id: 'acct_3' }, 'req_5')]
  await turn()
  assert.equal(posters[0]!.posts.length, 1)
  const together = posters[0]!.posts.shift()!
  together.resolve({ postings: ['deferred', 'posted', 'posted', 'deferred', 'deferred'], balances: [] })
  await turn()
  assert.deepEqual(posters[0]!.ids, [['req_1'], ['req_4'], ['req_5']])
  const told = await Promise.race([(await ends[0]!)[1], (await ends[1]!)[0]])
  assert.equal(told, 'posted', 'the others have their answers')
  while (posters[0]!.posts.length > 0) await posters[0]!.answer(0n)
  assert.deepEqual(await Promise.all((await Promise.all(ends)).flat()), Array(5).fill('posted'))
})

test('Y16 at any moment, the blocked accounts are exactly those with an unfinished debit past its deadline', async () => {
  const accounts = [1, 2].map((n): Account => ({ id: `acct_${n}`, name: `${n}`, state: 'active' }))
  const step = fc.oneof(
    fc.record({ do: fc.constant('debit' as const), account: fc.nat(1) }),
    fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 500, max: 6_000 }) }),
    fc.record({ do: fc.constant('post' as const), nth: fc.nat(5), posting: fc.constantFrom('posted', 'exists') }),
    fc.record({ do: fc.constantFrom('fill', 'free', 'give', 'die') }),
    fc.record({ do: fc.constant('say' as const), fate: fc.constantFrom('absent', 'booked', 'unknown') }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 40 }), async (steps) => {
      const rig = await open()
      const { settlement, posters } = rig
      const poster = () => posters.at(-1)!
      let [nowMs, sweptMs, n] = [0, 0, 0]
      /** By request: what is not over. */
      const open_ = new Map<string, { accountId: string; dueMs: number; isRefused: boolean }>()
      const ends = new Map<string, string>()
      for (const one of steps) {
        if (one.do === 'debit') {
          const requestId = `req_${++n}`
          const account = accounts[one.account]!
          open_.set(requestId, { accountId: account.id, dueMs: nowMs + 5_000, isRefused: false })
          const [end] = await rig.debitOf(account, requestId)
          void end!.then((word) => void ends.set(requestId, word))
        } else if (one.do === 'pass') {
          sweptMs = nowMs += one.ms
          await rig.pass(one.ms)
        } else if (one.do === 'post') {
          const [post] = poster().posts.splice(one.nth, 1)
          post?.resolve({ postings: post.debits.map(() => one.posting as Posting), balances: [] })
          await turn()
          // Of one that is refused its return ends it.
          for (const { requestId } of post?.debits ?? [])
            if (!ends.get(requestId)?.startsWith('refused')) open_.delete(requestId)
        } else if (one.do === 'fill' || one.do === 'free') rig.disk.isFull = one.do === 'fill'
        else if (one.do === 'say') {
          const rows = [...open_.keys()]
          poster()
            .withdrawals.shift()
            ?.resolve({ fates: rows.map(() => one.fate as WithdrawalFate), balances: [] })
          await turn()
          for (const requestId of rows) if (ends.get(requestId) === 'exists') open_.delete(requestId)
        } else if (one.do === 'give') {
          const gift = poster().gifts.shift()
          gift?.resolve({ returned: [], balances: [] })
          await turn()
          for (const requestId of gift?.requestIds ?? []) open_.delete(requestId)
        } else if (posters.length === 1) {
          await poster().die()
          await turn()
        }
        const due = [...open_.values()].filter(({ dueMs }) => dueMs <= sweptMs)
        const expected = new Set(due.map(({ accountId }) => accountId))
        assert.equal(settlement.backlog().blockedAccounts, expected.size)
        const all = settlement.whyBlocked()
        for (const { id } of accounts)
          assert.equal(
            settlement.whyBlocked(id),
            all && all !== 'stalled' ? all : expected.has(id) ? 'owing' : undefined,
          )
        // The server is not ready while the debits of both accounts wait, unless one of them waited through a commit.
        if (expected.size < 2) assert.notEqual(all, 'stalled')
      }
    }),
    { numRuns: runsUpTo(300) },
  )
})

test('Y15 C5 while the clock is in doubt no new request is taken, and debits of running ones are spooled', async () => {
  const { settlement, clock, debit, pass, spooled, posters } = await open()
  clock.doubt = 'the clock is in doubt'
  assert.deepEqual([settlement.whyBlocked(), settlement.whyBlocked('acct_2')], ['clock', 'clock'])
  // The poster posts nothing meanwhile, as a store that takes no write.
  const [end] = await debit('req_1')
  await pass(5_000)
  assert.deepEqual([await end, spooled], ['spooled', ['req_1']])
  clock.doubt = undefined
  assert.deepEqual([settlement.whyBlocked(), settlement.whyBlocked('acct_1')], [undefined, 'owing'])
  await posters[0]!.answer(9n * costNanos)
  assert.deepEqual([settlement.whyBlocked('acct_1'), spooled], [undefined, []])
})

type Rig = Awaited<ReturnType<typeof open>>

/** What the store answers for a debit that it has taken: with what the key has spent. */
const postedByKey: Posted = {
  postings: ['posted'],
  balances: [['acct_1', 9n * costNanos]],
  spends: [['line_1', { fromMs: 0, untilMs: Number.MAX_SAFE_INTEGER, spentNanos: costNanos }]],
}

/** Each way in which a debit of the key is over after it was overdue. `left` is what remains of a budget of 100 debits then. */
const lateEnds: { how: string; spoolFails?: boolean; end(rig: Rig): Promise<void>; result: string; left: number }[] = [
  {
    how: 'posted',
    end: async ({ posters }) => posters[0]!.posts.shift()!.resolve(postedByKey),
    result: 'spooled',
    left: 99,
  },
  {
    how: 'found in the ledger',
    end: async ({ posters }) => posters[0]!.posts.shift()!.resolve({ ...postedByKey, postings: ['exists'] }),
    result: 'spooled',
    left: 99,
  },
  {
    how: 'rejected by the ledger',
    end: ({ posters }) => posters[0]!.answer(10n * costNanos, 'rejected'),
    result: 'spooled',
    left: 100,
  },
  {
    how: 'posted by the next poster',
    async end({ posters }) {
      await posters[0]!.die()
      posters[1]!.posts.shift()!.resolve(postedByKey)
    },
    result: 'spooled',
    left: 99,
  },
  {
    how: 'withdrawn',
    spoolFails: true,
    end: ({ posters }) => posters[0]!.say(10n * costNanos, 'absent'),
    result: refusal,
    left: 100,
  },
  {
    how: 'withdrawn and on record after all',
    spoolFails: true,
    async end({ posters }) {
      const { spends, balances } = postedByKey
      posters[0]!.withdrawals.shift()!.resolve({ fates: ['booked'], balances, ...(spends && { spends }) })
    },
    result: 'exists',
    left: 99,
  },
  {
    how: 'posted while it is withdrawn',
    spoolFails: true,
    async end({ posters }) {
      posters[0]!.posts.shift()!.resolve(postedByKey)
      await turn()
      await posters[0]!.say(9n * costNanos, 'booked')
    },
    result: 'posted',
    left: 99,
  },
]

for (const { how, spoolFails = false, end, result, left } of lateEnds)
  test(`R15 C5 an overdue debit that is ${how} is no longer owed by its key`, async () => {
    const rig = await open({ spoolFails })
    const ending = rig.debitByKey('req_1')
    await turn()
    await rig.pass(5_000)
    assert.deepEqual([rig.keyLeft(), rig.balance.owedNanos], [99, costNanos])
    await end(rig)
    await turn()
    assert.deepEqual([await ending, rig.keyLeft(), rig.balance.owedNanos], [result, left, 0n])
  })

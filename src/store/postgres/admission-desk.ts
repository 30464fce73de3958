import type { ClaimScopes, DeskAnswer, DeskOrder } from '../../accounts/desk.ts'
import { admit, calls, tell } from './admit.ts'
import { callOf } from './admit-call.ts'
import type { Transaction } from './database.ts'
import { call, type SqlFunction } from './migrate.ts'
import { Pace } from './pace.ts'
import { leaseMs } from './replicas.ts'
import { type AccountShares, type Identity, isDirty, keyOf, type Share, ShareBook, sharesOf } from './shares.ts'
import { codeOf } from './trouble.ts'

type DeskOptions = {
  /**
   * The database. It has a connection for each lane, and a lane runs one call at a time. Commits do not wait for the
   * disk, because a lost write does no harm.
   */
  database: Transaction
  /** Returns a monotonic time in ms. */
  clockMs(): number
  answer(answers: DeskAnswer[]): void
  /** Called at most once a second, if a call to the database has failed and is tried again. */
  onTrouble?(error: Error, code: string): void
  /** How long a replica counts as alive after its last heartbeat, in ms. */
  leaseMs?: number
  /** The longest wait of an ask, in ms. An ask is the question whether a request may run. */
  patienceMs?: number
  lanes?: number
  /** The SQL functions to call; a test replaces them. */
  functions?: { admit: SqlFunction; tell: SqlFunction }
}

const patienceMs = 2_000

/** The most accounts in one call. They are locked until the call ends, so large calls make other replicas wait. */
const accountsMax = 16

/**
 * The most accounts, keys and people in one call of `tell`, so that the call ends within the time limit of all calls.
 */
const toldMax = 2_000

/**
 * Changed figures of an account are sent to the database with the account's next ask (the question whether a request
 * may run). If none comes within this time, in ms, they are sent alone.
 */
const idleMs = 2_000

/** The shortest time between two reports of failures, in ms. */
const troubleMs = 1_000

/** Errors that are normal after a restart or a loss of the database. */
const expected: readonly string[] = [calls.tellFirst, calls.othersSilent, calls.late]

/** How often the desk looks for asks that have expired, and for figures that were not sent yet, in ms. */
const lookMs = 50

const pauseMinMs = 25
const pauseMaxMs = 100

/**
 * For one replica, asks the database whether requests may run. Such a question is called an ask.
 *
 * - Each of a few lanes (two by default) has at most one call to the database under way.
 * - A call carries all asks that arrived since the previous call. A failed call is repeated until its asks expire.
 * - An account is in only one call at a time, because its figures must arrive in order.
 * - Every ask writes the figures of this replica, which are its holds (reserved credit) and its places in rate windows
 *   (admit.ts).
 * - `tell` and `admit` never run at the same time. So the figures of `tell` include all holds and places that `admit`
 *   has granted.
 */
export class AdmissionDesk {
  readonly #options: Required<Omit<DeskOptions, 'onTrouble'>> & Pick<DeskOptions, 'onTrouble'>
  readonly #book = new ShareBook()
  readonly #pace: Pace
  /** Accounts to send with the next calls, in the order in which the accounts were added. */
  readonly #due = new Set<AccountShares>()
  /** The accounts whose figures a call is sending to the database now, or sends again after a failure. */
  readonly #inCalls = new Set<AccountShares>()
  #freeLanes: number
  /** The accounts whose figures in the database are out of date, each with the time of the first unsent change. */
  readonly #dirty = new Map<AccountShares, number>()
  /** The waiting asks in the order of arrival. They expire in the same order. */
  #waiting: { dueMs: number; isOver: boolean; id: number; accountId: string }[] = []
  #identity: Identity | undefined
  #turn = 0
  #underWay = 0
  #quiet: (() => void) | undefined
  #telling: Promise<void> | undefined
  /** Whether the next call begins as soon as all messages that have arrived are read. */
  #isImmediate = false
  /** The timer of the next call, while that call waits. */
  #delay: NodeJS.Timeout | undefined
  #isClosed = false
  #toldTroubleMs = Number.NEGATIVE_INFINITY
  /** When the database last answered any call. */
  #answeredMs = Number.NEGATIVE_INFINITY
  /** When the database last answered a call of this desk. */
  #admittedMs = Number.NEGATIVE_INFINITY
  /** Whether an ask expired, and the database answered no call of this thread between its arrival and its expiry. */
  #isUnheard = false
  /**
   * The accounts of asks that expired while the database answered no call of this desk. With more than one such
   * account, a whole table may be locked.
   */
  readonly #refused = new Set<string>()
  /** The database's time when it last answered, and our clock at that moment. They show which rate windows are over. */
  #heard = { databaseMs: 0, clockMs: 0 }
  readonly #timer: NodeJS.Timeout

  constructor(options: DeskOptions) {
    const lanes = options.lanes ?? 2
    this.#options = { leaseMs, patienceMs, lanes, functions: { admit, tell }, ...options }
    this.#pace = new Pace(this.#options.clockMs)
    this.#freeLanes = lanes
    this.#timer = setInterval(() => this.#look(), lookMs)
  }

  /** Executes the server's orders, one after the other. */
  take(orders: readonly DeskOrder[]): void {
    for (const order of orders) {
      if (order.say === 'ask') this.#ask(order.ask)
      else if (order.say === 'silent') this.#checkSilence(order.forMs)
      else this.#change(order, order.say === 'owe' ? order.amountNanos : -order.holdNanos)
    }
  }

  /**
   * Sends all figures to the database: at the start, on each new connection, and after the database has lost its
   * tables.
   */
  tell(identity: Identity): Promise<void> {
    this.#identity = identity
    this.#telling ??= this.#tellAlone(identity).finally(() => {
      this.#telling = undefined
    })
    return this.#telling
  }

  /**
   * Forgets accounts without waiting asks, without holds (reserved credit) and without open windows, whose figures were
   * all sent.
   */
  forgetIdle(): void {
    const { databaseMs, clockMs } = this.#heard
    const isBusy = (account: AccountShares) =>
      this.#due.has(account) || this.#inCalls.has(account) || this.#dirty.has(account)
    if (databaseMs > 0) this.#book.forgetIdle(databaseMs + this.#options.clockMs() - clockMs, isBusy)
  }

  /** The number of known accounts. */
  get size(): number {
    return this.#book.size
  }

  /** Notes that the database has answered this desk (`isOwn`), or another part of the thread. */
  noteAnswered(isOwn = false): void {
    const wasSilent = this.#isStoreSilent
    this.#answeredMs = this.#options.clockMs()
    this.#isUnheard = false
    if (isOwn) {
      this.#admittedMs = this.#answeredMs
      this.#refused.clear()
    }
    if (wasSilent && !this.#isStoreSilent) this.#options.answer([])
  }

  /** Whether the whole store is silent. One silent account does not count, as its rows may be locked (ruling Y16). */
  get #isStoreSilent(): boolean {
    return this.#isUnheard || this.#refused.size > 1
  }

  /** Ends the desk. All asks that still wait get the verdict `silent`. */
  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
    this.#expire(Number.POSITIVE_INFINITY)
  }

  #checkSilence(forMs: number): void {
    this.#isUnheard = this.#answeredMs < this.#options.clockMs() - forMs
    if (!this.#isStoreSilent) this.#options.answer([])
  }

  #ask(ask: Extract<DeskOrder, { say: 'ask' }>['ask']): void {
    const account = this.#book.of(ask.accountId)
    const open = { ...ask, dueMs: this.#options.clockMs() + this.#options.patienceMs, isOver: false }
    account.asks.push(open)
    this.#waiting.push(open)
    this.#want(account)
  }

  #change({ accountId, keyId, personId }: ClaimScopes, nanos: bigint): void {
    const account = this.#book.of(accountId)
    const { own } = account
    own.heldNanos += nanos
    if (keyId !== undefined) keyOf(account, keyId).heldNanos += nanos
    if (personId !== undefined) keyOf(account, personId).heldNanos += nanos
    const isNarrow = keyId !== undefined || personId !== undefined
    // If credit is short, the new figures are sent at once. With old figures, the database could refuse a request
    // although credit is free, or admit one although credit is owed. The figures are also sent at once if a budget, or
    // a limit of a key or person, applies. The desk does not know how much is left of these.
    if (isNarrow || account.hasBudget || account.balanceNanos < 20n * (own.heldNanos + (nanos < 0n ? -nanos : nanos)))
      this.#want(account)
    else if (!this.#dirty.has(account)) this.#dirty.set(account, this.#options.clockMs())
  }

  /**
   * Puts the account into the next call to the database. That call takes all accounts that are added before it starts.
   */
  #want(account: AccountShares): void {
    this.#due.add(account)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isImmediate || this.#due.size === 0 || this.#freeLanes === 0) return
    // A full call need not wait, because more accounts would not fit into it.
    const isFull =
      this.#due.size >= accountsMax && this.#due.size - this.#inCalls.intersection(this.#due).size >= accountsMax
    if (this.#delay && !isFull) return
    clearTimeout(this.#delay)
    const waitMs = isFull ? 0 : this.#pace.waitMs
    this.#isImmediate = waitMs === 0
    const fill = () => {
      this.#isImmediate = false
      this.#delay = undefined
      this.#fill()
    }
    this.#delay = waitMs > 0 ? setTimeout(fill, waitMs) : void setImmediate(fill)
  }

  #fill(): void {
    if (this.#isClosed) return
    const batch: AccountShares[] = []
    for (const account of this.#due) {
      if (this.#inCalls.has(account)) continue
      this.#due.delete(account)
      if (batch.push(account) === accountsMax) break
    }
    if (batch.length === 0) return
    void this.#run(batch)
    this.#schedule()
  }

  async #run(batch: readonly AccountShares[]): Promise<void> {
    this.#freeLanes--
    for (const account of batch) this.#inCalls.add(account)
    await this.#admit(batch)
    for (const account of batch) this.#inCalls.delete(account)
    this.#freeLanes++
    this.#schedule()
  }

  /** Repeats the call until the database answers, or until no request waits for the accounts of the call any more. */
  async #admit(batch: readonly AccountShares[]): Promise<void> {
    for (const account of batch) this.#dirty.delete(account)
    for (let pause = pauseMinMs; ; pause = Math.min(pauseMaxMs, pause * 2)) {
      while (this.#telling) await this.#telling.catch(() => {})
      const failure = await this.#tryAdmit(batch)
      if (failure === undefined) break
      this.#noteTrouble(failure)
      if (this.#isClosed || !batch.some(isWaitedFor)) break
      if (codeOf(failure) === calls.tellFirst && (await this.#tellAgain())) continue
      await new Promise((resolve) => setTimeout(resolve, pause))
    }
    for (const account of batch) this.#settle(account)
  }

  #noteTrouble(failure: unknown): void {
    const nowMs = this.#options.clockMs()
    const code = codeOf(failure)
    if (nowMs - this.#toldTroubleMs < troubleMs || expected.includes(code)) return
    this.#toldTroubleMs = nowMs
    this.#options.onTrouble?.(failure as Error, code)
  }

  async #tellAgain(): Promise<boolean> {
    return this.tell(this.#identity!).then(
      () => true,
      () => false,
    )
  }

  /** Tries once to send a batch of asks to the database. @returns the failure; undefined if the call succeeded */
  async #tryAdmit(batch: readonly AccountShares[]): Promise<unknown> {
    const { database, functions, clockMs, answer } = this.#options
    if (!this.#identity) return new Error('not registered yet')
    for (const account of batch) account.asks = account.asks.filter(({ isOver }) => !isOver)
    const asking = callOf(this.#identity, this.#options.leaseMs, ++this.#turn, batch)
    const asked = batch.map(({ asks }) => asks)
    // Asks that arrive during this call go with the next one.
    for (const account of batch) account.asks = []
    this.#underWay++
    const answered = this.#pace.begin(asked.reduce((sum, asks) => sum + asks.length, 0))
    try {
      const { answers, nowMs } = asking.read(await call<string>(database, functions.admit, asking.values))
      answered()
      this.noteAnswered(true)
      this.#heard = { databaseMs: nowMs, clockMs: clockMs() }
      if (answers.length > 0) answer(answers)
      return undefined
    } catch (error) {
      for (const [index, account] of batch.entries()) {
        // The database may or may not have the figures of this call.
        for (const share of sharesOf(account)) share.told = 'unknown'
        account.asks = [...asked[index]!, ...account.asks]
      }
      return error ?? new Error('no answer')
    } finally {
      if (--this.#underWay === 0) this.#quiet?.()
    }
  }

  /** Puts an account into a later call if its figures have changed, or if its requests wait for a verdict. */
  #settle(account: AccountShares): void {
    if (isWaitedFor(account)) this.#due.add(account)
    else if (sharesOf(account).some(isDirty) && !this.#dirty.has(account))
      this.#dirty.set(account, this.#options.clockMs())
  }

  async #tellAlone(identity: Identity): Promise<void> {
    if (this.#underWay > 0) {
      await new Promise<void>((resolve) => {
        this.#quiet = resolve
      })
      this.#quiet = undefined
    }
    const shares = [...this.#book.worthTelling()]
    const sinceTurn = this.#turn + 1
    for (let from = 0; from === 0 || from < shares.length; from += toldMax) {
      const isLast = from + toldMax >= shares.length
      await this.#tellSome(identity, sinceTurn, isLast, shares.slice(from, from + toldMax))
    }
  }

  async #tellSome({ id, startedMs }: Identity, sinceTurn: number, isLast: boolean, shares: Share[]): Promise<void> {
    const { database, functions } = this.#options
    // The figures may change during the call. Holds (reserved credit) that are released meanwhile are sent with the
    // next call.
    const told = shares.map(({ heldNanos, taken }) => ({ heldNanos, taken }))
    const values = [
      ...[id, startedMs, sinceTurn, ++this.#turn, isLast],
      shares.map(({ scope }) => scope),
      told.map(({ heldNanos }) => heldNanos),
      shares.map(({ windowMs }) => windowMs),
      told.map(({ taken }) => taken),
    ]
    await call(database, functions.tell, values)
    for (const [index, share] of shares.entries()) share.told = told[index]!
  }

  #look(): void {
    const nowMs = this.#options.clockMs()
    this.#expire(nowMs)
    for (const [account, sinceMs] of this.#dirty) {
      if (sinceMs + idleMs > nowMs) break
      this.#dirty.delete(account)
      this.#want(account)
    }
  }

  #expire(nowMs: number): void {
    let late = 0
    const answers: DeskAnswer[] = []
    for (const ask of this.#waiting) {
      if (!ask.isOver && ask.dueMs > nowMs) break
      late++
      if (ask.isOver) continue
      ask.isOver = true
      const askedMs = ask.dueMs - this.#options.patienceMs
      this.#isUnheard ||= this.#answeredMs < askedMs
      if (this.#admittedMs < askedMs) this.#refused.add(ask.accountId)
      answers.push({
        id: ask.id,
        verdict: 'silent',
        isStoreSilent: this.#isStoreSilent,
        figures: undefined,
        place: undefined,
      })
    }
    if (late > 0) this.#waiting = this.#waiting.slice(late)
    if (answers.length > 0) this.#options.answer(answers)
  }
}

function isWaitedFor({ asks }: AccountShares): boolean {
  return asks.some(({ isOver }) => !isOver)
}

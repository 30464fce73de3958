import type { Account, ApiKey, LiveBounds } from './account.ts'
import { type Budget, spentAt } from './budget.ts'
import type { Ledger } from './ledger.ts'
import { createWindows, narrower, type WindowFigures, type WindowPlace, type Windows, windowMs } from './limits.ts'
import { type Balance, type Balances, type BoundsBook, hold, isAdmitted } from './live-accounts.ts'

/** Why a request may not run now. The gateway chooses the response to the client. */
export type AdmissionRefusal = { ok: false } & (
  | {
      why:
        | 'unwritable' // the store cannot take debits of any account, or of this account (rulings C5, Y16)
        | 'busy' // the process refuses new requests so that running ones can finish
    }
  | {
      why:
        | 'spent' // the account has no credit left
        | 'held' // running requests hold all remaining credit, so a retry may succeed
      /** The settled balance. Holds are not deducted. */
      balanceNanos: bigint
    }
  | {
      /**
       * The budget that refuses the request: the account's, the person's or the key's (rulings R15, Y20). Either it is
       * spent, or running requests hold all that is left of it.
       */
      why: BudgetRefusal
      budget: Budget
      /** The unspent part of the budget. Holds are not deducted. */
      leftNanos: bigint
      /** When the budget renews, in Unix milliseconds. Undefined if it never renews, or the time is unknown. */
      renewsMs: number | undefined
    }
  | {
      why: WindowRefusal
      /** Whole seconds until the rate window ends. */
      retryAfterSeconds: number
    }
)

/** Why a budget refuses a request, as written in logs and metrics. */
export type BudgetRefusal = `${BudgetOwner}budget_${'spent' | 'held'}`

/** Which rate window is full: the account's, that of the person over all their keys, or the key's own. */
export type WindowRefusal = `${'person_' | 'key_' | ''}window`

/** The prefix of a `BudgetRefusal`, which says whose budget it is. For a key's budget the prefix is empty. */
type BudgetOwner = 'account_' | 'person_' | ''

/** A request that may run. Its estimated cost is on hold: set aside, so that no other request can spend it. */
export type Admitted = {
  ok: true
  /**
   * Releases the hold. With an amount, that part of the hold is kept. Call it without an amount when the debit is
   * durable, or when the request costs nothing. After a full release, further calls do nothing.
   */
  release(keptNanos?: bigint): void
}

/** A request that has passed the first checks, which do not need its body. The request does not hold credit yet. */
export type Entered = Disposable & {
  ok: true
  /**
   * Holds the estimated cost of the answer, in nano-credits (ruling C2). Call it once. If credit is refused, the
   * request's place in the rate window is given back (ruling R1).
   */
  admit(holdNanos: bigint): Promise<Admitted | AdmissionRefusal>
  /**
   * Checks credit and rate. Call this before a body is rejected, because these refusals take precedence over a mistake
   * in the body (ruling R1). Takes a place in the rate window. @returns the refusal; undefined if the checks pass
   */
  judge(): Promise<AdmissionRefusal | undefined>
  /**
   * Ends the checks of the request, whatever their result. If neither `admit` nor `judge` was called, the request still
   * takes its place in the rate window (ruling R1). The hold of an admitted request stays until `release`.
   */
  [Symbol.dispose](): void
}

/**
 * Decides whether a request may run. There must be enough credit, and a place in the rate window (rulings R1, C2, spec
 * 8). Limits apply to the key, its person and its account (rulings R15, Y20). With a store in this process, `enter`
 * decides credit and rate before the body is read. With a store on another machine, `enter` checks only the figures
 * that this process remembers. Then `admit` decides everything.
 */
export interface Admission {
  /** Call this once for each request whose key is valid and whose account is active. */
  enter(key: ApiKey): Promise<Entered | AdmissionRefusal>
  /**
   * Returns the account's present balance, and the rate window that has the fewest places left: the account's, the
   * person's or the key's (ruling R13). Undefined if this process does not know the account.
   */
  look(accountId: string, bounds?: LiveBounds, person?: LiveBounds): Standing | undefined
  /**
   * Returns the unspent part of the budget of a key or person in nano-credits, as far as this process knows it. Holds
   * are not deducted.
   */
  lookBudget(bounds: LiveBounds & { budget: Budget }): bigint
}

/** The balance and the rate window of an account. */
export type Standing = {
  /** The settled balance. The holds of running requests are not deducted. */
  balanceNanos: bigint
  /** The rate window with the fewest places left: the key's, the person's or the account's. */
  window: WindowFigures | undefined
}

export type AdmissionOptions = {
  balances: Pick<Balances, 'get'>
  /** Returns the limits of keys, people and accounts, and what is left of each budget. */
  bounds: Pick<BoundsBook, 'left' | 'of'>
  /** The rate windows of accounts. */
  windows: Windows
  whyBlocked: Ledger['whyBlocked']
  isShedding(): boolean
  /** A monotonic clock in ms, by which the rate windows of keys and people end. */
  clockMs(): number
  /** The current time in Unix milliseconds. The periods of budgets end by this clock. */
  nowMs(): number
}

/**
 * Keeps balances, budgets and holds in the memory of the only serving process. The order of the checks is that of the
 * code below (rulings R1, R15).
 */
export function createAdmission(options: AdmissionOptions): Admission {
  const { balances, windows, whyBlocked, isShedding, clockMs } = options
  // The rate windows of keys and people. Each has its own limit.
  const keyWindows = createWindows({ limit: Number.POSITIVE_INFINITY, windowMs, clockMs })
  const judge: Judge = { isBlocked: (accountId) => whyBlocked(accountId) !== undefined, judgeBudgets }
  return { enter, look, lookBudget }

  function lookBudget(bounds: LiveBounds & { budget: Budget }): bigint {
    return options.bounds.left(bounds, bounds.budget, options.nowMs()).creditNanos
  }

  function look(accountId: string, bounds?: LiveBounds, person?: LiveBounds): Standing | undefined {
    const balance = balances.get(accountId)
    if (!balance) return undefined
    const window = windows.look(accountId, options.bounds.of(accountId)?.requestsPerMinute)
    const own = narrower(lookAt(person), lookAt(bounds))
    return { balanceNanos: balance.balanceNanos, window: narrower(window, own) }
  }

  function lookAt(bounds: LiveBounds | undefined): WindowFigures | undefined {
    const rate = bounds?.requestsPerMinute
    return rate === undefined ? undefined : keyWindows.look(bounds!.scope, rate)
  }

  async function enter({ account, bounds, personBounds: person }: ApiKey): Promise<Entered | AdmissionRefusal> {
    if (whyBlocked(account.id)) return { ok: false, why: 'unwritable' }
    const balance = balances.get(account.id)
    if (!balance || !isAdmitted(balance)) return withoutCredit(balance)
    const payer = { account, balance, bounds, person }
    const refused = judgeBudgets(payer)
    if (refused) return refused
    if (isShedding()) return { ok: false, why: 'busy' }
    const most = account.bounds?.requestsPerMinute
    const isNarrow = bounds?.requestsPerMinute !== undefined || person?.requestsPerMinute !== undefined
    const place: KeyPlace = isNarrow
      ? takeAll(account.id, most, limitedBy(person, bounds))
      : windows.take(account.id, most)
    if (!place.ok) return { ok: false, why: place.why ?? 'window', retryAfterSeconds: place.retryAfterSeconds }
    return new Entry(payer, place, judge)
  }

  /** Checks the budget of the account (for all its keys), then the budget of the person, then that of the key. */
  function judgeBudgets({ account, balance, bounds, person }: RequestPayer): AdmissionRefusal | undefined {
    const own = account.bounds
    if (own?.budget !== undefined) {
      const nowMs = options.nowMs()
      const leftNanos = own.budget.nanos - spentAt(own.spend, nowMs) - balance.owedNanos
      if (leftNanos <= balance.heldNanos) return withoutBudget('account_', own, own.budget, leftNanos, nowMs)
    }
    const refused = person?.budget && judgeBudget('person_', person, person.budget)
    return refused ?? (bounds?.budget && judgeBudget('', bounds, bounds.budget))
  }

  function judgeBudget(whose: BudgetOwner, bounds: LiveBounds, budget: Budget): AdmissionRefusal | undefined {
    const nowMs = options.nowMs()
    const { creditNanos, freeNanos } = options.bounds.left(bounds, budget, nowMs)
    return freeNanos > 0n ? undefined : withoutBudget(whose, bounds, budget, creditNanos, nowMs)
  }

  /**
   * Takes a place in every rate window, or in none. If one window refuses, no place in another window is used up
   * (ruling R15).
   */
  function takeAll(accountId: string, most: number | undefined, narrow: readonly LimitedScope[]): KeyPlace {
    const full = narrow.find(({ scope, rate }) => keyWindows.isFull(scope, rate))
    if (full) {
      const account = windows.look(accountId, most)
      if (account?.left === 0) return { ok: false, why: 'window', retryAfterSeconds: Math.max(1, account.resetSeconds) }
      const { resetSeconds } = keyWindows.look(full.scope, full.rate)
      return { ok: false, why: full.why, retryAfterSeconds: Math.max(1, resetSeconds) }
    }
    const place = windows.take(accountId, most)
    if (!place.ok) return place
    const own = narrow.map(({ scope, rate }) => keyWindows.take(scope, rate))
    return {
      ok: true,
      giveBack() {
        place.giveBack()
        for (const one of own) if (one.ok) one.giveBack()
      },
    }
  }
}

type KeyPlace = WindowPlace & { why?: WindowRefusal }

/** A rate window with its own limit, and the refusal to return if it is full. */
type LimitedScope = { why: WindowRefusal; scope: string; rate: number }

/** Lists the limited rate windows of the person and of the key, in the order in which they are checked. */
function limitedBy(person: LiveBounds | undefined, key: LiveBounds | undefined): LimitedScope[] {
  const limited: LimitedScope[] = []
  const add = (why: LimitedScope['why'], bounds: LiveBounds | undefined) => {
    const rate = bounds?.requestsPerMinute
    if (rate !== undefined) limited.push({ why, scope: bounds!.scope, rate })
  }
  add('person_window', person)
  add('key_window', key)
  return limited
}

/**
 * Everything that the checks of a request need. @property bounds the limits of the key @property person the limits of
 * the person to whom the key belongs
 */
type RequestPayer = {
  account: Account
  balance: Balance
  bounds: LiveBounds | undefined
  person: LiveBounds | undefined
}

type Judge = { isBlocked(accountId: string): boolean; judgeBudgets(payer: RequestPayer): AdmissionRefusal | undefined }

function withoutBudget(
  whose: BudgetOwner,
  { spend }: LiveBounds,
  budget: Budget,
  leftNanos: bigint,
  nowMs: number,
): AdmissionRefusal {
  const renewsMs = budget.per !== undefined && spend && nowMs < spend.untilMs ? spend.untilMs : undefined
  const why = `${whose}${leftNanos > 0n ? 'budget_held' : 'budget_spent'}` as const
  return { ok: false, why, budget, leftNanos: leftNanos > 0n ? leftNanos : 0n, renewsMs }
}

function withoutCredit({ balanceNanos }: Pick<Balance, 'balanceNanos'> = { balanceNanos: 0n }): AdmissionRefusal {
  return { ok: false, why: balanceNanos > 0n ? 'held' : 'spent', balanceNanos }
}

class Entry implements Entered {
  readonly ok = true
  readonly #payer: RequestPayer
  readonly #place: WindowPlace & { ok: true }
  readonly #judge: Judge

  constructor(payer: RequestPayer, place: WindowPlace & { ok: true }, judge: Judge) {
    this.#payer = payer
    this.#place = place
    this.#judge = judge
  }

  /**
   * Repeats the checks. While the body was read, other requests may have taken holds, or the store may have become
   * unavailable (ruling C5).
   */
  async admit(holdNanos: bigint): Promise<Admitted | AdmissionRefusal> {
    const { account, balance, bounds, person } = this.#payer
    if (this.#judge.isBlocked(account.id)) return { ok: false, why: 'unwritable' }
    const refused = isAdmitted(balance) ? this.#judge.judgeBudgets(this.#payer) : withoutCredit(balance)
    if (refused === undefined) return { ok: true, release: hold(balance, holdNanos, bounds, person) }
    this.#place.giveBack()
    return refused
  }

  /** Does nothing, because `enter` has already checked everything. */
  async judge(): Promise<undefined> {}

  /** Does nothing, because `enter` has already taken the place in the window. */
  [Symbol.dispose](): void {}
}

import type { Account, ApiKey } from './account.ts'
import { type Balance, type Balances, hold, isAdmitted } from './balances.ts'
import { type Budget, spentAt } from './budget.ts'
import type { Ledger } from './ledger.ts'
import { narrower, type WindowFigures, type WindowPlace, type Windows } from './limits.ts'
import type { BoundsBook, LiveBounds } from './live-bounds.ts'

/** Why a request may not run now. The gateway chooses the answer to the client. */
export type AdmissionRefusal = { ok: false } & (
  | {
      why:
        | 'unwritable' // the store cannot take debits, of all accounts or of this one (rulings C5, Y16)
        | 'busy' // the process refuses new requests so that running ones finish
    }
  | {
      why:
        | 'no_credit' // no credit is left
        | 'all_held' // running requests hold all the credit that is left: a retry makes sense
      /** The settled balance; holds are not deducted. */
      balanceNanos: bigint
    }
  | {
      /** The same for the budget of the account or the person, over all their keys, or for the key's own (rulings R15, Y20). */
      why: BudgetRefusal
      budget: Budget
      /** The unspent part of the budget; holds are not deducted. */
      leftNanos: bigint
      /** Unix milliseconds; undefined if the budget never renews, or the time is unknown. */
      renewsMs: number | undefined
    }
  | {
      why:
        | 'rate' // the account's window is full
        | 'person_rate' // the window of the person over all their keys is full
        | 'key_rate' // the key's own window is full
      /** Whole seconds until the window ends. */
      retryAfterSeconds: number
    }
)

/** Why a budget refuses a request, in the words of logs and metrics. */
export type BudgetRefusal = `${BudgetOwner}budget_${'spent' | 'held'}`

/** Whose budget it is; the key's has no word. */
type BudgetOwner = 'account_' | 'person_' | ''

/** A request that may run. */
export type Admitted = {
  ok: true
  /**
   * Releases the hold, or all of it but what is kept. Call it without that when the debit is durable, or when the request costs
   * nothing. After the whole release no call counts.
   */
  release(keptNanos?: bigint): void
}

/** A request that has passed the checks of its head and has no hold yet. */
export type Entered = Disposable & {
  ok: true
  /**
   * Holds the probable cost of the answer, in nano-credits (ruling C2). Call it once. If credit is refused, the request
   * gives its place in the rate window back (ruling R1).
   */
  admit(holdNanos: bigint): Promise<Admitted | AdmissionRefusal>
  /**
   * Call this before a request is refused for a mistake in its body: credit and rate are judged first (ruling R1). Uses
   * a place in the window. @returns the refusal that `enter` would have given.
   */
  judge(): Promise<AdmissionRefusal | undefined>
  /**
   * Ends the checks of the request. A request that ends before it has asked still uses its place in the window (ruling
   * R1). An admitted request ends with its release.
   */
  [Symbol.dispose](): void
}

/**
 * Decides whether a request may run, by credit, rate window and hold (rulings R1, C2, spec 8). A store in this process
 * decides credit and window in `enter`, before the body is read. For a store on another machine, `enter` only looks at
 * what is remembered here, and `admit` decides it all in one step. Limits are the key's, its person's and its account's (rulings
 * R15, Y20).
 */
export interface Admission {
  /** Call this once for a request whose key is valid and whose account is active. */
  enter(key: ApiKey): Promise<Entered | AdmissionRefusal>
  /** The balance and window of an account now (ruling R13), for one of its keys; undefined if they are not known at once. */
  look(accountId: string, bounds?: LiveBounds, person?: LiveBounds): Standing | undefined
  /** The unspent part of the budget of a key or a person in nano-credits, as far as it is known here; holds are not deducted. */
  lookBudget(bounds: LiveBounds & { budget: Budget }): bigint
}

/** The balance and the rate window of an account. */
export type Standing = {
  /** The settled balance; the holds of running requests are not deducted. */
  balanceNanos: bigint
  /** The window of the key, the person or the account, whichever has the fewest places left. */
  window: WindowFigures | undefined
}

export type AdmissionOptions = {
  balances: Pick<Balances, 'get'>
  /** Knows what is left of budgets. */
  bounds: Pick<BoundsBook, 'left' | 'of'>
  /** The rate windows of accounts that are in force now; a reload may replace them. */
  windows(): Windows
  /** The rate windows of keys and people, each with a limit of its own. */
  keyWindows: Windows
  whyBlocked: Ledger['whyBlocked']
  isShedding(): boolean
  /** Unix milliseconds, by which the periods of budgets end. */
  nowMs(): number
}

/**
 * Keeps balances, budgets and holds in the memory of the only serving process. The checks run in the order of the lines
 * (rulings R1, R15).
 */
export function createAdmission(options: AdmissionOptions): Admission {
  const { balances, windows, keyWindows, whyBlocked, isShedding } = options
  const judge: Judge = { isBlocked: (accountId) => whyBlocked(accountId) !== undefined, judgeBudgets }
  return { enter, look, lookBudget }

  function lookBudget(bounds: LiveBounds & { budget: Budget }): bigint {
    return options.bounds.left(bounds, bounds.budget, options.nowMs()).creditNanos
  }

  function look(accountId: string, bounds?: LiveBounds, person?: LiveBounds): Standing | undefined {
    const balance = balances.get(accountId)
    if (!balance) return undefined
    const window = windows().look(accountId, options.bounds.of(accountId)?.requestsPerMinute)
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
      : windows().take(account.id, most)
    if (!place.ok) return { ok: false, why: place.why ?? 'rate', retryAfterSeconds: place.retryAfterSeconds }
    return new Entry(payer, place, judge)
  }

  /** The budget of the account, over all its keys, then that of the person, then that of the key. */
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

  /** Takes a place in all windows or in none: a refusal by one uses no place of another (ruling R15). */
  function takeAll(accountId: string, most: number | undefined, narrow: readonly LimitedScope[]): KeyPlace {
    const full = narrow.find(({ scope, rate }) => keyWindows.isFull(scope, rate))
    if (full) {
      const account = windows().look(accountId, most)
      if (account?.left === 0) return { ok: false, why: 'rate', retryAfterSeconds: Math.max(1, account.resetSeconds) }
      const { resetSeconds } = keyWindows.look(full.scope, full.rate)
      return { ok: false, why: full.why, retryAfterSeconds: Math.max(1, resetSeconds) }
    }
    const place = windows().take(accountId, most)
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

type KeyPlace = WindowPlace & { why?: 'rate' | 'person_rate' | 'key_rate' }

/** A window with a limit of its own, and the refusal where it is full. */
type LimitedScope = { why: 'person_rate' | 'key_rate'; scope: string; rate: number }

/** In the order of refusals. */
function limitedBy(person: LiveBounds | undefined, key: LiveBounds | undefined): LimitedScope[] {
  const limited: LimitedScope[] = []
  const add = (why: LimitedScope['why'], bounds: LiveBounds | undefined) => {
    const rate = bounds?.requestsPerMinute
    if (rate !== undefined) limited.push({ why, scope: bounds!.scope, rate })
  }
  add('person_rate', person)
  add('key_rate', key)
  return limited
}

/** All by which a request is judged. @property bounds those of the key @property person those of its person */
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
  return { ok: false, why: balanceNanos > 0n ? 'all_held' : 'no_credit', balanceNanos }
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
   * Checks again: while the body was read, other requests may have taken holds, or the store may have been lost (ruling
   * C5).
   */
  async admit(holdNanos: bigint): Promise<Admitted | AdmissionRefusal> {
    const { account, balance, bounds, person } = this.#payer
    if (this.#judge.isBlocked(account.id)) return { ok: false, why: 'unwritable' }
    const refused = isAdmitted(balance) ? this.#judge.judgeBudgets(this.#payer) : withoutCredit(balance)
    if (refused === undefined) return { ok: true, release: hold(balance, holdNanos, bounds, person) }
    this.#place.giveBack()
    return refused
  }

  /** Nothing is left to judge: `enter` has decided everything. */
  async judge(): Promise<undefined> {}

  /** Nothing to do: `enter` has taken the place in the window. */
  [Symbol.dispose](): void {}
}

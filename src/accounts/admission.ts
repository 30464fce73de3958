import type { ApiKey } from './account.ts'
import type { Balances } from './balances.ts'
import type { Budget } from './budget.ts'
import { type Balance, hold, isAdmitted } from './holds.ts'
import type { Ledger } from './ledger.ts'
import { narrower, type WindowFigures, type WindowPlace, type Windows } from './limits.ts'
import type { BoundsBook, LiveBounds } from './live-bounds.ts'

/** Why a request may not run now. What its client is told is the gateway's business. */
export type AdmissionRefusal = { ok: false } & (
  | {
      why:
        | 'unwritable' // the store cannot take debits, of all or of this account (rulings C5, Y16)
        | 'busy' // the process turns new work away to keep what runs alive
    }
  | {
      why:
        | 'no_credit' // nothing is left
        | 'all_held' // what is left is held by requests that run: another try makes sense
      /** What is settled, and not what is held of it. */
      balanceNanos: bigint
    }
  | {
      /** The same of the key's own budget (ruling R15). */
      why: 'budget_spent' | 'budget_held'
      budget: Budget
      /** What of it is not spent, and not what is held of that. */
      leftNanos: bigint
      /** Unix milliseconds; undefined where it never does, or nobody knows. */
      renewsMs: number | undefined
    }
  | {
      why:
        | 'rate' // the account's window is full
        | 'key_rate' // the key's own is
      /** Whole seconds until it ends. */
      retryAfterSeconds: number
    }
)

/** A request that may run. */
export type Admitted = {
  ok: true
  /** Lets go of its hold. To be called when its debit is durable or it costs nothing; takes effect once. */
  release(): void
}

/** A request on its way from its head to its hold. */
export type Entered = Disposable & {
  ok: true
  /**
   * Holds what the answer will probably cost, in nano-credits (ruling C2). Asked once. A refusal for credit gives the
   * place in the window back (ruling R1).
   */
  admit(holdNanos: bigint): Promise<Admitted | AdmissionRefusal>
  /**
   * To be asked before a request is told what is wrong with its body: the order of the checks is that of R1, also where
   * credit and window are decided behind the body. Uses the place. @returns what `enter` would have refused it for.
   */
  judge(): Promise<AdmissionRefusal | undefined>
  /**
   * The request's checks are over: nothing more is asked. One that ends before it has asked, for whatever reason, still
   * uses its place (ruling R1); what was admitted ends with its release.
   */
  [Symbol.dispose](): void
}

/**
 * Whether a request may run: credit, place and hold (rulings R1, C2, spec 8). A store in this process decides credit and
 * place in `enter`, before the body is read. One on another machine only looks at what this process knows there, and
 * decides all of it in `admit`, in one step. Asked by the key, which can be narrower than its account (ruling R15).
 */
export interface Admission {
  /** To be called once for a request whose key is valid and whose account is active. */
  enter(key: ApiKey): Promise<Entered | AdmissionRefusal>
  /** How an account stands now (ruling R13), asked by one of its keys; undefined where the store cannot give the figure at once. */
  look(accountId: string, bounds?: LiveBounds): Standing | undefined
  /** What of the budget of a key is not spent, in nano-credits, as far as it is known here; its holds are not deducted. */
  lookBudget(bounds: LiveBounds & { budget: Budget }): bigint
}

/** What an account has left. */
export type Standing = {
  /** Settled; what runs is not deducted. */
  balanceNanos: bigint
  /** The one with fewer places left, the key's or the account's. */
  window: WindowFigures | undefined
}

export type AdmissionOptions = {
  balances: Pick<Balances, 'get'>
  /** What is left of budgets. */
  bounds: Pick<BoundsBook, 'left'>
  /** In force now; a reload may put others in their place. */
  windows(): Windows
  /** Of keys, each with a limit of its own. */
  keyWindows: Windows
  whyBlocked: Ledger['whyBlocked']
  isShedding(): boolean
  /** Unix milliseconds: by which windows of the calendar end. */
  nowMs(): number
}

/**
 * Balances, budgets and holds in the memory of the one process that serves. The checks run in the order they stand here
 * (rulings R1, R15).
 */
export function createAdmission(options: AdmissionOptions): Admission {
  const { balances, windows, keyWindows, whyBlocked, isShedding } = options
  return { enter, look, lookBudget }

  function lookBudget(bounds: LiveBounds & { budget: Budget }): bigint {
    return options.bounds.left(bounds, bounds.budget, options.nowMs()).creditNanos
  }

  function look(accountId: string, bounds?: LiveBounds): Standing | undefined {
    const balance = balances.get(accountId)
    if (!balance) return undefined
    const window = windows().look(accountId)
    const rate = bounds?.requestsPerMinute
    const own = rate === undefined ? undefined : keyWindows.look(bounds!.scope, rate)
    return { balanceNanos: balance.balanceNanos, window: narrower(window, own) }
  }

  async function enter({ account, bounds }: ApiKey): Promise<Entered | AdmissionRefusal> {
    if (whyBlocked(account.id)) return { ok: false, why: 'unwritable' }
    const balance = balances.get(account.id)
    if (!balance || !isAdmitted(balance)) return withoutCredit(balance)
    const withoutBudget = bounds && judgeBudget(bounds)
    if (withoutBudget) return withoutBudget
    if (isShedding()) return { ok: false, why: 'busy' }
    const place: KeyPlace =
      bounds?.requestsPerMinute === undefined ? windows().take(account.id) : takeBoth(account.id, bounds)
    if (!place.ok) return { ok: false, why: place.why ?? 'rate', retryAfterSeconds: place.retryAfterSeconds }
    return new Entry(balance, bounds, place, { isBlocked: () => whyBlocked(account.id) !== undefined, judgeBudget })
  }

  function judgeBudget(bounds: LiveBounds): AdmissionRefusal | undefined {
    const { budget, spend } = bounds
    if (budget === undefined) return undefined
    const nowMs = options.nowMs()
    const { creditNanos, freeNanos } = options.bounds.left(bounds, budget, nowMs)
    if (freeNanos > 0n) return undefined
    const renewsMs = budget.per !== undefined && spend && nowMs < spend.untilMs ? spend.untilMs : undefined
    const why = creditNanos > 0n ? 'budget_held' : 'budget_spent'
    return { ok: false, why, budget, leftNanos: creditNanos > 0n ? creditNanos : 0n, renewsMs }
  }

  /** Both windows as one: what one of them refuses uses no place of the other (ruling R15). */
  function takeBoth(accountId: string, { scope, requestsPerMinute: rate }: LiveBounds): KeyPlace {
    if (keyWindows.isFull(scope, rate)) {
      const account = windows().look(accountId)
      if (account?.left === 0) return { ok: false, why: 'rate', retryAfterSeconds: Math.max(1, account.resetSeconds) }
      const { resetSeconds } = keyWindows.look(scope, rate)
      return { ok: false, why: 'key_rate', retryAfterSeconds: Math.max(1, resetSeconds) }
    }
    const place = windows().take(accountId)
    if (!place.ok) return place
    const own = keyWindows.take(scope, rate)
    return {
      ok: true,
      giveBack() {
        place.giveBack()
        if (own.ok) own.giveBack()
      },
    }
  }
}

type KeyPlace = WindowPlace & { why?: 'rate' | 'key_rate' }

type Judge = { isBlocked(): boolean; judgeBudget(bounds: LiveBounds): AdmissionRefusal | undefined }

function withoutCredit({ balanceNanos }: Pick<Balance, 'balanceNanos'> = { balanceNanos: 0n }): AdmissionRefusal {
  return { ok: false, why: balanceNanos > 0n ? 'all_held' : 'no_credit', balanceNanos }
}

class Entry implements Entered {
  readonly ok = true
  readonly #balance: Balance
  readonly #bounds: LiveBounds | undefined
  readonly #place: WindowPlace & { ok: true }
  readonly #judge: Judge

  constructor(balance: Balance, bounds: LiveBounds | undefined, place: WindowPlace & { ok: true }, judge: Judge) {
    this.#balance = balance
    this.#bounds = bounds
    this.#place = place
    this.#judge = judge
  }

  /**
   * Asked for again, since while this one's body was read other requests may have taken their holds, or the store may have
   * been lost (ruling C5).
   */
  async admit(holdNanos: bigint): Promise<Admitted | AdmissionRefusal> {
    if (this.#judge.isBlocked()) return { ok: false, why: 'unwritable' }
    const refused = isAdmitted(this.#balance)
      ? this.#bounds && this.#judge.judgeBudget(this.#bounds)
      : withoutCredit(this.#balance)
    if (refused === undefined) return { ok: true, release: hold(this.#balance, holdNanos, this.#bounds) }
    this.#place.giveBack()
    return refused
  }

  /** All was decided when it entered. */
  async judge(): Promise<undefined> {}

  /** Its place was taken when it entered. */
  [Symbol.dispose](): void {}
}

import type { ApiKey } from './account.ts'
import type { Balances } from './balances.ts'
import { type Eventual, whenThere } from './eventual.ts'
import { type Balance, hold, isAdmitted } from './holds.ts'
import type { Place, WindowFigures, Windows } from './limits.ts'

/** Why a request may not run now. What its client is told is the gateway's business. */
export type Refused = { ok: false } & (
  | {
      why:
        | 'unwritable' // the store cannot take debits (ruling C5)
        | 'busy' // the process turns new work away to keep what runs alive
    }
  | {
      why:
        | 'no_credit' // nothing is left
        | 'all_held' // what is left is held by requests that run: another try makes sense
      /** What is settled, and not what is held of it. */
      balanceNanos: bigint
    }
  | { why: 'rate' /** Whole seconds until its window ends. */; retryAfterSeconds: number }
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
  admit(holdNanos: bigint): Eventual<Admitted | Refused>
  /**
   * To be asked before a request is told what is wrong with its body: the order of the checks is that of R1, also where
   * credit and window are decided behind the body. Uses the place. @returns what `enter` would have refused it for.
   */
  judge(): Eventual<Refused | undefined>
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
  enter(key: ApiKey): Eventual<Entered | Refused>
  /** How an account stands now (ruling R13); undefined where the store cannot give the figure at once. */
  look(accountId: string): Standing | undefined
}

/** What an account has left. */
export type Standing = {
  /** Settled; what runs is not deducted. */
  balanceNanos: bigint
  window: WindowFigures | undefined
}

export type AdmissionOptions = {
  balances: Pick<Balances, 'get'>
  /** In force now; a reload may put others in their place. */
  windows(): Windows
  isWritable(): boolean
  isShedding(): boolean
}

/** Balances and holds in the memory of the one process that serves. The checks run in the order they stand here (ruling R1). */
export function createAdmission({ balances, windows, isWritable, isShedding }: AdmissionOptions): Admission {
  return { enter, look }

  function look(accountId: string): Standing | undefined {
    const balance = balances.get(accountId)
    return balance && { balanceNanos: balance.balanceNanos, window: windows().look(accountId) }
  }

  function enter({ account }: ApiKey): Eventual<Entered | Refused> {
    if (!isWritable()) return { ok: false, why: 'unwritable' }
    const balance = balances.get(account.id)
    if (!balance || !isAdmitted(balance)) return withoutCredit(balance)
    if (isShedding()) return { ok: false, why: 'busy' }
    return whenThere(windows().take(account.id), (place) => {
      return place.ok
        ? new Entry(balance, place, isWritable)
        : { ok: false, why: 'rate', retryAfterSeconds: place.retryAfterSeconds }
    })
  }
}

function withoutCredit({ balanceNanos }: Pick<Balance, 'balanceNanos'> = { balanceNanos: 0n }): Refused {
  return { ok: false, why: balanceNanos > 0n ? 'all_held' : 'no_credit', balanceNanos }
}

class Entry implements Entered {
  readonly ok = true
  readonly #balance: Balance
  readonly #place: Place & { ok: true }
  readonly #isWritable: () => boolean

  constructor(balance: Balance, place: Place & { ok: true }, isWritable: () => boolean) {
    this.#balance = balance
    this.#place = place
    this.#isWritable = isWritable
  }

  /**
   * Asked for again, since while this one's body was read other requests may have taken their holds, or the store may have
   * been lost (ruling C5).
   */
  admit(holdNanos: bigint): Admitted | Refused {
    if (!this.#isWritable()) return { ok: false, why: 'unwritable' }
    if (isAdmitted(this.#balance)) return { ok: true, release: hold(this.#balance, holdNanos) }
    this.#place.giveBack()
    return withoutCredit(this.#balance)
  }

  /** All was decided when it entered. */
  judge(): undefined {}

  /** Its place was taken when it entered. */
  [Symbol.dispose](): void {}
}

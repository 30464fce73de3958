import { type ApiKey, type LiveBounds, StoreSilent } from './account.ts'
import type {
  Admission,
  AdmissionRefusal,
  Admitted,
  BudgetRefusal,
  Entered,
  Standing,
  WindowRefusal,
} from './admission.ts'
import { neverMs, spentAt } from './budget.ts'
import type {
  BudgetLeft,
  ClaimScopes,
  DeskAnswer,
  DeskFigures,
  DeskOrder,
  KeyFigures,
  KeyScope,
  PlaceTaken,
  WindowCount,
} from './desk.ts'
import type { Ledger } from './ledger.ts'
import { narrower, type WindowFigures } from './limits.ts'
import type { Balances } from './live-accounts.ts'
import type { AdmissionLimits } from './server-store.ts'

/** The figures of at most this many accounts and keys are remembered. The oldest report is forgotten first. */
const standingsMax = 100_000

/**
 * Asks a store that several servers share for admission, through a desk (desk.ts). The store decides. Its answers are
 * remembered for three purposes only:
 * - A full window stays full until it ends.
 * - If an account had credit, its next request starts without a query. The query for the hold follows anyway.
 * - Responses show clients their balance and window (ruling R13).
 */
export class RemoteAdmission {
  readonly #whyBlocked: Ledger['whyBlocked']
  readonly #standings = new Map<string, Remembered>()
  /**
   * The credit that requests hold, and debits that the store lacks yet. A new desk (desk.ts) first gets these amounts.
   */
  readonly #claims = new Map<string, Claim>()
  /** For each key or person: the sum of debits that are not in the store yet, and the `scope` of the budget. */
  readonly #debtors = new Map<string, { scope: string | undefined; owedNanos: bigint }>()
  readonly #boundsOf: (id: string) => LiveBounds | undefined
  readonly #waiting = new Map<number, { order: DeskOrder; resolve(answer: DeskAnswer): void; reject(e: Error): void }>()
  /** Whether the whole store is silent, as last reported. The next answer of the desk corrects this (BRK-14). */
  isStoreSilent = false
  #lastId = 0
  #outbox: DeskOrder[] = []
  #send: ((orders: DeskOrder[]) => void) | undefined
  #lost: Error | undefined

  /** @param boundsOf returns the limits of a key, an account or a person; undefined if there are none */
  constructor(whyBlocked: Ledger['whyBlocked'], boundsOf: (id: string) => LiveBounds | undefined) {
    this.#whyBlocked = whyBlocked
    this.#boundsOf = boundsOf
  }

  /**
   * `set` remembers a balance that the store reports. `owe` holds the amount of a debit until the store has the debit.
   */
  readonly balances: Pick<Balances, 'set' | 'owe'> = {
    set: (accountId, storedNanos) => {
      const known = this.#standings.get(accountId)
      if (known) {
        known.freeNanos += storedNanos - known.balanceNanos
        known.balanceNanos = storedNanos
      } else this.#remember(accountId, { balanceNanos: storedNanos, freeNanos: storedNanos, window: undefined })
    },
    owe: (accountId, amountNanos, keyId, personId) => {
      const scopeOf = (id: string | undefined) => (id === undefined ? undefined : this.#noteDebtor(id, amountNanos))
      const scopes = claimOf(accountId, scopeOf(keyId), scopeOf(personId))
      this.#claim(scopes, amountNanos)
      this.#tell({ say: 'owe', ...scopes, amountNanos })
    },
  }

  /**
   * Connects a desk, through which all questions reach the store. The desk first receives the sums in `#claims` and all
   * unanswered questions.
   */
  connect(send: (orders: DeskOrder[]) => void): void {
    const claims = Array.from(this.#claims.values(), (claim): DeskOrder => ({ say: 'owe', ...claim }))
    const asks = Array.from(this.#waiting.values(), ({ order }) => order)
    this.#outbox = []
    this.#lost = undefined
    this.isStoreSilent = false
    this.#send = send
    if (claims.length + asks.length > 0) send([...claims, ...asks])
  }

  /**
   * Called when the desk is gone. Requests then wait for another desk. If `forGood` is set, no other desk will come,
   * and the waiting requests fail.
   */
  disconnect(forGood?: Error): void {
    this.#send = undefined
    this.#lost = forGood
    if (!forGood) return
    for (const { reject } of this.#waiting.values()) reject(new StoreSilent(forGood.message))
    this.#waiting.clear()
  }

  /** Receives the desk's answers to questions. An empty list only shows that the store responds. */
  hear(answers: readonly DeskAnswer[]): void {
    this.isStoreSilent = answers.some((answer) => answer.isStoreSilent)
    for (const answer of answers) {
      const waiting = this.#waiting.get(answer.id)
      this.#waiting.delete(answer.id)
      if (answer.verdict === 'silent') waiting?.reject(new StoreSilent('the store does not answer'))
      else waiting?.resolve(answer)
    }
  }

  /**
   * Called when another part of this server queried the store and had no answer for `forMs`. The store then counts as
   * silent until the desk's next answer (BRK-14).
   */
  noteSilence(forMs: number): void {
    if (!this.#send) return
    this.isStoreSilent = true
    this.#tell({ say: 'silent', forMs })
  }

  open(limits: AdmissionLimits): Admission {
    return {
      enter: (key) => this.#enter(limits, key),
      look: (accountId, bounds, person) => this.#look(limits, accountId, bounds, person),
      lookBudget: ({ scope, spend, budget }) => {
        const nowMs = limits.nowMs()
        const known = this.#standings.get(scope)
        // The store has reported no figures of this budget yet, so the spending in the key's row applies.
        if (known?.budgetNanos === undefined || nowMs >= (known.renewsMs ?? neverMs))
          return budget.nanos - spentAt(spend, nowMs)
        // The budget may have been changed since the store reported what is left of it.
        return budget.nanos - (known.budgetNanos - known.balanceNanos)
      },
    }
  }

  async #enter(limits: AdmissionLimits, key: ApiKey): Promise<Entered | AdmissionRefusal> {
    if (this.#whyBlocked(key.account.id)) return { ok: false, why: 'unwritable' }
    const entry = new RemoteEntry((holdNanos, place) => this.#ask(limits, key, holdNanos, place))
    const { account, bounds, personBounds: person } = key
    const known = this.#standings.get(account.id)
    const own = bounds && this.#standings.get(bounds.scope)
    const theirs = person && this.#standings.get(person.scope)
    // Remembered figures may be out of date, so they never refuse a request for lack of credit. The store is queried
    // instead.
    const isShort = !known || known.freeNanos <= 0n || (known.spareNanos ?? 1n) <= 0n
    if (isShort || (own && own.freeNanos <= 0n) || (theirs && theirs.freeNanos <= 0n)) {
      return limits.isShedding() ? this.#enterShedding(limits, key) : entry.enterAsking()
    }
    if (limits.isShedding()) return { ok: false, why: 'busy' }
    return (
      fullWindow(known, limits, rateOf(limits, account.bounds), 'window') ??
      (theirs && fullWindow(theirs, limits, person!.requestsPerMinute, 'person_window')) ??
      (own && fullWindow(own, limits, bounds!.requestsPerMinute, 'key_window')) ??
      entry
    )
  }

  /**
   * Refuses a request because of load. If credit is lacking, that is the reason instead (ruling R1). The request takes
   * no place in the rate window.
   */
  async #enterShedding(limits: AdmissionLimits, key: ApiKey): Promise<AdmissionRefusal> {
    const outcome = await this.#ask(limits, key, 0n, noPlace)
    return outcome.refused ?? { ok: false, why: 'busy' }
  }

  #ask(limits: AdmissionLimits, asker: ApiKey, holdNanos: bigint, place: 'take' | PlaceTaken): Promise<HoldAnswer> {
    if (this.#whyBlocked(asker.account.id)) return Promise.resolve({ refused: { ok: false, why: 'unwritable' } })
    if (this.#lost) return Promise.reject(new StoreSilent(this.#lost.message))
    const id = ++this.#lastId
    const accountId = asker.account.id
    const { bounds, personBounds } = asker
    const { bounds: own } = asker.account
    const requestsPerMinute = rateOf(limits, own)
    const [key, person] = [bounds && scopeOf(bounds), personBounds && scopeOf(personBounds)]
    const narrow = {
      ...(own?.budget && { budgetNanos: own.budget.nanos }),
      ...(key && { key }),
      ...(person && { person }),
    }
    const question = { accountId, own, bounds, person: personBounds, holdNanos, scopes: [key, person] as const }
    const order: DeskOrder = { say: 'ask', ask: { id, accountId, requestsPerMinute, holdNanos, place, ...narrow } }
    return new Promise<HoldAnswer>((resolve, reject) => {
      this.#waiting.set(id, {
        order,
        resolve: (answer) => resolve(this.#read(limits, question, answer)),
        reject,
      })
      this.#tell(order)
    })
  }

  #read(limits: AdmissionLimits, question: HoldQuestion, answer: DeskAnswer): HoldAnswer {
    const { accountId, own, bounds, person, holdNanos, scopes } = question
    const { verdict, place } = answer
    const { balanceNanos, freeNanos, window, budget, key, person: theirs } = answer.figures as DeskFigures
    this.#remember(accountId, {
      ...{ balanceNanos, freeNanos, spareNanos: budget?.freeNanos },
      window: openedAt(window, limits),
    })
    for (const [at, figures] of [key, theirs].entries()) if (figures) this.#rememberScope(limits, scopes[at]!, figures)
    switch (verdict) {
      case 'admitted':
        return {
          place,
          release: this.#holdUntilReleased(accountId, key && bounds, theirs && person, holdNanos),
        }
      case 'spent':
      case 'held':
        return { refused: { ok: false, why: verdict, balanceNanos } }
      case 'account_budget_spent':
      case 'account_budget_held':
        return { refused: withoutBudget(verdict, own, budget) }
      case 'person_budget_spent':
      case 'person_budget_held':
        return { refused: withoutBudget(verdict, person, theirs?.budget) }
      case 'budget_spent':
      case 'budget_held':
        return { refused: withoutBudget(verdict, bounds, key?.budget) }
      case 'window':
      case 'person_window':
      case 'key_window': {
        const full = { window, person_window: theirs?.window, key_window: key?.window }[verdict]
        return { refused: { ok: false, why: verdict, retryAfterSeconds: secondsOf(full?.endsInMs ?? 0) } }
      }
      case 'silent':
        throw new Error(`no answer of a store that has one: ${verdict}`)
    }
  }

  #rememberScope(limits: AdmissionLimits, { id, budgetNanos }: KeyScope, { budget, window }: KeyFigures): void {
    const { leftNanos: balanceNanos = 0n, freeNanos = 1n, renewsMs } = budget ?? {}
    this.#remember(id, { balanceNanos, freeNanos, renewsMs, budgetNanos, window: window && openedAt(window, limits) })
  }

  #holdUntilReleased(
    accountId: string,
    bounds: LiveBounds | undefined,
    person: LiveBounds | undefined,
    holdNanos: bigint,
  ): Admitted['release'] {
    if (holdNanos === 0n) return () => {}
    const scopes = claimOf(accountId, bounds?.scope, person?.scope)
    this.#claim(scopes, holdNanos)
    if (bounds) bounds.heldNanos += holdNanos
    if (person) person.heldNanos += holdNanos
    let heldNanos = holdNanos
    return (keptNanos = 0n) => {
      const freedNanos = heldNanos - keptNanos
      if (freedNanos <= 0n) return
      heldNanos = keptNanos
      if (bounds) bounds.heldNanos -= freedNanos
      if (person) person.heldNanos -= freedNanos
      this.#claim(scopes, -freedNanos)
      this.#tell({ say: 'release', ...scopes, holdNanos: freedNanos })
    }
  }

  /**
   * Changes a claim, which is an amount that is held or owed. There is one claim for each combination of account, key
   * and person. A new desk (the part that queries the shared store) receives each claim once.
   */
  #claim(scopes: ClaimScopes, nanos: bigint): void {
    const { accountId, keyId = accountId, personId } = scopes
    const name = personId === undefined ? keyId : `${keyId} ${personId}`
    const amountNanos = (this.#claims.get(name)?.amountNanos ?? 0n) + nanos
    if (amountNanos === 0n) this.#claims.delete(name)
    else this.#claims.set(name, { ...scopes, amountNanos })
  }

  /**
   * Returns the budget to which a debit is added, and remembers this budget until the debit is in the store. The debit
   * is then taken off the same budget, even if the key's limits have changed.
   */
  #noteDebtor(keyId: string, nanos: bigint): string | undefined {
    const known = this.#debtors.get(keyId)
    const scope = known ? known.scope : this.#boundsOf(keyId)?.scope
    const owedNanos = (known?.owedNanos ?? 0n) + nanos
    if (owedNanos === 0n) this.#debtors.delete(keyId)
    else this.#debtors.set(keyId, { scope, owedNanos })
    return scope
  }

  /** Queues an order. The orders of one turn of the event loop are sent together. */
  #tell(order: DeskOrder): void {
    if (!this.#send) return
    if (this.#outbox.length === 0) setImmediate(() => this.#sendOutbox())
    this.#outbox.push(order)
  }

  #sendOutbox(): void {
    const orders = this.#outbox
    this.#outbox = []
    if (orders.length > 0) this.#send?.(orders)
  }

  #remember(accountId: string, known: Remembered): void {
    this.#standings.delete(accountId)
    this.#standings.set(accountId, known)
    if (this.#standings.size <= standingsMax) return
    for (const oldest of this.#standings.keys()) {
      this.#standings.delete(oldest)
      return
    }
  }

  #look(limits: AdmissionLimits, accountId: string, bounds?: LiveBounds, person?: LiveBounds): Standing | undefined {
    const known = this.#standings.get(accountId)
    if (!known) return undefined
    const window = figuresOf(known.window, limits, rateOf(limits, this.#boundsOf(accountId)))
    const own = narrower(this.#lookAt(limits, person), this.#lookAt(limits, bounds))
    return { balanceNanos: known.balanceNanos, window: narrower(window, own) }
  }

  #lookAt(limits: AdmissionLimits, bounds: LiveBounds | undefined): WindowFigures | undefined {
    const rate = bounds?.requestsPerMinute
    return rate === undefined ? undefined : figuresOf(this.#standings.get(bounds!.scope)?.window, limits, rate)
  }
}

type Claim = ClaimScopes & { amountNanos: bigint }

function claimOf(accountId: string, keyId: string | undefined, personId: string | undefined): ClaimScopes {
  return personId === undefined ? { accountId, keyId } : { accountId, keyId, personId }
}

/**
 * A question to the store: may a request hold (reserve) this credit?
 * @property own the limits of the account
 * @property bounds the limits of the key
 * @property person the limits of the key's person
 * @property scopes the limits of the key and of the person, as they were sent
 */
type HoldQuestion = {
  accountId: string
  own: LiveBounds | undefined
  bounds: LiveBounds | undefined
  person: LiveBounds | undefined
  holdNanos: bigint
  scopes: readonly [key: KeyScope | undefined, person: KeyScope | undefined]
}

/** Returns the limit of an account's window: its own limit, or that of the configuration. */
function rateOf(limits: AdmissionLimits, own: LiveBounds | undefined): number {
  return own?.requestsPerMinute ?? limits.requestsPerMinute()
}

/** Returns the limits of a key or person that the store must know. Undefined if neither rate nor budget is limited. */
function scopeOf({ scope, requestsPerMinute, budget }: LiveBounds): KeyScope | undefined {
  if (requestsPerMinute === undefined && budget === undefined) return undefined
  return { id: scope, requestsPerMinute, budgetNanos: budget?.nanos }
}

function withoutBudget(
  why: BudgetRefusal,
  bounds: LiveBounds | undefined,
  { leftNanos, renewsMs }: Pick<BudgetLeft, 'leftNanos' | 'renewsMs'> = { leftNanos: 0n, renewsMs: undefined },
): AdmissionRefusal {
  // The budget may have been removed since the question was sent.
  const budget = bounds?.budget ?? { nanos: 0n, per: undefined }
  const renews = budget.per === undefined ? undefined : renewsMs
  return { ok: false, why, budget, leftNanos: leftNanos > 0n ? leftNanos : 0n, renewsMs: renews }
}

/** The last reported figures of an account, or of a key or a person that has a budget. */
type Remembered = {
  balanceNanos: bigint
  freeNanos: bigint
  /**
   * For an account: the part of its budget that no request holds. Undefined if it has no budget, or if the part is
   * unknown.
   */
  spareNanos?: bigint | undefined
  /**
   * The rate window. Undefined if only the balance was reported. `endsMs` is a time of this process's clock, or 0 if no
   * window was open.
   */
  window: { taken: number; endsMs: number } | undefined
  /** When the budget renews, in Unix milliseconds. Undefined if it never renews. */
  renewsMs?: number | undefined
  /** The budget of a key or a person of which `balanceNanos` is left. Undefined if there was no budget. */
  budgetNanos?: bigint | undefined
}

function openedAt({ taken, endsInMs }: WindowCount, limits: AdmissionLimits): Remembered['window'] {
  return { taken, endsMs: endsInMs > 0 ? limits.clockMs() + endsInMs : 0 }
}

type HoldAnswer = { refused: AdmissionRefusal; place?: never; release?: never } | Granted
type Granted = { refused?: never; place: PlaceTaken | undefined; release: Admitted['release'] }
type AskStore = (holdNanos: bigint, place: 'take' | PlaceTaken) => Promise<HoldAnswer>

/** The value of `place` for a question that neither takes a place in a rate window nor gives one back. */
const noPlace: PlaceTaken = { accountMs: 0, keyMs: undefined }

/** A request that holds no credit yet. Its first question to the store takes its place in the rate windows. */
class RemoteEntry implements Entered {
  readonly ok = true
  readonly #ask: AskStore
  #place: PlaceTaken | undefined
  #hasAsked = false

  constructor(ask: AskStore) {
    this.#ask = ask
  }

  async enterAsking(): Promise<Entered | AdmissionRefusal> {
    return (await this.#takePlace()) ?? this
  }

  async admit(holdNanos: bigint): Promise<Admitted | AdmissionRefusal> {
    this.#hasAsked = true
    const { refused, release } = await this.#ask(holdNanos, this.#place ?? 'take')
    return refused ?? { ok: true, release }
  }

  async judge(): Promise<AdmissionRefusal | undefined> {
    return this.#hasAsked ? undefined : this.#takePlace()
  }

  [Symbol.dispose](): void {
    // The result is not awaited, because the client is gone or gets an error of ours.
    if (!this.#hasAsked) this.#takePlace().catch(() => {})
  }

  async #takePlace(): Promise<AdmissionRefusal | undefined> {
    this.#hasAsked = true
    const { refused, place } = await this.#ask(0n, 'take')
    this.#place = place
    return refused
  }
}

function fullWindow(
  { window }: Remembered,
  limits: AdmissionLimits,
  limit: number | undefined,
  why: WindowRefusal,
): AdmissionRefusal | undefined {
  if (!window || limit === undefined || window.taken < limit) return undefined
  const endsInMs = window.endsMs - limits.clockMs()
  return endsInMs > 0 ? { ok: false, why, retryAfterSeconds: secondsOf(endsInMs) } : undefined
}

function figuresOf(
  window: Remembered['window'],
  limits: AdmissionLimits,
  limit: number | undefined,
): WindowFigures | undefined {
  if (!window || limit === undefined) return undefined
  const endsInMs = window.endsMs - limits.clockMs()
  if (endsInMs <= 0) return { limit, left: limit, resetSeconds: 0 }
  return { limit, left: Math.max(0, limit - window.taken), resetSeconds: Math.ceil(endsInMs / 1000) }
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000))
}

import type { ApiKey } from '../accounts/account.ts'
import type { Model } from '../catalog/model.ts'
import type { Likeness } from '../inference/likeness.ts'
import type { AnswerForm } from '../upstream/first-bytes.ts'
import type { ChosenTarget, Search, Stay } from '../upstream/pool.ts'
import { type Failure, isStale, judge, type Verdict } from '../upstream/verdict.ts'
import type { Call } from './call.ts'
import type { Snapshot } from './gateway.ts'
import type { Stopped } from './record.ts'
import type { Failed } from './refuse.ts'

/** The largest number of attempts at one model for one request (ruling U1). */
export const attemptsMax = 3

/** A model's only account is asked again if the upstream demands a wait of at most this many seconds (ruling Y26). */
const waitMaxSeconds = 2
/** Causes that prove that the account did no work on the request. */
const refusing: ReadonlySet<string> = new Set(['upstream_429', 'upstream_503', 'upstream_529'])

/** The facts that decide to which targets a request may be sent. */
export type FailoverParts = {
  snapshot: Snapshot
  call: Pick<Call, 'requestId'>
  key: ApiKey
  model: Model
  /** The conversation key, scoped to the account. It decides which upstream account is asked (ruling P6). */
  affinity: string | undefined
  /** Decides which upstream account is asked if the request has no conversation key (ruling Y24). */
  likeness?: Likeness | undefined
}

/** The order in which failures are reported: the first is the most useful to a client (ruling U2). */
const tellOrder: readonly Verdict['tell'][] = ['rejected', 'capacity', 'broken', 'account']

/** Decides which targets a request may still be sent to, and keeps its failures so far (rulings U1, U2). */
export class Failover {
  readonly #parts: FailoverParts
  readonly #search: { -readonly [Name in keyof Search]: Search[Name] }
  attempts = 0
  /** The reason why `next` returned undefined after the newest attempt. */
  stopped: Stopped | undefined
  /**
   * Receives the results of the newest attempt, even after the attempt has ended. Undefined before the first attempt.
   */
  stay: Stay | undefined
  /** Whether the newest failure counts. It does not if the account was cooled or got a new key in the meantime. */
  #isFirst = true
  #isOnlyAgain = false
  #choice: ChosenTarget | undefined
  /** The target of the newest attempt. Targets that were chosen after it may have been skipped. */
  #entered: ChosenTarget | undefined
  /** Whether an attempt at the chosen target counts against the budget of retries. */
  #isRetry = false
  #passedOver = 0
  #worst: Failed | undefined
  /** The value of `#worst` before the last failure. */
  #worstBefore: Failed | undefined
  /**
   * Whether the newest failure was an expired credential that the request has renewed. A request can do that only once.
   * Such a failure causes no cooldown.
   */
  isRenewed = false
  #hasRenewed = false
  /**
   * Whether a reused connection was closed while the request was sent. Only the second such closing counts as a
   * failure.
   */
  #hasRaced = false

  readonly #attemptsMax: number

  constructor(parts: FailoverParts, form: AnswerForm, attemptsMax: number) {
    const { call, key, affinity, model } = parts
    // The entries of a chain may differ: some choose the account by the likeness of requests, others at random.
    const likeness = model.affinity === 'alike' ? parts.likeness : undefined
    this.#parts = parts
    this.#attemptsMax = attemptsMax
    this.#search = {
      requestId: call.requestId,
      customer: key.account,
      affinity,
      likeness,
      tried: [],
      isLast: false,
      form,
    }
  }

  /**
   * Sets the name of the conversation to the last sealed item of the request, if the client has not named it. Called
   * before the first attempt.
   */
  continues(request: { lastSealed(): string | undefined }): void {
    this.#search.sealed = this.#nameBySeal(request)
  }

  /**
   * Returns how long to wait, in ms, before the only account of the model is asked once more, on a fresh connection
   * (ruling Y26).
   * @returns undefined if the account may not be asked again
   */
  waitForOnly({ cause, retryAfterSeconds }: Failure, { alarm }: Verdict): number | undefined {
    if (this.#isOnlyAgain || !this.mayAgain || this.#size !== 1 || alarm !== undefined) return undefined
    if (cause === 'upstream_connect') return 0
    // After a cooldown, an account gets one request first. So only one request waits for the end of the cooldown, and
    // all other requests get their error now.
    if (!this.#isFirst || !this.#parts.snapshot.pool.mayRetry(this.#choice!.target)) return undefined
    const isShort = retryAfterSeconds !== undefined && retryAfterSeconds <= waitMaxSeconds
    return refusing.has(cause) && isShort ? retryAfterSeconds * 1_000 : undefined
  }

  onlyAgain(): ChosenTarget | undefined {
    this.#isOnlyAgain = true
    this.#search.tried = []
    return this.next()
  }

  get hasMore(): boolean {
    return this.attempts < this.#attemptsMax && this.#size > this.#search.tried.length + 1
  }

  /** Chooses the next target, which `enter` confirms. Undefined if no target is left, or no attempt is allowed. */
  next(): ChosenTarget | undefined {
    if (this.attempts >= this.#attemptsMax) return this.#stop('attempts')
    this.#search.isLast = this.attempts === this.#attemptsMax - 1
    const { snapshot, model } = this.#parts
    const choice = snapshot.pool.choose(model, this.#search)
    if (choice === undefined) return this.#stop('nobody')
    if (this.attempts > 0 && !snapshot.pool.mayRetry(choice.target)) return this.#stop('budget')
    this.#choice = choice
    this.#isRetry = this.attempts > 0
    return choice
  }

  /** Call when the attempt at the chosen target begins. */
  enter(): void {
    this.attempts++
    this.stopped = undefined
    this.#entered = this.#choice
    this.stay = this.#parts.snapshot.pool.enter(this.#choice!, this.#search, this.#isRetry)
  }

  /** Whether the same target may be tried once more. Call this only after a failure that the target did not cause. */
  get mayAgain(): boolean {
    return this.attempts < this.#attemptsMax
  }

  /**
   * Chooses the target of the newest attempt once more. This does not use up a retry, because the target did no work on
   * that attempt. The failure of that attempt is not reported to the client.
   */
  again(): ChosenTarget {
    this.#worst = this.#worstBefore
    this.#isRetry = false
    this.#choice = this.#entered
    const { target } = this.#choice!
    this.#search.tried = this.#search.tried.filter((other) => other !== target)
    return this.#choice!
  }

  /** Skips the chosen target, because the request does not fit it. */
  skip(): void {
    this.#search.tried = [...this.#search.tried, this.#choice!.target]
    this.#passedOver++
  }

  /** Whether the request fits no enabled target. */
  get isPassedOverByAll(): boolean {
    return this.#passedOver >= this.#size
  }

  /**
   * Remembers which account answered the conversation. The last sealed item of the answer becomes the conversation's
   * name, because the client sends this item back with the next request.
   * @param isUnsealed whether the request was sent without its sealed items
   */
  continuesAs(answer: { lastSealed?(): string | undefined }, isUnsealed: boolean): void {
    const sealed = this.#nameBySeal(answer)
    if (sealed !== undefined) this.stay?.continuesAs(sealed, isUnsealed)
  }

  /** Notes that the attempt under way failed. @returns what to do about it */
  failed(failure: Failure): Verdict {
    const { target } = this.#choice!
    const judged = judge(failure, target.model)
    const isOurs = judged.tell === 'account' && judged.elsewhere === 'another' && target.key?.credential !== undefined
    this.isRenewed = isOurs && !this.#hasRenewed && isStale(failure)
    this.#hasRenewed ||= this.isRenewed
    const verdict: Verdict = this.isRenewed ? { ...judged, cool: 'no' } : judged
    // A refusal of a faulty request shows that the account works.
    if (verdict.tell === 'rejected') this.stay?.refused()
    else this.#isFirst = this.stay?.failed(verdict, verdict.alarm ?? failure.cause, failure.retryAfterSeconds) ?? true
    const isRaceAgain = verdict.elsewhere === 'any' && this.#hasRaced
    this.#hasRaced ||= verdict.elsewhere === 'any'
    if (verdict.elsewhere === 'another' || isRaceAgain) this.#search.tried = [...this.#search.tried, target]
    this.#worstBefore = this.#worst
    const rank = tellOrder.indexOf(verdict.tell)
    if (!this.#worst || rank <= tellOrder.indexOf(this.#worst.verdict.tell)) this.#worst = { failure, verdict, target }
    return isRaceAgain ? { ...verdict, elsewhere: 'another' } : verdict
  }

  /** The failure that the client gets when no target is left. */
  get told(): Failed {
    const worst = this.#worst
    const { snapshot, model, key } = this.#parts
    const { tell, retryAfterSeconds } = snapshot.pool.outlook(model, key.account)
    const isForCapacity =
      worst?.verdict.tell === 'capacity' || (worst?.verdict.tell === 'account' && tell === 'capacity')
    if (worst && !isForCapacity) return worst
    if (worst) {
      const waits = [worst.failure.retryAfterSeconds, retryAfterSeconds].filter((wait) => wait !== undefined)
      const wait = waits.length === 0 ? undefined : Math.min(...waits)
      // The error reports missing capacity, so that the client can wait (ruling U1). The log keeps the cause of this
      // failure.
      const verdict = { ...worst.verdict, tell: 'capacity' as const }
      return { ...worst, verdict, failure: { ...worst.failure, retryAfterSeconds: wait } }
    }
    const cause = tell === 'capacity' ? 'no_capacity' : 'no_upstream_account'
    const failure: Failure = { fault: { kind: tell, text: '' }, cause, retryAfterSeconds }
    return { failure, verdict: judge(failure, model), target: undefined }
  }

  /** The number of enabled upstream accounts that serve the model to this customer. */
  get #size(): number {
    const { snapshot, model, key } = this.#parts
    return snapshot.pool.sizeOf(model, key.account)
  }

  #stop(reason: Stopped): undefined {
    this.stopped = reason
    return undefined
  }

  /**
   * Names a conversation without a conversation key by its last sealed item. By this name, the pool finds the account
   * that sealed the item, because no other account can open it (ruling U13). The name contains the id of the customer's
   * account, so that no other customer has the same name.
   */
  #nameBySeal(said: { lastSealed?(): string | undefined }): string | undefined {
    const sealed = this.#search.affinity === undefined && this.#size > 1 ? said.lastSealed?.() : undefined
    return sealed && `${this.#parts.key.account.id} ${sealed}`
  }
}

import type { Model } from '../catalog/model.ts'
import type { AnswerForm } from '../upstream/first-bytes.ts'
import type { ChosenTarget, Customer, Pool, Search, Stay } from '../upstream/pool.ts'
import type { Target } from '../upstream/target.ts'
import { type Failure, judge, type Verdict } from '../upstream/verdict.ts'
import type { Stopped } from './record.ts'

/** The largest number of attempts for one request (ruling U1). */
const attemptsMax = 3

/** The longest wait that the only account of a model may ask for before it is asked once more, in seconds (ruling Y26). */
const waitMaxSeconds = 2
/** Refusals after which the account has surely not worked on the request. */
const refusing: ReadonlySet<string> = new Set(['upstream_429', 'upstream_503', 'upstream_529'])

/** A failed attempt, with the facts that its error for the client is made of. */
export type Failed = { failure: Failure; verdict: Verdict; target: Target | undefined }

/** The order in which failures are reported: the first is the most useful to a client (ruling U2). */
const tellOrder: readonly Verdict['tell'][] = ['rejected', 'capacity', 'broken', 'account']

type FailoverParts = {
  pool: Pool
  model: Model
  /** The account whose request it is. */
  customer: Customer
  affinity: string | undefined
  requestId: string
  /** The form in which the upstream is asked for the answer. */
  form: AnswerForm
}

/** Decides which targets a request may still be sent to, and keeps its failures so far (rulings U1, U2). */
export class Failover {
  readonly #pool: Pool
  readonly #model: Model
  readonly #customer: Customer
  readonly #search: { -readonly [Name in keyof Search]: Search[Name] }
  #attempts = 0
  /** No other request had failed at the account at the same time before this one. */
  #isFirst = true
  /** The only account was asked once more. */
  #isOnlyAgain = false
  #choice: ChosenTarget | undefined
  /** Whether the choice counts against the budget of retries. */
  #isRetry = false
  #passedOver = 0
  #stay: Stay | undefined
  #stopped: Stopped | undefined
  #worst: Failed | undefined
  /** The value of `#worst` before the last failure. */
  #worstBefore: Failed | undefined
  /** A reused connection was closed while it was written to. Once can be chance; a second time counts as a failure. */
  #hasRaced = false

  constructor({ pool, model, customer, affinity, requestId, form }: FailoverParts) {
    this.#pool = pool
    this.#model = model
    this.#customer = customer
    this.#search = { requestId, customer, affinity, tried: [], isLast: false, form }
  }

  /** Call before the first attempt. @param request has the history in which a sealed item is looked for */
  continues(request: { lastSealed(): string | undefined }): void {
    if (this.#looksForSeals) this.#search.sealed = this.#nameBySeal(request.lastSealed())
  }

  get attempts(): number {
    return this.#attempts
  }

  /**
   * The time until the only account of the model may be asked once more, on a fresh connection, in ms (ruling Y26).
   * @returns undefined if it may not
   */
  waitForOnly({ cause, retryAfterSeconds }: Failure, { alarm }: Verdict): number | undefined {
    if (this.#isOnlyAgain || this.#size !== 1 || alarm !== undefined) return undefined
    if (cause === 'upstream_connect') return 0
    // One request waits for an account that cools, since one alone is let through when that is over. The others are answered now.
    if (!this.#isFirst || !this.#pool.mayRetry(this.#choice!.target)) return undefined
    const isShort = retryAfterSeconds !== undefined && retryAfterSeconds <= waitMaxSeconds
    return refusing.has(cause) && isShort ? retryAfterSeconds * 1_000 : undefined
  }

  /** Chooses the only account once more, as `next` does. */
  onlyAgain(): ChosenTarget | undefined {
    this.#isOnlyAgain = true
    this.#search.tried = []
    return this.next()
  }

  /** Whether another attempt could follow the one under way. */
  get hasMore(): boolean {
    return this.#attempts < attemptsMax && this.#size > this.#search.tried.length + 1
  }

  /** Chooses the next target, which `enter` confirms; undefined if no target is left or may be tried. */
  next(): ChosenTarget | undefined {
    if (this.#attempts >= attemptsMax) return this.#stop('attempts')
    this.#search.isLast = this.#attempts === attemptsMax - 1
    const choice = this.#pool.choose(this.#model, this.#search)
    if (choice === undefined) return this.#stop('nobody')
    if (this.#attempts > 0 && !this.#pool.mayRetry(choice.target)) return this.#stop('budget')
    this.#choice = choice
    this.#isRetry = this.#attempts > 0
    return choice
  }

  /** The reason for which the last `next` returned undefined. */
  get stopped(): Stopped | undefined {
    return this.#stopped
  }

  /** Call when the attempt at the chosen target begins. */
  enter(): void {
    this.#attempts++
    this.#stay = this.#pool.enter(this.#choice!, this.#search, this.#isRetry)
  }

  /** Whether the same target may be tried once more, after a failure that was not its own. */
  get mayAgain(): boolean {
    return this.#attempts < attemptsMax
  }

  /**
   * Chooses the same target once more. This is not a retry in the sense of the budget, because the target did no work on the
   * first attempt. The failure of that attempt is not reported to the client.
   */
  again(): ChosenTarget {
    this.#worst = this.#worstBefore
    this.#isRetry = false
    return this.#choice!
  }

  /** Skips the chosen target, because its model does not take the request. */
  skip(): void {
    this.#search.tried = [...this.#search.tried, this.#choice!.target]
    this.#passedOver++
  }

  /** Whether no enabled target takes this request, now or later. */
  get isPassedOverByAll(): boolean {
    return this.#passedOver >= this.#size
  }

  /** The first byte of an answer came (ruling Y25). */
  firstByte(): void {
    this.#stay?.firstByte()
  }

  /** An answer is on its way. @param isUnsealed whether the request was sent without its sealed items */
  succeeded(isUnsealed: boolean): void {
    this.#stay?.succeeded(isUnsealed)
  }

  /** The conversation will go on after this answer, at the same account. @param isUnsealed as above */
  continuesAs(answer: { lastSealed?(): string | undefined }, isUnsealed: boolean): void {
    const sealed = this.#looksForSeals ? this.#nameBySeal(answer.lastSealed?.()) : undefined
    if (sealed !== undefined) this.#stay?.continuesAs(sealed, isUnsealed)
  }

  /** The attempt under way failed. @returns the decision what to do about it */
  failed(failure: Failure): Verdict {
    const { target } = this.#choice!
    const verdict = judge(failure, target.model)
    // A refusal of a faulty request shows that the account works.
    if (verdict.tell === 'rejected') this.#stay?.refused()
    else this.#isFirst = this.#stay?.failed(verdict, verdict.alarm ?? failure.cause, failure.retryAfterSeconds) ?? true
    const isRaceAgain = verdict.elsewhere === 'any' && this.#hasRaced
    this.#hasRaced ||= verdict.elsewhere === 'any'
    if (verdict.elsewhere === 'another' || isRaceAgain) this.#search.tried = [...this.#search.tried, target]
    this.#remember({ failure, verdict, target })
    return isRaceAgain ? { ...verdict, elsewhere: 'another' } : verdict
  }

  /** The request is over. An attempt without a reported result says nothing about its target. */
  left(): void {
    this.#stay?.left()
  }

  /** The failure that the client gets when no target is left. */
  get told(): Failed {
    const worst = this.#worst
    const { tell, retryAfterSeconds } = this.#pool.outlook(this.#model, this.#customer)
    const isForCapacity =
      worst?.verdict.tell === 'capacity' || (worst?.verdict.tell === 'account' && tell === 'capacity')
    if (worst && !isForCapacity) return worst
    if (worst) {
      const waits = [worst.failure.retryAfterSeconds, retryAfterSeconds].filter((wait) => wait !== undefined)
      const wait = waits.length === 0 ? undefined : Math.min(...waits)
      // The client may wait for the other account (ruling U1). The log keeps the cause of this one.
      const verdict = { ...worst.verdict, tell: 'capacity' as const }
      return { ...worst, verdict, failure: { ...worst.failure, retryAfterSeconds: wait } }
    }
    const cause = tell === 'capacity' ? 'no_capacity' : 'no_upstream_account'
    const failure: Failure = { fault: { kind: tell, text: '' }, cause, retryAfterSeconds }
    return { failure, verdict: judge(failure, this.#model), target: undefined }
  }

  /** The number of enabled accounts that serve the customer. */
  get #size(): number {
    return this.#pool.sizeOf(this.#model, this.#customer)
  }

  #stop(reason: Stopped): undefined {
    this.#stopped = reason
    return undefined
  }

  /** Whether a sealed item can show which account a conversation without a key belongs to: several serve the model (ruling U13). */
  get #looksForSeals(): boolean {
    return this.#search.affinity === undefined && this.#size > 1
  }

  /** Makes a conversation name of a sealed digest. It is scoped to the account, so no other account can share it. */
  #nameBySeal(sealed: string | undefined): string | undefined {
    return sealed && `${this.#customer.id} ${sealed}`
  }

  #remember(failed: Failed): void {
    const known = this.#worst
    this.#worstBefore = known
    const isWorse =
      known === undefined || tellOrder.indexOf(failed.verdict.tell) <= tellOrder.indexOf(known.verdict.tell)
    if (isWorse) this.#worst = failed
  }
}

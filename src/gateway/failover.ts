import type { Model } from '../catalog/model.ts'
import type { ChosenTarget, Pool, Search, Stay } from '../upstream/pool.ts'
import type { Target } from '../upstream/target.ts'
import { type Failure, judge, type Verdict } from '../upstream/verdict.ts'
import type { Stopped } from './record.ts'

/** How often one request may be sent (ruling U1). */
const attemptsMax = 3

/** An attempt that failed, with all that telling its client needs. */
export type Failed = { failure: Failure; verdict: Verdict; target: Target | undefined }

/** What says the most to a client, of several failures, stands first (ruling U2). */
const tellOrder: readonly Verdict['tell'][] = ['rejected', 'capacity', 'broken', 'account']

export type FailoverParts = {
  pool: Pool
  model: Model
  /** Whose request it is. */
  accountId: string
  affinity: string | undefined
  requestId: string
}

/** Whom one request may still be sent to, and what it has met so far (rulings U1, U2). */
export class Failover {
  readonly #pool: Pool
  readonly #model: Model
  readonly #accountId: string
  readonly #search: { -readonly [Name in keyof Search]: Search[Name] }
  #attempts = 0
  #choice: ChosenTarget | undefined
  /** The choice is a second attempt in the sense of the budget. */
  #isRetry = false
  #passedOver = 0
  #stay: Stay | undefined
  #stopped: Stopped | undefined
  #worst: Failed | undefined
  /** As it was before the last failure. */
  #worstBefore: Failed | undefined
  /** One reused connection was closed as it was written to: once is chance. */
  #hasRaced = false

  constructor({ pool, model, accountId, affinity, requestId }: FailoverParts) {
    this.#pool = pool
    this.#model = model
    this.#accountId = accountId
    this.#search = { requestId, affinity, tried: [], isLast: false }
  }

  /** Before the first attempt. @param request whose history may hold something sealed */
  continues(request: { lastSealed(): string | undefined }): void {
    if (this.#looksForSeals) this.#search.sealed = this.#nameBySeal(request.lastSealed())
  }

  get attempts(): number {
    return this.#attempts
  }

  /** Another attempt could follow the one under way. */
  get hasMore(): boolean {
    return this.#attempts < attemptsMax && this.#pool.sizeOf(this.#model) > this.#search.tried.length + 1
  }

  /** Where the next attempt goes, once it is entered; undefined where nobody is left to ask, or may be asked. */
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

  /** Why the last `next` had nobody. */
  get stopped(): Stopped | undefined {
    return this.#stopped
  }

  /** The attempt begins. */
  enter(): void {
    this.#attempts++
    this.#stay = this.#pool.enter(this.#choice!, this.#search, this.#isRetry)
  }

  /** The same target may be asked once more, for a failure that was not its own. */
  get mayAgain(): boolean {
    return this.#attempts < attemptsMax
  }

  /**
   * It is asked once more. No retry in the sense of the budget: nothing has worked for the first attempt. What that failed
   * of is mended by this one, and no news for the client.
   */
  again(): ChosenTarget {
    this.#worst = this.#worstBefore
    this.#isRetry = false
    return this.#choice!
  }

  /** The target cannot be asked for this request: it is passed over. */
  skip(): void {
    this.#search.tried = [...this.#search.tried, this.#choice!.target]
    this.#passedOver++
  }

  /** Nobody who is on takes this request, now or later. */
  get isPassedOverByAll(): boolean {
    return this.#passedOver >= this.#pool.sizeOf(this.#model)
  }

  /** An answer is on its way. @param isUnsealed it was sent without its sealed history */
  succeeded(isUnsealed: boolean): void {
    this.#stay?.succeeded(isUnsealed)
  }

  /** The conversation goes on behind this answer. @param isUnsealed as above */
  continuesAs(answer: { lastSealed?(): string | undefined }, isUnsealed: boolean): void {
    const sealed = this.#looksForSeals ? this.#nameBySeal(answer.lastSealed?.()) : undefined
    if (sealed !== undefined) this.#stay?.continuesAs(sealed, isUnsealed)
  }

  /** The attempt under way failed. @returns what is to be done about it */
  failed(failure: Failure): Verdict {
    const { target } = this.#choice!
    const verdict = judge(failure, target.model)
    // A refusal that is the request's own fault comes from an account that works.
    if (verdict.tell === 'rejected') this.#stay?.refused()
    else this.#stay?.failed(verdict, verdict.alarm ?? failure.cause, failure.retryAfterSeconds)
    const isRaceAgain = verdict.elsewhere === 'any' && this.#hasRaced
    this.#hasRaced ||= verdict.elsewhere === 'any'
    if (verdict.elsewhere === 'another' || isRaceAgain) this.#search.tried = [...this.#search.tried, target]
    this.#remember({ failure, verdict, target })
    return isRaceAgain ? { ...verdict, elsewhere: 'another' } : verdict
  }

  /** The request is over: an attempt of which nothing else was told says nothing. */
  left(): void {
    this.#stay?.left()
  }

  /** What the client is to be told when nobody is left to ask. */
  get told(): Failed {
    const worst = this.#worst
    const { tell, retryAfterSeconds } = this.#pool.outlook(this.#model)
    const isForCapacity =
      worst?.verdict.tell === 'capacity' || (worst?.verdict.tell === 'account' && tell === 'capacity')
    if (worst && !isForCapacity) return worst
    if (worst) {
      const waits = [worst.failure.retryAfterSeconds, retryAfterSeconds].filter((wait) => wait !== undefined)
      const wait = waits.length === 0 ? undefined : Math.min(...waits)
      // The client may wait for the other account (ruling U1); the log keeps the cause of this one.
      const verdict = { ...worst.verdict, tell: 'capacity' as const }
      return { ...worst, verdict, failure: { ...worst.failure, retryAfterSeconds: wait } }
    }
    const cause = tell === 'capacity' ? 'no_capacity' : 'no_upstream_account'
    const failure: Failure = { fault: { kind: tell, text: '' }, cause, retryAfterSeconds }
    return { failure, verdict: judge(failure, this.#model), target: undefined }
  }

  #stop(reason: Stopped): undefined {
    this.#stopped = reason
    return undefined
  }

  /** Several accounts serve the model, and its conversation has no name: what is sealed tells where it belongs (ruling U13). */
  get #looksForSeals(): boolean {
    return this.#search.affinity === undefined && this.#pool.sizeOf(this.#model) > 1
  }

  /** What is sealed, as a name of the conversation that is nobody else's. */
  #nameBySeal(sealed: string | undefined): string | undefined {
    return sealed && `${this.#accountId} ${sealed}`
  }

  #remember(failed: Failed): void {
    const known = this.#worst
    this.#worstBefore = known
    const isWorse =
      known === undefined || tellOrder.indexOf(failed.verdict.tell) <= tellOrder.indexOf(known.verdict.tell)
    if (isWorse) this.#worst = failed
  }
}

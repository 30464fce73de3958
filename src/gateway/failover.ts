import type { Model } from '../catalog/model.ts'
import type { Choice, Pool, Search, Stay } from '../upstream/pool.ts'
import type { Target } from '../upstream/target.ts'
import { type Failure, judge, type Verdict } from '../upstream/verdict.ts'

/** How often one request may be sent (ruling U1). */
const attemptsMax = 3

/** An attempt that failed, with all that telling its client needs. */
export type Failed = { failure: Failure; verdict: Verdict; target: Target | undefined }

/** What says the most to a client, of several failures, stands first (ruling U2). */
const tellOrder: readonly Verdict['tell'][] = ['rejected', 'capacity', 'broken', 'account']

export type FailoverParts = { pool: Pool; model: Model; affinity: string | undefined; requestId: string }

/** Whom one request may still be sent to, and what it has met so far (rulings U1, U2). */
export class Failover {
  readonly #pool: Pool
  readonly #model: Model
  readonly #search: { -readonly [Name in keyof Search]: Search[Name] }
  #attempts = 0
  #choice: Choice | undefined
  #stay: Stay | undefined
  #worst: Failed | undefined
  /** One reused connection was closed as it was written to: once is chance. */
  #hasRaced = false

  constructor({ pool, model, affinity, requestId }: FailoverParts) {
    this.#pool = pool
    this.#model = model
    this.#search = { requestId, affinity, tried: [], isLast: false }
  }

  get attempts(): number {
    return this.#attempts
  }

  /** Another attempt could follow the one under way. */
  get hasMore(): boolean {
    return this.#attempts < attemptsMax && this.#pool.sizeOf(this.#model) > this.#attempts
  }

  /** Where the next attempt goes, which is entered by this; undefined where nobody is left to ask, or may be asked. */
  next(): Choice | undefined {
    if (this.#attempts >= attemptsMax) return undefined
    this.#search.isLast = this.#attempts === attemptsMax - 1
    const choice = this.#pool.choose(this.#model, this.#search)
    if (choice === undefined || (this.#attempts > 0 && !this.#pool.mayRetry(choice.target))) return undefined
    this.#enter(choice, this.#attempts > 0)
    return choice
  }

  /** The same target may be asked once more, for a failure that was not its own. */
  get mayAgain(): boolean {
    return this.#attempts < attemptsMax
  }

  /** It is asked once more. No retry in the sense of the budget: nothing has worked for the first attempt. */
  again(): Choice {
    this.#enter(this.#choice!, false)
    return this.#choice!
  }

  /** The target cannot be asked for this request: the attempt came to nothing. */
  skip(): void {
    this.#stay?.left()
    this.#search.tried = [...this.#search.tried, this.#choice!.target]
    this.#attempts--
  }

  /** An answer is on its way. @param isUnsealed it was sent without its sealed history */
  succeeded(isUnsealed: boolean): void {
    this.#stay?.succeeded(isUnsealed)
  }

  /** The attempt under way failed. @returns what is to be done about it */
  failed(failure: Failure): Verdict {
    const { target } = this.#choice!
    const verdict = judge(failure, target.model)
    // A refusal that is the request's own fault comes from an account that works.
    if (verdict.tell === 'rejected') this.#stay?.succeeded(false)
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
    if (worst && worst.verdict.tell !== 'capacity') return worst
    const { tell, retryAfterSeconds } = this.#pool.outlook(this.#model)
    if (worst) {
      const waits = [worst.failure.retryAfterSeconds, retryAfterSeconds].filter((wait) => wait !== undefined)
      const wait = waits.length === 0 ? undefined : Math.min(...waits)
      return { ...worst, failure: { ...worst.failure, retryAfterSeconds: wait } }
    }
    const cause = tell === 'capacity' ? 'no_capacity' : 'no_upstream_account'
    const failure: Failure = { fault: { kind: tell, text: '' }, cause, retryAfterSeconds }
    return { failure, verdict: judge(failure, this.#model), target: undefined }
  }

  #enter(choice: Choice, isRetry: boolean): void {
    this.#attempts++
    this.#choice = choice
    this.#stay = this.#pool.enter(choice, this.#search, isRetry)
  }

  #remember(failed: Failed): void {
    const known = this.#worst
    const isWorse =
      known === undefined || tellOrder.indexOf(failed.verdict.tell) <= tellOrder.indexOf(known.verdict.tell)
    if (isWorse) this.#worst = failed
  }
}

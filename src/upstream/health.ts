import { type AnswerForm, FirstBytes } from './first-bytes.ts'
import type { Verdict } from './verdict.ts'

/** The first cooldown after each kind of failure, in ms. It doubles each time the account fails again. */
const firstCooldownMs: Record<Verdict['tell'], number> = {
  capacity: 10_000,
  /** This cooldown is long, because nobody replaces a bad key or pays a bill within seconds. */
  account: 60_000,
  broken: 5_000,
  rejected: 0,
}
const cooldownMinMs = 1_000
const cooldownMaxMs = 300_000

/** The number of failures in a row after which even a temporary failure gives the account a cooldown (ruling U1). */
const repeatedFrom = 3

/**
 * While a request tries an account after a cooldown, others avoid the account. This is the longest such time, in ms.
 */
const trialMaxMs = 30_000

/** The cause that the log shows for a trial which began because requests hang (ruling Y25). */
export const hangingCause = 'upstream_hangs'

/** A reported cooldown is ignored if it ends at most this many ms after ours. It may be our own, sent back to us. */
const echoMs = 1_000

/** The length and the reason of a cooldown. */
type Cooling = {
  forMs: number
  cause: string
  tell: Verdict['tell']
  cool: 'now' | 'repeated'
}

/** The state of one account for one model. */
export type HealthState = 'ready' | 'cooling' | 'trial' | 'disabled'

/**
 * The health of one account for one model (ruling U1). After a cooldown, one request at a time tries the account.
 * Success makes it ready again, failure doubles the cooldown, and any other end lets the next request try.
 */
export class Health {
  /** The times to first byte. If requests hang, the account is on trial: it gets one request at a time (ruling Y25). */
  readonly firstBytes: FirstBytes
  readonly #clockMs: () => number
  readonly #random: () => number
  failures = 0
  #cooldowns = 0
  #untilMs: number | undefined
  #cause: string | undefined
  #tell: Verdict['tell'] = 'broken'
  #isHeard = false
  #trialSinceMs: number | undefined
  /** The number of cooldowns and new keys so far. The result of a request that began at a lower number is ignored. */
  #era = 0
  #keyVersion: number | undefined
  /** Whether an operator has disabled the account. What is known of the account's health is kept. */
  isDisabled = false
  readonly #onCooled: ((cooling: Cooling) => void) | undefined

  /**
   * @param clockMs returns a monotonic time in ms
   * @param random returns a number in [0, 1) that varies cooldowns, so that accounts do not all come back together
   * @param onCooled called when a failure seen by this process cools the account
   */
  constructor(clockMs: () => number, random: () => number, onCooled?: (cooling: Cooling) => void) {
    this.#clockMs = clockMs
    this.#random = random
    this.#onCooled = onCooled
    this.firstBytes = new FirstBytes(clockMs)
  }

  get state(): HealthState {
    if (this.isDisabled) return 'disabled'
    if (this.#untilMs === undefined) return this.firstBytes.isOnTrial() ? 'trial' : 'ready'
    return this.#clockMs() < this.#untilMs ? 'cooling' : 'trial'
  }

  /** The state for requests of one form (stream or JSON). A trial of the other form does not affect this state. */
  stateFor(form: AnswerForm): HealthState {
    const { state } = this
    const isOtherTrial = state === 'trial' && this.#untilMs === undefined && !this.firstBytes.isOnTrial(form)
    return isOtherTrial ? 'ready' : state
  }

  get isOpen(): boolean {
    if (this.isDisabled) return false
    if (this.#untilMs === undefined) return true
    const nowMs = this.#clockMs()
    if (nowMs < this.#untilMs) return false
    return this.#trialSinceMs === undefined || nowMs - this.#trialSinceMs >= trialMaxMs
  }

  /** The reason for the last cooldown or for the trial, and the time left; undefined while the account is ready. */
  get trouble(): { cause: string; tell: Verdict['tell']; waitMs: number } | undefined {
    if (this.#untilMs === undefined) {
      if (!this.firstBytes.isOnTrial()) return undefined
      return { cause: hangingCause, tell: 'broken', waitMs: this.firstBytes.waitMs }
    }
    return { cause: this.#cause!, tell: this.#tell, waitMs: Math.max(0, this.#untilMs - this.#clockMs()) }
  }

  /** Whether the cooldown comes from another replica. */
  get isHeard(): boolean {
    return this.#untilMs !== undefined && this.#isHeard
  }

  /** Lets the next request try the account at once. If it fails, the cooldown is as short as a first cooldown. */
  tryNow(): void {
    this.#cooldowns = 0
    this.#trialSinceMs = undefined
    this.firstBytes.tryNow()
    if (this.#untilMs !== undefined) this.#untilMs = Math.min(this.#untilMs, this.#clockMs())
  }

  /**
   * Notes the version of the key in use. A new key makes the account ready, because old failures say nothing about it.
   */
  useKey(version: number): void {
    if (version === this.#keyVersion) return
    const isFirst = this.#keyVersion === undefined
    this.#keyVersion = version
    // Before its first key, the account can only have a cooldown that another replica reported. It stays.
    if (isFirst) return
    // Requests under way with the old key do not count any more.
    this.#era++
    this.#recover()
    this.firstBytes.clear()
  }

  /** Notes that a request is sent to the account. @returns the visit, which is passed back when the request ends */
  enter(): Visit {
    const isTrial = this.#untilMs !== undefined
    if (isTrial) this.#trialSinceMs = this.#clockMs()
    return { era: this.#era, isTrial }
  }

  succeeded({ era }: Visit): void {
    // A request may begin before a cooldown and succeed during it. That does not end the cooldown.
    if (era === this.#era) this.#recover()
  }

  #recover(): void {
    this.failures = 0
    this.#cooldowns = 0
    this.#untilMs = undefined
    this.#trialSinceMs = undefined
  }

  /**
   * Records a failed request.
   * @param mayCool whether the pool can do without the account after a temporary failure
   * @param retryAfterSeconds the wait that the upstream asked for
   * @returns false if the failure does not count, because the account was cooled or got a new key in the meantime
   */
  failed(
    visit: Visit,
    { cool, tell }: Verdict,
    cause: string,
    mayCool: () => boolean,
    retryAfterSeconds?: number,
  ): boolean {
    this.left(visit)
    if (cool === 'no') return true
    const askedMs = retryAfterSeconds === undefined ? undefined : clampCooldown(retryAfterSeconds * 1000)
    if (visit.era !== this.#era) {
      // The account was cooled, or got a new key, while the request ran. This failure only lengthens the cooldown, if
      // the upstream now asks for a longer wait.
      if (cool !== 'now' || askedMs === undefined || this.#untilMs === undefined) return false
      const untilMs = this.#clockMs() + askedMs
      if (untilMs <= this.#untilMs) return false
      this.#isHeard = false
      this.#cause = cause
      this.#tell = tell
      this.#untilMs = untilMs
      this.#onCooled?.({ forMs: askedMs, cause, tell, cool })
      return false
    }
    this.failures++
    if (cool === 'repeated' && ((!visit.isTrial && this.failures < repeatedFrom) || !mayCool())) {
      // The account stays in use, because it has not failed often enough, or the pool cannot do without it.
      this.#untilMs = undefined
      return true
    }
    const forMs = askedMs ?? this.#nextCooldownMs(tell)
    this.#leaveAlone({ forMs, cause, tell })
    this.#isHeard = false
    this.#cooldowns++
    this.#onCooled?.({ forMs, cause, tell, cool })
    return true
  }

  /** Cools the account because another replica cools it. If the account is cooling already, the longer wait counts. */
  hear({ forMs, cause, tell }: Omit<Cooling, 'cool'>): void {
    const leftMs = this.#untilMs === undefined ? 0 : this.#untilMs - this.#clockMs()
    if (forMs <= Math.max(0, leftMs) + (leftMs > 0 ? echoMs : 0)) return
    this.#leaveAlone({ forMs, cause, tell })
    this.#isHeard = true
  }

  #leaveAlone({ forMs, cause, tell }: Omit<Cooling, 'cool'>): void {
    this.#era++
    this.#trialSinceMs = undefined
    this.#cause = cause
    this.#tell = tell
    this.#untilMs = this.#clockMs() + forMs
  }

  /** Notes that the request is over without a sign of the account's health. */
  left({ era, isTrial }: Visit): void {
    if (isTrial && era === this.#era) this.#trialSinceMs = undefined
  }

  #nextCooldownMs(tell: Verdict['tell']): number {
    const jitter = 0.8 + 0.4 * this.#random()
    return clampCooldown(firstCooldownMs[tell] * 2 ** Math.min(this.#cooldowns, 10) * jitter)
  }
}

/** One request at an account, from `enter` until the result of the request is reported. */
export type Visit = { readonly era: number; readonly isTrial: boolean }

/**
 * Whether one more account may cool for a temporary failure. Only half of a model's accounts, rounded down, may cool
 * for such failures (ruling U1). Disabled accounts do not count. An account that was never tried counts as healthy.
 * @param others the other accounts of the same model
 */
export function maySpare(others: readonly (HealthState | undefined)[]): boolean {
  const on = others.filter((state) => state !== 'disabled')
  const cooling = on.filter((state) => state === 'cooling' || state === 'trial').length
  return cooling + 1 <= Math.floor((on.length + 1) / 2)
}

function clampCooldown(ms: number): number {
  return Math.min(cooldownMaxMs, Math.max(cooldownMinMs, ms))
}
